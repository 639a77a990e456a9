"""Read predictions, and score them as DialogRE does: F1 and macro-F1."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.metrics import f1_score

from experiments._multilabel.files import read_seed
from experiments._multilabel.rules import above_or_best_over, tune_second_threshold
from experiments._multilabel.scores import loose_micro_f1

__all__ = [
    "Predictions",
    "Split",
    "read_predictions",
    "relation_f1",
    "tuned_f1",
]


class Split(NamedTuple):
    """Predictions for validation or test data."""

    proba: np.ndarray
    labels: np.ndarray


class Predictions(NamedTuple):
    """Predictions of one classifier, and the frequency of each relation in its training data."""

    name: str
    val: Split
    test: Split
    frequencies: np.ndarray


def read_predictions(path: Path, seed: str | None = None) -> Predictions:
    """Read what ``experiments.dialogre.train`` wrote.

    A file without training frequencies gets those of its validation labels.
    """
    arrays = read_seed(path, seed)
    val, test = (_split(arrays, name) for name in ("val", "test"))
    frequencies = arrays.get("train_frequencies", val.labels.mean(axis=0))
    return Predictions(seed or path.stem, val, test, frequencies)


def _split(arrays: dict[str, np.ndarray], name: str) -> Split:
    logits, labels = arrays[f"{name}_logits"], arrays[f"{name}_labels"]
    return Split(expit(logits.astype(np.float64)), labels.astype(np.int8))


def tuned_f1(labels: np.ndarray, proba: np.ndarray) -> float:
    """Micro-F1 with the second threshold T2 that is best for these very rows."""
    limit = tune_second_threshold(proba, labels)
    return loose_micro_f1(labels, above_or_best_over(proba, limit))


def relation_f1(labels: np.ndarray, proba: np.ndarray, limit: float) -> tuple[float, float]:
    """Micro-F1, and its unweighted mean over all 36 relations: those that never occur count 0."""
    pred = above_or_best_over(proba, limit)
    macro = f1_score(labels, pred, average="macro", zero_division=0.0)
    return loose_micro_f1(labels, pred), float(macro)
