"""How much each row adds to the gain of predictions over others.

Every score becomes a sum over rows, so that one paired test serves them all.

- An average over rows is such a sum already.
- A function of counts, such as F1, is nearly linear in what one row adds to the counts: its
  derivative halfway between before and after says what a row adds.
- Any other score is asked what it becomes when a block of rows is exchanged, before for after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from altnorm.evidence.scores import Score

_STEP = 1e-4  # of numerical derivatives, relative
_CHUNK = 256  # derivatives taken at once


def attribute_gain(
    score: Score,
    labels: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    weight: np.ndarray,
    blocks: np.ndarray,
) -> np.ndarray:
    """Return what each row adds to the gain; the sum is the gain.

    Parameters
    ----------
    score : Score
        The score.
    labels : ndarray of shape (n,) or (n, m)
        Class codes, or booleans.
    before, after : ndarray
        Predictions as the score needs them.
    weight : ndarray of shape (n,)
        Row weights.
    blocks : ndarray of shape (n,)
        Number of each row's block, for scores that can only be called.

    Returns
    -------
    ndarray of shape (n,)
        What each row adds; for scores that can only be called, rows of a block share evenly.
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

    whole, rows = gain(before, after), np.zeros(len(labels))
    differs = (before != after).reshape(len(labels), -1).any(axis=1)
    for block in np.unique(blocks[differs]):
        inside = blocks == block
        mask = inside.reshape(-1, *[1] * (before.ndim - 1))
        old, new = np.where(mask, after, before), np.where(mask, before, after)
        rows[inside] = (whole - gain(old, new)) / 2 / inside.sum()
    total = rows.sum()
    # Blocks need not add up where a score is far from linear; their spread is what is wanted.
    return rows + (whole - total) / len(rows)


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
