"""How much each row, or group of rows, adds to the gain of predictions.

Every score becomes a sum over units that may be exchanged, before for after, and resampled on
their own: rows, or whole groups of rows that are not independent.

- An average over rows is such a sum already.
- A function of counts, such as F1, is linear in the exchange of one row as long as one row does
  not move it far: its derivative halfway between before and after says what a row adds.
- Any other score is asked what it becomes when a block of rows is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from altnorm.adjuster.folds import Validation
from altnorm.evidence.verdict import count_changes

_N_BLOCKS = 20  # for scores that have to be called: a test of 20 signs, and few calls
_STEP = 1e-4  # of numerical derivatives, relative
_CHUNK = 256  # derivatives taken at once


class Contribution(NamedTuple):
    """What predictions gain, and where."""

    units: np.ndarray  # (u,) what each unit adds; the sum is the gain
    weighted: np.ndarray  # (u,) the same, a sure change counting more: what the test looks at
    n_changed: int  # rows whose decision changed, went right, went wrong
    n_fixed: int
    n_broken: int

    @property
    def gain(self) -> float:
        """Gain over the untouched predictions."""
        return float(self.units.sum(dtype=np.float64))


class Attribution:
    """Attributes the gain of predictions over the untouched ones to units.

    Parameters
    ----------
    data : Validation
        Labels, score, weights and groups.
    base : ndarray, optional
        Probabilities to compare with; None takes those of `data`.
    """

    def __init__(self, data: Validation, base: np.ndarray | None = None) -> None:
        self.score, self.labels, self.weight = data.score, data.labels, data.weight
        base = data.proba if base is None else base
        self.decide = data.kind.decide
        before, self.decided = data.predicted(base), data.kind.decide(base)
        self.share = data.row_weight / data.row_weight.sum()
        self.groups = data.groups
        if self.groups is None and self.score.function is not None:
            n = len(self.labels)
            # A fixed seed: which rows share a block is no choice that could be made to suit the
            # result.
            deal = np.random.default_rng(0).permutation(n)
            self.groups = deal % min(n, _N_BLOCKS)
        if self.score.per_row is not None:  # all that is needed; probabilities would be large
            self.base_rows = self.score.per_row(self.labels, before)
        else:
            self.base = before
        self.base_score = self.score(self.labels, before, self.weight)

    def __call__(self, pred: np.ndarray, sure: np.ndarray | None = None) -> Contribution:
        """Attribute the gain of predictions, given as the score needs them.

        `sure` says of each row how sure its change is, if that is known; see `sureness`.
        """
        decided = self.decide(pred) if self.score.needs == "proba" else pred
        counts = count_changes(self.labels, self.decided, decided)
        if self.score.function is not None:
            units = weighted = self._blocks(pred).astype(np.float32)
        else:
            rows = self._rows(pred)
            units = weighted = self._by_group(rows)
            if sure is not None:
                weighted = self._by_group(rows * sure)
        return Contribution(units, weighted, *counts)

    def _rows(self, pred: np.ndarray) -> np.ndarray:
        if self.score.per_row is not None:
            return self.share * (self.score.per_row(self.labels, pred) - self.base_rows)
        return self._count_rows(pred)

    def _by_group(self, rows: np.ndarray) -> np.ndarray:
        units = rows if self.groups is None else np.bincount(self.groups, rows)
        return units.astype(np.float32)

    def _count_rows(self, pred: np.ndarray) -> np.ndarray:
        """Derivative halfway, times the change of each row's counts; the rest is shared evenly."""
        assert self.score.counts is not None
        assert self.score.of_counts is not None
        n = len(self.labels)
        both = self.score.counts(
            np.concatenate([self.labels, self.labels]), np.concatenate([self.base, pred])
        )
        # Cut first: of a sparse product, old versions of SciPy give no slices.
        old, new = (part * (n * self.share)[:, None] for part in (both[:n], both[n:]))
        middle = np.asarray(old.sum(axis=0) + new.sum(axis=0)).ravel() / 2
        change = new - old
        rows = np.asarray(change @ derivative(self.score.of_counts, middle)).ravel()
        touched = np.asarray(abs(change).sum(axis=1)).ravel() > 0
        if touched.any():
            # What the derivative misses is curvature; shared out, the units add up to the gain
            # exactly.
            rows[touched] += (self._gain(pred) - rows.sum()) / touched.sum()
        return rows

    def _gain(self, pred: np.ndarray) -> float:
        return float(self.score(self.labels, pred, self.weight) - self.base_score)

    def _blocks(self, pred: np.ndarray) -> np.ndarray:
        """Half of what the gain loses when a block is exchanged, before for after."""
        assert self.groups is not None
        gain = self._gain(pred)
        units = np.zeros(self.groups.max() + 1)
        differs = (pred != self.base).reshape(len(pred), -1).any(axis=1)
        for block in np.unique(self.groups[differs]):
            rows = self.groups == block
            old, new = self.base.copy(), pred.copy()
            old[rows], new[rows] = pred[rows], self.base[rows]
            after, before = (self.score(self.labels, v, self.weight) for v in (new, old))
            units[block] = (gain - (after - before)) / 2
        return units


def sureness(ratio: np.ndarray) -> np.ndarray:
    """Weigh a changed decision, given how probable the old one still is relative to the new.

    Were the adjusted probabilities a and b of the old and the new decision right, then of the rows
    whose label is one of the two a share of (b - a) / (b + a) more would go right than wrong, and
    that would be the best weight in a test. They are estimates, so the weight is its root: halfway,
    geometrically, to counting all changes alike.
    """
    return np.asarray(np.sqrt((1 - ratio) / (1 + ratio)))


def derivative(function: Callable[[np.ndarray], Any], at: np.ndarray) -> np.ndarray:
    """Central differences of a function of counts; 0 where there is nothing to count."""
    gradient = np.zeros(at.size)
    used = np.flatnonzero(at > 0)
    for start in range(0, used.size, _CHUNK):
        which = used[start : start + _CHUNK]
        # Relative to the count, so that a small one stays positive.
        step = _STEP * at[which]
        points = np.tile(at, (2, which.size, 1))
        points[0, np.arange(which.size), which] += step
        points[1, np.arange(which.size), which] -= step
        up, down = np.asarray(function(points))
        gradient[which] = (up - down) / (2 * step)
    return gradient
