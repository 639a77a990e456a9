"""Read predictions, and score them as DialogRE does: F1, macro-F1 and conversational F1."""

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
    "Prefixes",
    "Split",
    "conversational_f1",
    "read_predictions",
    "relation_f1",
    "tune_conversational",
    "tuned_f1",
]

T2_GRID = np.arange(51) / 100  # for the conversational score, which has no exact search here


class Prefixes(NamedTuple):
    """Predictions for beginnings of dialogues.

    Attributes
    ----------
    proba : ndarray of shape (k, 36)
        Probabilities.
    rows : ndarray of shape (k,)
        The row that each belongs to.
    counts : ndarray of shape (k, 36)
        Whether each relation is evaluable there.
    """

    proba: np.ndarray
    rows: np.ndarray
    counts: np.ndarray


class Split(NamedTuple):
    """Predictions for validation or test data."""

    proba: np.ndarray
    labels: np.ndarray
    prefixes: Prefixes | None


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
    def proba(key: str) -> np.ndarray:
        return expit(arrays[f"{name}_{key}"].astype(np.float64))

    prefixes = None
    if f"{name}_prefix_logits" in arrays:
        rows = arrays[f"{name}_prefix_rows"].astype(np.int64)
        turns = arrays[f"{name}_prefix_turns"].astype(np.int64)
        counts = turns[:, None] >= arrays[f"{name}_evaluable"][rows]
        prefixes = Prefixes(proba("prefix_logits"), rows, counts)
    return Split(proba("logits"), arrays[f"{name}_labels"].astype(np.int8), prefixes)


def tuned_f1(labels: np.ndarray, proba: np.ndarray) -> float:
    """Micro-F1 with the second threshold T2 that is best for these very rows."""
    limit = tune_second_threshold(proba, labels)
    return loose_micro_f1(labels, above_or_best_over(proba, limit))


def relation_f1(labels: np.ndarray, proba: np.ndarray, limit: float) -> tuple[float, float]:
    """Micro-F1, and its unweighted mean over the relations that occur."""
    pred = above_or_best_over(proba, limit)
    occurs = labels.any(axis=0)
    macro = f1_score(labels[:, occurs], pred[:, occurs], average="macro", zero_division=0.0)
    return loose_micro_f1(labels, pred), float(macro)


def conversational_f1(
    labels: np.ndarray, proba: np.ndarray, prefixes: Prefixes, limit: float
) -> float:
    r"""F1c of Yu et al. 2020: early predictions count as soon as a relation can be known.

    With `O_i` the relations predicted from the first i of m turns, `E_i` those evaluable there (at
    the end all) and `L` the true ones, the precision of a row is :math:`\sum_i |O_i \cap L \cap
    E_i| / \sum_i |O_i \cap E_i|`, its recall the same over :math:`\sum_i |L \cap E_i|`; each is
    averaged over the rows where it is defined, and F1c combines the averages.

    Parameters
    ----------
    labels, proba : ndarray of shape (n, 36)
        True relations, and probabilities given whole dialogues.
    prefixes : Prefixes
        Probabilities given the beginnings.
    limit : float
        The second threshold T2.
    """
    whole = above_or_best_over(proba, limit)
    early = above_or_best_over(prefixes.proba, limit) * prefixes.counts
    true = labels[prefixes.rows] * prefixes.counts
    hits, said, due = (
        last.sum(axis=1) + np.bincount(prefixes.rows, part.sum(axis=1), minlength=len(labels))
        for last, part in ((whole * labels, early * true), (whole, early), (labels, true))
    )
    precision, recall = (
        np.divide(hits, total, where=total > 0, out=np.zeros(len(labels))).sum()
        / max(1, np.count_nonzero(total))
        for total in (said, due)
    )
    return float(2 * precision * recall / (precision + recall)) if hits.any() else 0.0


def tune_conversational(labels: np.ndarray, proba: np.ndarray, prefixes: Prefixes) -> float:
    """The second threshold, of 0, 0.01, .., 0.5, with the best F1c."""
    scores = [conversational_f1(labels, proba, prefixes, limit) for limit in T2_GRID]
    return float(T2_GRID[int(np.argmax(scores))])
