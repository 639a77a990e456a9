r"""The iterations of a few rows without logarithms, wherever nothing can under- or overflow.

For a row that comes on its own an iteration is two products of a vector and a matrix, beside which
the logarithms of :mod:`altnorm.method.scaling` take most of the time. Here the same state is
followed in the same units: `factor` (t, m) lies between the anchor and the reference that a row
sees. With `K` the anchor before an iteration and `K'` after it, `c` its column factors and `r` its
row sums::

    unit   = c / factor^alpha              others = (r / (factor @ K.T)^alpha) @ K'
    own    = b^alpha * unit                factor = q / (others + own)
    b      = own * factor, rows divided by their sums

So one matrix per iteration has to be kept, and a single one for alpha 1, where iterations only
rescale rows and columns. Sums of positive terms lose no digits. What may get lost is a term below
the smallest number, and that only matters where factors are extreme: then the answer is None, and
the caller takes logarithms.

All arrays are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from altnorm._base.arrays import quiet
from altnorm.method.scaling import Anchor, LogReference, anchor_path

# Within these limits a term that underflows is below rounding in every sum, and stays there.
_FACTOR = 1e50  # of factor^alpha and its inverse
_UNIT = 1e30  # of the anchor's column factors
_ROW_SUM = 1e100
_PRIOR = 1e-10
_OWN = 1e-100  # the sum of what a row gets of the columns
_AMPLIFICATION = 1e4  # of one rounding error, alpha^(depth - 1)
_TINY = 1e-290  # an exponent below 1 could bring a smaller entry back


class LinearStage(NamedTuple):
    """One iteration of the reference on its own, after the first."""

    before: np.ndarray  # (m, n) the reference, its rows as columns
    after: np.ndarray  # (m, n) and what becomes of it
    row_sums: np.ndarray  # (1, n) what rows are divided by, over their weights
    factor: np.ndarray  # (1, m) what columns are multiplied by


class LinearPath(NamedTuple):
    """The reference's own iterations, which no row in doubt changes."""

    unit: np.ndarray  # (1, m) column factors of the first iteration
    others: np.ndarray  # (1, m) the reference's share of the columns there
    stages: tuple[LinearStage, ...]  # the iterations that follow
    q: np.ndarray  # (1, m)
    extra: np.ndarray | None  # (1, m) the smoothing's weight in each column
    alpha: float

    def adjust(self, b: np.ndarray) -> np.ndarray | None:
        """Rows after the last iteration; None where logarithms are needed."""
        alpha = self.alpha
        limit = _FACTOR ** (1 / max(1.0, alpha))
        with quiet(np):
            rows, factor = self._next_rows(b, self.unit, self.others)
            for stage in self.stages:
                if rows is None or not _within(factor, limit):
                    return None
                weight = stage.row_sums / _power(factor @ stage.before, alpha)
                others = weight @ stage.after.T
                unit = stage.factor / _power(factor, alpha)
                rows, factor = self._next_rows(rows, unit, others)
        return rows

    def _next_rows(
        self, b: np.ndarray, unit: np.ndarray, others: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """One iteration of the rows: what becomes of them, None if it is not sure, and factors."""
        own = _power(b, self.alpha) * unit
        total = own if self.extra is None else own + self.extra * unit
        factor = self.q / (others + total)
        new = own * factor
        sums = new.sum(axis=1, keepdims=True)
        lost = self.alpha < 1 and own.min() < _TINY and (own[b > 0] < _TINY).any()
        return (new / sums if sums.min() > _OWN and not lost else None), factor


def linear_path(reference: LogReference, depth: int) -> LinearPath | None:
    """Work out so many iterations of the reference; None where some number is extreme.

    Every class must have a positive prior.
    """
    alpha, log_q = reference.alpha, reference.log_q
    if (depth - 1) * math.log(alpha) > math.log(_AMPLIFICATION):
        return None
    path = anchor_path(reference)
    with quiet(np):
        anchors = (stage.anchor for stage in islice(path.stages, depth))
        first = next(anchors)
        if alpha == 1 and depth > 1:
            stages = (_rescaling(first, reference.log_w),) * (depth - 1)
        else:
            stages = tuple(_stages(first, anchors))
        found = LinearPath(
            np.exp(first.log_c - (0 if path.top is None else alpha * path.top))[None, :],
            np.exp(first.log_p)[None, :],
            stages,
            np.exp(log_q)[None, :],
            None if reference.log_mass is None else np.exp(reference.log_mass + log_q)[None, :],
            alpha,
        )
    return found if _is_moderate(found) else None


def _stages(first: Anchor, anchors: Iterator[Anchor]) -> Iterator[LinearStage]:
    before = _kernel(first)
    for anchor in anchors:
        after = _kernel(anchor)
        row_sums, factor = np.exp(anchor.log_r), np.exp(anchor.log_c)
        yield LinearStage(before, after, row_sums[None, :], factor[None, :])
        before = after


def _rescaling(first: Anchor, log_w: np.ndarray | None) -> LinearStage:
    """Any iteration with exponent 1: later anchors are scalings of the first, which does for all.

    It counts as multiplied by the mean column factor, so that the factors of rows stay near 1.
    """
    n, m = first.log_a.shape
    kernel, weight = _kernel(first), np.ones(n) if log_w is None else np.exp(log_w)
    mean = 1 / weight.sum()
    return LinearStage(kernel, kernel, mean * weight[None, :], np.full((1, m), mean))


def _kernel(anchor: Anchor) -> np.ndarray:
    return np.exp(np.ascontiguousarray(anchor.log_a.T))


def _is_moderate(path: LinearPath) -> bool:
    """Whether no number of the reference's own is extreme."""
    usual = _within(path.unit, _UNIT) and path.others.min() > 0 and path.q.min() > _PRIOR
    return bool(usual) and all(
        _within(stage.factor, _UNIT) and _within(stage.row_sums, _ROW_SUM) for stage in path.stages
    )


def _within(values: np.ndarray, limit: float) -> bool:
    """Whether all values lie between `limit` and its inverse; NaN does not."""
    return bool(values.min() > 1 / limit and values.max() < limit)


def _power(values: np.ndarray, alpha: float) -> np.ndarray:
    return values if alpha == 1 else values**alpha
