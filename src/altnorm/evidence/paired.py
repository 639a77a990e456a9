r"""The paired test: what each row adds to a gain, and whether the sum is more than noise.

Every score becomes a sum over rows, so that one test serves them all.

- An average over rows is such a sum already.
- A function of counts, such as F1, is nearly linear in what one row adds to the counts: its
  derivative halfway between before and after says what a row adds.
- Any other score is asked what it becomes when a block of rows is exchanged, before for after.

Where rows are independent, the standard error is that of a sum; where they come in groups, or
neighbours are alike, that of the sums over groups, or over pieces of the file, leaving out one at
a time. The larger one counts. Test and interval use the same standard error and the same
distribution, so they never contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t

from altnorm.evidence.scores import Score

CONFIDENCE = 0.95  # level of the intervals
ROUNDING = 1e-12  # of what rows add and cost in all: a smaller gain is none
_STEP = 1e-4  # of numerical derivatives, relative
_CHUNK = 256  # derivatives taken at once


class Paired(NamedTuple):
    """A gain and what is known about it."""

    gain: float
    p_value: float  # two-sided
    ci_low: float
    ci_high: float
    std_error: float

    @property
    def one_sided(self) -> float:
        """p-value against the alternative that there is a gain."""
        return self.p_value / 2 if self.gain > 0 else 1 - self.p_value / 2

    @property
    def errors(self) -> float:
        """The gain in standard errors, as many as have this p-value where rows are many.

        Where few rows contribute, a standard error says less.
        """
        smallest = np.finfo(np.float64).tiny
        return math.copysign(float(norm.isf(max(self.p_value / 2, smallest))), self.gain)


class _Error(NamedTuple):
    """A standard error and its degrees of freedom."""

    size: float
    df: float

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return float(t.isf((1 - CONFIDENCE) / 2, self.df)) * self.size


def paired_test(
    rows: np.ndarray,
    weight: np.ndarray,
    clusters: Sequence[np.ndarray] = (),
    *,
    worst: float = 0.0,
    surplus: float = 0.0,
) -> Paired:
    r"""Test a gain that is a sum over rows.

    `rows` is what each row adds to it; a row of weight 0 is no evidence. `clusters` number groups,
    or pieces, whose rows may not be independent; the larger of the errors counts.

    With few changed rows the plain standard error is too small, and 0 if all rows change alike.
    As in the adjusted Wald interval for paired proportions [1]_, one more changed row of the
    usual size is added to the variance. The degrees of freedom are those of the rows that
    contribute: where ten rows carry a sum, they are nine, however many others there are.

    `worst` is what one more row could add or cost: many cheap gains do not outweigh a rare loss
    that the sample happens to lack. Such a row counts against the gain, and in the variance, as if
    it had been seen. `surplus` is how much too large the gain is known to be. Test and interval
    allow for both, in either direction.

    References
    ----------
    .. [1] A. Agresti, Y. Min, "Simple improved confidence intervals for comparing matched
       proportions", Statistics in Medicine 24, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.evidence.paired import paired_test
    >>> fixed_and_broken = np.repeat([1, -1, 0], [18, 5, 77]) / 100
    >>> result = paired_test(fixed_and_broken, np.ones(100))
    >>> print(f"{result.ci_low:.3f} to {result.ci_high:.3f}, p = {result.p_value:.3f}")
    0.032 to 0.228, p = 0.012
    >>> careful = paired_test(fixed_and_broken, np.ones(100), worst=1 / 100)
    >>> print(f"{careful.ci_low:.3f} to {careful.ci_high:.3f}, p = {careful.p_value:.3f}")
    0.020 to 0.240, p = 0.021
    """
    used = weight > 0
    gain, n = float(rows.sum()), int(used.sum())
    if abs(gain) < ROUNDING * float(np.abs(rows).sum()):
        gain = 0.0
    # Squares of smaller rows are lost: of costs in units of 1e-160, say.
    if float(rows @ rows) < np.finfo(np.float64).tiny or n < 2:
        return Paired(gain, 1.0, min(gain, 0.0), max(gain, 0.0), 0.0)
    errors = [_row_error(rows, n, worst)]
    for numbers in clusters:
        error = _cluster_error(rows[used], weight[used], numbers[used])
        if error is not None:
            errors.append(_Error(math.hypot(error.size, worst), error.df))
    error = max(errors, key=lambda each: each.half_width)
    half = error.half_width + worst + surplus
    beyond = abs(gain) - worst - surplus
    # No error at all: nearly all of the rows that add something have a weight of 0.
    p_value = float(2 * t.sf(beyond / error.size, error.df)) if error.size else 1.0
    return Paired(gain, min(p_value, 1.0), gain - half, gain + half, error.size)


def _row_error(rows: np.ndarray, n_rows: int, worst: float) -> _Error:
    """Error of a sum of independent rows, and of one at its worst."""
    squares, changed = float(rows @ rows), np.count_nonzero(rows)
    variance = squares * (1 + 1 / changed) - float(rows.sum()) ** 2 / (n_rows + 2) + worst**2
    contributing = (float(np.abs(rows).sum()) + worst) ** 2 / (squares + worst**2)
    return _Error(math.sqrt(max(variance, 0.0)), min(max(contributing, 2.0), n_rows) - 1)


def _cluster_error(rows: np.ndarray, weight: np.ndarray, numbers: np.ndarray) -> _Error | None:
    """Error of a sum over clusters, from what it is without each of them (the jackknife).

    A single cluster tells nothing. A large one among small ones has a say of its own: without it
    the sum may be another one.
    """
    sums, sizes = np.bincount(numbers, rows), np.bincount(numbers, weight)
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    n, total = sizes.size, sizes.sum()
    if n < 2:
        return None
    without = (rows.sum() - sums) * total / (total - sizes)
    variance = (n - 1) / n * float(((without - without.mean()) ** 2).sum())
    return _Error(math.sqrt(variance), max(total**2 / float(sizes @ sizes) - 1, 1.0))


def attribute_gain(
    score: Score,
    labels: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    weight: np.ndarray,
    blocks: np.ndarray,
) -> np.ndarray:
    """Return what each row adds to the gain; the sum is the gain.

    `before` and `after` are predictions as the score needs them. Of scores that can only be called,
    rows of a block, numbered by `blocks`, share evenly.
    """
    if score.per_row is not None:
        difference = score.per_row(labels, after) - score.per_row(labels, before)
        return np.asarray(weight / weight.sum() * difference)
    if score.counts is not None:
        return _of_counts(score, labels, before, after, weight)
    return _of_blocks(score, labels, before, after, weight, blocks)


def _of_counts(
    score: Score, labels: np.ndarray, before: np.ndarray, after: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Derivative halfway, times the change of each row's counts; the rest is shared evenly."""
    assert score.counts is not None
    assert score.of_counts is not None
    n_classes = int(max(labels.max(), before.max(), after.max())) + 1
    old, new = (score.counts(labels, pred, n_classes) for pred in (before, after))
    sums = [np.asarray(weight @ counts).ravel() for counts in (old, new)]
    gain = float(score.of_counts(sums[1]) - score.of_counts(sums[0]))
    slope = derivative(score.of_counts, (sums[0] + sums[1]) / 2)
    rows = weight * np.asarray((new - old) @ slope).ravel()
    touched = (before != after).reshape(len(rows), -1).any(axis=1) & (weight > 0)
    if touched.any():
        # What the derivative misses is curvature; shared out, the rows add up to the gain.
        rows[touched] += (gain - rows.sum()) / touched.sum()
    return rows


def _of_blocks(
    score: Score,
    labels: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    weight: np.ndarray,
    blocks: np.ndarray,
) -> np.ndarray:
    """Half of what the gain loses when a block is exchanged, before for after."""

    def gain(old: np.ndarray, new: np.ndarray) -> float:
        return score(labels, new, weight) - score(labels, old, weight)

    total, rows = gain(before, after), np.zeros(len(labels))
    differs = (before != after).reshape(len(labels), -1).any(axis=1)
    for block in np.unique(blocks[differs]):
        inside = blocks == block
        mask = inside.reshape(-1, *[1] * (before.ndim - 1))
        old, new = np.where(mask, after, before), np.where(mask, before, after)
        rows[inside] = (total - gain(old, new)) / 2 / inside.sum()
    # Blocks need not add up where a score is far from linear; their spread is what is wanted.
    return rows + (total - rows.sum()) / len(rows)


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
