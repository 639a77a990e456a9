"""From the probabilities of several labels to labels, as the two benchmarks do it."""

from __future__ import annotations

import numpy as np

__all__ = ["above", "above_or_best", "above_or_best_over", "tune_second_threshold"]

T1 = 0.5  # what the probability of a label must exceed


def above(proba: np.ndarray) -> np.ndarray:
    """The labels above 0.5, as a 0/1 matrix."""
    return (proba > T1).astype(np.int8)


def above_or_best(proba: np.ndarray) -> np.ndarray:
    """The labels above 0.5 and the most probable one: no row stays empty (entity typing).

    Of equal probabilities the first counts as the largest, here and below.
    """
    chosen = above(proba)
    chosen[np.arange(len(proba)), proba.argmax(axis=1)] = 1
    return chosen


def above_or_best_over(proba: np.ndarray, limit: float) -> np.ndarray:
    """The labels above 0.5; where there are none, the most probable if above `limit` (DialogRE).

    `limit` is often called T2.
    """
    chosen, rows, best = above(proba), np.arange(len(proba)), proba.argmax(axis=1)
    chosen[rows, best] |= ~chosen.any(axis=1) & (proba[rows, best] > limit)
    return chosen


def tune_second_threshold(proba: np.ndarray, labels: np.ndarray) -> float:
    """Find the T2 that maximises micro-F1, exactly.

    The rows without a label above 0.5 are sorted by their largest probability; micro-F1 is computed
    for every possible cut, so no grid is involved.

    Parameters
    ----------
    proba, labels : ndarray of shape (n, m)
        Probabilities, and the true labels as 0 and 1.

    Returns
    -------
    float
        The threshold, midway between two probabilities. Where cuts tie, the one that adds the
        fewest labels wins; if none is worth adding, the result is 0.5.
    """
    base, best = above(proba), proba.max(axis=1)
    hits, predicted, true = (float(v.sum()) for v in (labels * base, base, labels))
    rows = np.flatnonzero((best <= T1) & (best > 0))
    rows = rows[np.argsort(-best[rows], kind="stable")]
    level = best[rows]
    hit = labels[rows, proba[rows].argmax(axis=1)].astype(float)
    # Entry c is the score with the first c rows given their best label.
    total = np.maximum(predicted + np.arange(rows.size + 1) + true, 1)  # nothing at all: F1 is 0
    f1 = 2 * (hits + np.append(0, np.cumsum(hit))) / total
    whole = np.append(True, np.append(level[1:] < level[:-1], True)[: rows.size])
    cut = int(np.argmax(np.where(whole, f1, -1.0)))
    if cut == 0:
        return T1
    below = level[cut] if cut < rows.size else level.dtype.type(0)
    middle = below + (level[cut - 1] - below) / 2
    return float(middle if middle < level[cut - 1] else below)
