"""Fine-tune the encoder on Ultra-Fine Entity Typing and save its predictions.

``python -m experiments.ufet.train --data DIR --encoder DIR --output DIR``: three seeds, a few
minutes on one GPU. Only the 1,998 crowd-sourced examples are used for training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from experiments._encoder import (
    MARKERS,
    Example,
    Schedule,
    SpanClassifier,
    best_micro_f1,
    bin_far_logits,
    embed_texts,
    fine_tune,
    load_encoder,
    load_tokenizer,
    predict_logits,
    report_seed,
    save_predictions,
    sort_far_logits,
    training_arguments,
)
from experiments._multilabel.files import join_seeds
from experiments.ufet.data import LEVELS, Mention, label_matrix, level_of, read_split, read_types

SCHEDULE = Schedule(epochs=20, batch_size=32, encoder_rate=1e-4, head_rate=5e-4, first_choice=3)
MAX_SIDE = 50  # tokens of context on each side
LIKELY = -3.5  # a type whose logits all lie below is never in doubt (ambiguity 0.25 is -3.14)
ROUNDING: dict[str, Any] = dict(fine=1 / 32, edges=(-4.5, -5.5, -7.0, -9.0, -16.0))
SORTED = -7.0  # logits below
META = {
    "source": "all-MiniLM-L6-v2 fine-tuned by experiments/ufet/train.py on the crowd-sourced part "
    "of Ultra-Fine Entity Typing",
    "licence": "predictions only, no text; data for research; encoder: Apache-2.0",
    "types": "position of each column in types.txt: the types that occur as label, and those with "
    f"a logit above {LIKELY} somewhere; the others are never in doubt",
    "rounding": f"logits below {ROUNDING['edges'][0]} are binned, those below {SORTED} sorted: see "
    "experiments/_encoder.py",
}


def encode(tokenizer: Tokenizer, row: Mention) -> Example:
    """Tokens of the sentence with the mention marked, and of the mention once more.

    ``[CLS] left [m] mention [/m] right [SEP] mention [SEP]``; the span is the marked mention.
    """
    left, mention, right = (
        tokenizer.encode(text, add_special_tokens=False).ids
        for text in (row.left, row.mention, row.right)
    )
    start, stop, opening, closing = map(tokenizer.token_to_id, ("[CLS]", "[SEP]", *MARKERS))
    left, mention, right = left[-MAX_SIDE:], mention[:MAX_SIDE], right[:MAX_SIDE]
    before, marked = [start, *left], [opening, *mention, closing]
    after = [*right, stop, *mention, stop]
    spans = [0] * len(before) + [1] * len(marked) + [0] * len(after)
    return Example(before + marked + after, spans)


def level_loss(levels: np.ndarray, device: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The objective of Choi et al.: a row counts at a level only if it has a type there."""
    member = torch.from_numpy(np.eye(len(LEVELS), dtype=np.float32)[levels]).to(device)

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        counts = ((labels @ member) > 0).float() @ member.T
        terms = binary_cross_entropy_with_logits(logits, labels, weight=counts, reduction="sum")
        return terms / len(labels)

    return loss


def build_model(arguments: Any, names: Sequence[str], labels: np.ndarray) -> SpanClassifier:
    """A model whose output weights start as the embedded names of the types."""
    tokenizer = load_tokenizer(arguments.encoder)
    encoder = load_encoder(arguments.encoder).to(arguments.device)
    readable = [name.replace("_", " ") for name in names]
    vectors = embed_texts(encoder, tokenizer, readable)
    model = SpanClassifier(encoder, 1, len(names)).to(arguments.device)
    frequency = (labels.sum(axis=0) + 0.1) / (len(labels) + 1)
    with torch.no_grad():
        model.output.weight.copy_(vectors)
        model.output.bias.copy_(torch.from_numpy(np.log(frequency)))
    return model


def kept_columns(logits: Sequence[np.ndarray], labels: Sequence[np.ndarray]) -> np.ndarray:
    """The types that are saved."""
    occurs = np.any([matrix.any(axis=0) for matrix in labels], axis=0)
    likely = np.any([matrix.max(axis=0) > LIKELY for matrix in logits], axis=0)
    return np.flatnonzero(occurs | likely)


def train_seed(
    arguments: Any, splits: dict[str, list[Mention]], names: Sequence[str], seed: int
) -> None:
    """Train with one seed and save the predictions."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    columns = {name: i for i, name in enumerate(names)}
    labels = {split: label_matrix(rows, columns) for split, rows in splits.items()}
    tokenizer = load_tokenizer(arguments.encoder)
    examples = {split: [encode(tokenizer, row) for row in rows] for split, rows in splits.items()}
    model = build_model(arguments, names, labels["train"])
    epochs = arguments.epochs or (1 if arguments.quick else SCHEDULE.epochs)
    schedule = SCHEDULE._replace(epochs=epochs, first_choice=min(SCHEDULE.first_choice, epochs))
    history = fine_tune(
        model,
        examples["train"],
        labels["train"],
        level_loss(level_of(np.arange(len(names))), arguments.device),
        schedule,
        lambda model: best_micro_f1(predict_logits(model, examples["dev"]), labels["dev"]),
        seed=seed,
        max_steps=3 if arguments.quick else None,
    )
    report_seed("ufet", seed, history, started)
    logits = {split: predict_logits(model, examples[split]) for split in ("dev", "test")}
    save_seed(arguments, seed, history, logits, labels)


def save_seed(
    arguments: Any,
    seed: int,
    history: list[float],
    logits: dict[str, np.ndarray],
    labels: dict[str, np.ndarray],
) -> None:
    """Save the columns that matter, binned far from any decision."""
    kept = kept_columns(list(logits.values()), list(labels.values()))
    small = {
        split: sort_far_logits(
            bin_far_logits(logits[split][:, kept], **ROUNDING), labels[split][:, kept], below=SORTED
        )
        for split in ("dev", "test")
    }
    save_predictions(
        arguments.output / f"ufet_seed{seed}.npz",
        META | {"seed": seed, "validation_by_epoch": history},
        val_logits=small["dev"],
        val_labels=labels["dev"][:, kept],
        test_logits=small["test"],
        test_labels=labels["test"][:, kept],
        types=kept.astype(np.uint16),
        train_frequencies=labels["train"].mean(axis=0)[kept],
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Train all seeds, and put their predictions into one file."""
    arguments = training_arguments("ufet", argv)
    names = read_types(arguments.data)
    splits = {split: read_split(arguments.data, split) for split in ("train", "dev", "test")}
    if arguments.quick:
        names = names[:300]
        splits = {split: rows[:40] for split, rows in splits.items()}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        train_seed(arguments, splits, names, seed)
    files = sorted(arguments.output.glob("ufet_seed*.npz"))
    join_seeds(files, arguments.output / "predictions.npz")


if __name__ == "__main__":
    main()
