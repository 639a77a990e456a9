"""Fine-tune the encoder on DialogRE and save its predictions.

``python -m experiments.dialogre.train --data DIR --encoder DIR --output DIR``: five seeds, a few
minutes on one GPU.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits

from experiments._encoder import (
    MARKERS,
    Example,
    Schedule,
    SpanClassifier,
    best_micro_f1,
    fine_tune,
    load_encoder,
    load_tokenizer,
    predict_logits,
    report_seed,
    round_logits,
    save_predictions,
    sort_far_logits,
    training_arguments,
)
from experiments._multilabel.files import join_seeds
from experiments.dialogre.data import N_RELATIONS, Pair, label_matrix, read_split

SCHEDULE = Schedule(epochs=20, batch_size=24, encoder_rate=1e-4, head_rate=5e-4, first_choice=5)
MAX_TOKENS = 512
META = {
    "source": "all-MiniLM-L6-v2 fine-tuned by experiments/dialogre/train.py on DialogRE v2",
    "licence": "data: non-commercial research only; encoder: Apache-2.0",
    "rounding": "logits below -7 are sorted: see experiments/_encoder.py",
}


def encode(tokenizer: Tokenizer, pair: Pair) -> Example:
    """Tokens of a dialogue and of the two arguments.

    ``[CLS] dialogue [SEP] x [SEP] y [SEP]``; a speaker who is an argument is replaced by a marker
    everywhere, as in the BERT_s baseline of Yu et al. The spans are x and y at the end.
    """
    dialogue, arguments = "\n".join(pair.turns), []
    for name, marker in zip((pair.x, pair.y), MARKERS, strict=True):
        if re.fullmatch(r"speaker \d+", name, flags=re.IGNORECASE):
            dialogue = re.sub(rf"\b{name}\b", marker, dialogue, flags=re.IGNORECASE)
            name = marker
        arguments.append(tokenizer.encode(name, add_special_tokens=False).ids)
    start, stop = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
    tail = [stop, *arguments[0], stop, *arguments[1], stop]
    ids = tokenizer.encode(dialogue, add_special_tokens=False).ids[: MAX_TOKENS - 1 - len(tail)]
    spans = [0, *[1] * len(arguments[0]), 0, *[2] * len(arguments[1]), 0]
    return Example([start, *ids, *tail], [0] * (1 + len(ids)) + spans)


def split_arrays(
    model: SpanClassifier, tokenizer: Tokenizer, pairs: Sequence[Pair], name: str
) -> dict[str, np.ndarray]:
    """What is saved of one split."""
    labels = label_matrix(pairs)
    full = predict_logits(model, [encode(tokenizer, pair) for pair in pairs])
    rounded = round_logits(full, fine=1 / 64, coarse=1 / 4, cut=-5.0)
    return {
        f"{name}_logits": sort_far_logits(rounded, labels, below=-7.0),
        f"{name}_labels": labels,
    }


def train_seed(arguments: Any, splits: dict[str, list[Pair]], seed: int) -> None:
    """Train with one seed and save the predictions."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    tokenizer = load_tokenizer(arguments.encoder)
    model = SpanClassifier(load_encoder(arguments.encoder), 2, N_RELATIONS).to(arguments.device)
    examples = {
        split: [encode(tokenizer, pair) for pair in splits[split]] for split in ("train", "dev")
    }
    dev_labels, train_labels = label_matrix(splits["dev"]), label_matrix(splits["train"])
    epochs = arguments.epochs or (1 if arguments.quick else SCHEDULE.epochs)
    schedule = SCHEDULE._replace(epochs=epochs, first_choice=min(SCHEDULE.first_choice, epochs))
    history = fine_tune(
        model,
        examples["train"],
        train_labels,
        binary_cross_entropy_with_logits,
        schedule,
        lambda model: best_micro_f1(predict_logits(model, examples["dev"]), dev_labels),
        seed=seed,
        max_steps=3 if arguments.quick else None,
    )
    report_seed("dialogre", seed, history, started)
    save_predictions(
        arguments.output / f"dialogre_seed{seed}.npz",
        META | {"seed": seed, "validation_by_epoch": history},
        train_frequencies=train_labels.mean(axis=0),
        **split_arrays(model, tokenizer, splits["dev"], "val"),
        **split_arrays(model, tokenizer, splits["test"], "test"),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Train all seeds, and put their predictions into one file."""
    arguments = training_arguments("dialogre", argv)
    splits = {split: read_split(arguments.data, split) for split in ("train", "dev", "test")}
    if arguments.quick:
        splits = {split: pairs[:30] for split, pairs in splits.items()}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        train_seed(arguments, splits, seed)
    files = sorted(arguments.output.glob("dialogre_seed*.npz"))
    join_seeds(files, arguments.output / "predictions.npz")


if __name__ == "__main__":
    main()
