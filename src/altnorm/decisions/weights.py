"""Class weights for a score: the decision is the class of largest weight times probability.

For balanced accuracy the weights are known, the inverse of the class shares. For F-scores they are
found on labels: first one number `s`, weights ``share ** -s``, between accuracy (0) and balanced
accuracy (1); then class by class, as far as the class has labels to support a weight of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

OfCounts = Callable[[np.ndarray], np.ndarray]

EXPONENTS = np.linspace(0, 1, 9)  # exponents of the class shares to start from
SHRINKAGE = 10.0  # rows of a class at which its own weight and the common one count equally
UNSEEN = 0.5  # rows that a class without labels is taken to have: rarer than any that was seen
_MOST_CUTS = 64  # weights tried for a class: more are as good as equal
_SWEEPS = 3  # over the classes; the score hardly rises after the second


def class_shares(labels: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the share of each class among the labels, none of them 0."""
    counts = np.bincount(labels, weight, minlength=n_classes)
    # In units of rows, so that weights which only say how rows compare change nothing.
    counts *= labels.size / weight.sum()
    counts = np.where(counts > 0, counts, UNSEEN)
    return counts / counts.sum()


def balancing_weights(labels: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return Bayes' rule for balanced accuracy: the inverse of the class shares."""
    shares = class_shares(labels, weight, n_classes)
    return shares.max() / shares


def fit_weights(
    proba: np.ndarray, labels: np.ndarray, weight: np.ndarray, of_counts: OfCounts
) -> np.ndarray:
    """Find class weights (m,) that maximise a score of hits, predicted and true rows, (..., 3 m).

    `proba` are calibrated, by fits that the rows had no part in.
    """
    rows = _Rows(labels, weight, proba.shape[1], of_counts)
    with np.errstate(divide="ignore"):
        log_p = np.log(proba.astype(np.float64, copy=False))
    shares = class_shares(labels, weight, rows.n_classes)
    starts = [-s * np.log(shares) for s in EXPONENTS]
    scores = [rows.score(log_p + start) for start in starts]
    start = starts[int(np.argmax(scores))]
    log_weights, best, leaders = start.copy(), max(scores), _Leaders(log_p + start)
    for _ in range(_SWEEPS):
        before = best
        for j in np.argsort(-rows.true):
            rival, ahead = leaders.without(j)
            with np.errstate(invalid="ignore"):
                needed = ahead - log_p[:, j]
            better = rows.best_weight(j, needed, rival, best)
            if better is not None:
                log_weights[j], best = better
                leaders.change(j, log_p[:, j] + log_weights[j])
        if best <= before:
            break
    trust = rows.true / (rows.true + SHRINKAGE)
    shrunk = trust * log_weights + (1 - trust) * start
    # Halfway to weights that score better the score may still be lower.
    return np.exp(start if rows.score(log_p + shrunk) < max(scores) else shrunk)


class _Leaders:
    """The two classes of largest score in each row, kept while scores change class by class.

    Few rows have a class among their first two: of many classes, looking through all scores again
    for each of them would take longer than all else.
    """

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores
        self.first, self.second = self._rank(scores.copy())

    @staticmethod
    def _rank(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = scores.argmax(axis=1)
        scores[np.arange(first.size), first] = -np.inf
        return first, scores.argmax(axis=1)

    def without(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the class of largest score in each row, class `j` left out, and that score."""
        rival = np.where(self.first == j, self.second, self.first)
        score = self.scores[np.arange(rival.size), rival]
        return rival, np.where(rival == j, -np.inf, score)  # itself where no other is possible

    def change(self, j: int, scores: np.ndarray) -> None:
        """Give class `j` other scores."""
        rises = scores >= self.scores[np.arange(scores.size), self.second]
        self.scores[:, j] = scores
        rows = np.flatnonzero(rises | (self.first == j) | (self.second == j))
        self.first[rows], self.second[rows] = self._rank(self.scores[rows])


@dataclass(frozen=True)
class _Rows:
    """Labelled rows, and the score that their decisions are to maximise."""

    labels: np.ndarray
    weight: np.ndarray
    n_classes: int
    of_counts: OfCounts

    @cached_property
    def true(self) -> np.ndarray:
        """Weight of the rows of each class."""
        return np.bincount(self.labels, self.weight, minlength=self.n_classes)

    def score(self, scores: np.ndarray) -> float:
        """Score of deciding for the class of largest score."""
        decided, m = scores.argmax(axis=1), self.n_classes
        hits = np.bincount(self.labels, self.weight * (decided == self.labels), minlength=m)
        predicted = np.bincount(decided, self.weight, minlength=m)
        return float(self.of_counts(np.concatenate([hits, predicted, self.true])))

    def best_weight(
        self, j: int, needed: np.ndarray, rival: np.ndarray, best: float
    ) -> tuple[float, float] | None:
        """Return the log-weight of class `j` that scores better than `best`, and its score.

        A row is decided for `rival`, or for class `j` if its log-weight exceeds `needed`.
        """
        borders = np.unique(needed[(self.labels == j) & np.isfinite(needed)])
        if not borders.size:
            return None
        # The score can only rise where a row of the class itself goes over.
        cuts = borders[np.linspace(0, borders.size - 1, min(borders.size, _MOST_CUTS)).astype(int)]
        scores = np.asarray(self.of_counts(self._sums_at(j, cuts, needed, rival)))
        top = int(scores.argmax())
        if scores[top] <= best:
            return None
        above = cuts[top + 1] if top + 1 < cuts.size else cuts[top] + 2e-3
        return float(cuts[top] + min(1e-3, (above - cuts[top]) / 2)), float(scores[top])

    def _sums_at(
        self, j: int, cuts: np.ndarray, needed: np.ndarray, rival: np.ndarray
    ) -> np.ndarray:
        """Hits, predicted and true rows of each class with class `j` taken up to each cut."""
        k, m, labels, weight = cuts.size, self.n_classes, self.labels, self.weight
        # Rows of bucket b go over to class j at the cuts b, b + 1, ...; of bucket k they never do.
        bucket = np.searchsorted(cuts, np.nan_to_num(needed, nan=np.inf))
        taken = np.bincount(bucket * m + rival, weight, minlength=(k + 1) * m).reshape(k + 1, m)
        hit = rival == labels
        lost = np.bincount((bucket * m + rival)[hit], weight[hit], minlength=(k + 1) * m)
        is_j = labels == j
        hits_of_class = np.bincount(bucket[is_j], weight[is_j])  # the last cut is at one of them
        taken_so_far, lost_so_far = taken.cumsum(axis=0), lost.reshape(k + 1, m).cumsum(axis=0)
        predicted = taken_so_far[-1] - taken_so_far[:k]
        hits = lost_so_far[-1] - lost_so_far[:k]
        predicted[:, j] = taken_so_far[:k].sum(axis=1)
        hits[:, j] = hits_of_class.cumsum()[:k]
        return np.concatenate([hits, predicted, np.broadcast_to(self.true, (k, m))], axis=1)
