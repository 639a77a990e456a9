"""Read predictions, and score them as Ultra-Fine Entity Typing does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from experiments._multilabel.files import read_seed
from experiments._multilabel.rules import above_or_best
from experiments._multilabel.scores import loose_macro_f1, loose_micro_f1
from experiments.ufet.data import LEVELS, level_of

__all__ = [
    "Predictions",
    "Scores",
    "macro_f1",
    "macro_precision_recall",
    "read_predictions",
    "type_scores",
]


class Predictions(NamedTuple):
    """Predictions of one classifier for the types that matter.

    Attributes
    ----------
    name : str
        Name of the file.
    val_proba, val_labels, test_proba, test_labels : ndarray of shape (n, m)
        Probabilities and 0/1 labels.
    levels : ndarray of shape (m,)
        Level of each type: 0 coarse, 1 fine, 2 ultra-fine.
    frequencies : ndarray of shape (m,)
        How often each type occurs in the training data, per row.
    """

    name: str
    val_proba: np.ndarray
    val_labels: np.ndarray
    test_proba: np.ndarray
    test_labels: np.ndarray
    levels: np.ndarray
    frequencies: np.ndarray


class Scores(NamedTuple):
    """Loose F1 in points: all types, then macro-F1 of each level."""

    macro: float
    micro: float
    coarse: float
    fine: float
    ultra_fine: float


def read_predictions(path: Path, seed: str | None = None) -> Predictions:
    """Read what ``experiments.ufet.train`` wrote."""
    arrays = read_seed(path, seed)
    val, test = (expit(arrays[f"{s}_logits"].astype(np.float64)) for s in ("val", "test"))
    labels = [arrays[f"{s}_labels"].astype(np.int8) for s in ("val", "test")]
    levels, frequencies = level_of(arrays["types"].astype(int)), arrays["train_frequencies"]
    return Predictions(seed or path.stem, val, labels[0], test, labels[1], levels, frequencies)


def macro_f1(labels: np.ndarray, proba: np.ndarray) -> float:
    """Loose macro-F1 with the rule "the most probable, and all above 0.5"."""
    return loose_macro_f1(labels, above_or_best(proba))


def macro_precision_recall(labels: np.ndarray, proba: np.ndarray) -> tuple[float, float]:
    """The two parts of loose macro-F1: averages over rows with predicted, and with true types."""
    pred = above_or_best(proba)
    hits, said, due = (x.sum(axis=1) for x in (labels * pred, pred, labels))
    known = due > 0  # the rule predicts something for every row
    return float((hits / said).mean()), float((hits[known] / due[known]).mean())


def type_scores(labels: np.ndarray, proba: np.ndarray, levels: np.ndarray) -> Scores:
    """All scores of one set of predictions."""
    pred = above_or_best(proba)
    by_level = (
        loose_macro_f1(labels[:, levels == i], pred[:, levels == i]) for i in range(len(LEVELS))
    )
    both = loose_macro_f1(labels, pred), loose_micro_f1(labels, pred)
    return Scores(*(100 * score for score in (*both, *by_level)))
