"""Settings, their scores fold by fold, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from altnorm._validation import InputError, check_integer
from altnorm.metrics import Score

__all__ = ["IDENTITY", "FoldScorer", "Scored", "Setting", "assign_folds", "choose"]


class Setting(NamedTuple):
    """One combination of hyper-parameters."""

    alpha: float
    depth: int
    threshold: float
    reference: str
    smoothing: float

    def severity(self) -> tuple[float, ...]:
        """Order among settings that score and change the same: the mildest first."""
        return (self.depth, abs(math.log(self.alpha)), -self.threshold, -self.smoothing)


IDENTITY = Setting(alpha=1.0, depth=0, threshold=1.0, reference="all", smoothing=0.0)
"""No iteration: nothing changes."""


@dataclass(frozen=True)
class Scored:
    """What is known of a setting after cross-fitting.

    Attributes
    ----------
    setting : Setting
        The setting.
    scores : ndarray of shape (n_folds + 1,)
        Score on all rows outside each fold, and on all rows.
    n_changed : int
        Rows whose decision changed.
    """

    setting: Setting
    scores: np.ndarray
    n_changed: int


def choose(scored: Iterable[Scored], fold: int = -1) -> Scored:
    """Return the best by the score outside `fold` (by default on all rows); ties to the milder."""

    def rank(one: Scored) -> tuple[Any, ...]:
        # Scores are rounded so that a sum taken in another order does not break a tie.
        return -round(float(one.scores[fold]), 12), one.n_changed, one.setting.severity()

    return min(scored, key=rank)


def assign_folds(labels: np.ndarray, cv: Any, random_state: np.random.RandomState) -> np.ndarray:
    """Number the fold of each row.

    An integer `cv` deals the rows out at random, not class by class: stratified folds share the
    class balance that the sample has by chance, and a prior counted on some of them knows the
    labels of the others. Splitters and lists of splits are taken as they are; each row must be in
    the test part of one split.
    """
    n_rows = labels.shape[0]
    if n_rows < 2:
        raise InputError(
            f"Cross-fitting needs at least 2 rows; there are n_samples = {n_rows}. Use "
            "AlternatingNormalizer with fixed settings."
        )
    if not isinstance(cv, Integral):
        folds = np.full(n_rows, -1)
        times = np.zeros(n_rows, dtype=int)
        splits = check_cv(cv, labels, classifier=True).split(np.zeros((n_rows, 1)), labels)
        for k, (_, test) in enumerate(splits):
            folds[test] = k
            times[test] += 1
        if (times != 1).any():
            raise InputError(
                f"Each row must be in the test part of one split; {(times != 1).sum()} of {n_rows} "
                "are in none or in several. Pass a splitter that partitions the rows, such as "
                "KFold."
            )
        return folds
    check_integer(cv, "cv", low=2)
    folds = np.empty(n_rows, dtype=int)
    folds[random_state.permutation(n_rows)] = np.arange(n_rows) % cv
    return folds


class FoldScorer:
    """Scores predictions on the rows outside each fold and on all rows.

    Parameters
    ----------
    score : Score
        The score.
    y : ndarray
        Class codes (n,) or 0/1 matrix (n, m).
    folds : ndarray of shape (n,)
        Fold of each row.
    sample_weight : ndarray of shape (n,) or None
        Weights of the rows in the score.
    """

    def __init__(
        self, score: Score, y: np.ndarray, folds: np.ndarray, sample_weight: np.ndarray | None
    ) -> None:
        self.score, self.y, self.folds, self.sample_weight = score, y, folds, sample_weight
        self.n_folds = int(folds.max()) + 1
        weight = np.ones(folds.size) if sample_weight is None else sample_weight
        inside = (folds[None, :] == np.arange(self.n_folds)[:, None]) * weight
        self._weights = np.vstack([weight - inside, weight])

    def __call__(self, pred: np.ndarray) -> np.ndarray:
        """Return ``n_folds + 1`` scores of predictions given as the score needs them."""
        score = self.score
        if score.per_row is not None:
            return self._weights @ score.per_row(self.y, pred) / self._weights.sum(axis=1)
        if score.counts is not None and score.of_counts is not None:
            return np.asarray(score.of_counts(self._weights @ score.counts(self.y, pred)))
        return np.array([self._on(pred, self.folds != k) for k in range(self.n_folds + 1)])

    def _on(self, pred: np.ndarray, rows: np.ndarray) -> float:
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return self.score(self.y[rows], pred[rows], weight)
