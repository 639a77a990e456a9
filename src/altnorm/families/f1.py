"""Decision thresholds that maximise F1 exactly instead of on a grid.

With row weights w, labels y and probabilities p, deciding ``p > t`` gives

    F1(t) = 2 tp(t) / (predicted(t) + actual),    tp = sum w y [p > t],  predicted = sum w [p > t].

Between two probabilities of entries that do have the label, lowering `t` only adds wrong
decisions. So the best `t` lies just below one of these probabilities, here called levels.
"""

from __future__ import annotations

import numpy as np


def levels(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the distinct positive probabilities of the entries that have the label, rising."""
    return np.unique(p[y & (p > 0)])


def sum_from(p: np.ndarray, level: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Return, for each level, the sum of `amount` over the entries with ``p >= level``."""
    sums = np.bincount(np.searchsorted(level, p, side="right"), amount, minlength=level.size + 1)
    return np.cumsum(sums[:0:-1])[::-1]


def f1_at(
    p: np.ndarray, y: np.ndarray, weight: np.ndarray, level: np.ndarray, beta: float = 1.0
) -> np.ndarray:
    """Return F1, or F-beta, with the threshold just below each level."""
    true = sum_from(p[y], level, weight[y])
    return (1 + beta**2) * true / (sum_from(p, level, weight) + beta**2 * weight[y].sum())


def f1_gains(p: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return what F1 gains (or loses) by each entry as the threshold falls past it.

    Entries of equal probability are passed one after the other; only the sum over all of them
    means something.
    """
    order = np.argsort(-p)
    f1 = 2 * np.cumsum((weight * y)[order])
    f1 /= np.cumsum(weight[order]) + weight @ y
    gains = np.empty_like(f1)
    gains[order] = np.diff(f1, prepend=0.0)
    return gains


def best_threshold(p: np.ndarray, level: np.ndarray, score: np.ndarray) -> float:
    """Return the threshold midway between the level of highest score and the next entry below.

    Of equally good levels it is the nearest to 0.5; without any level the threshold is 0.5.
    """
    if not level.size:
        return 0.5
    best = level[score >= score.max() * (1 - 1e-10)]
    high = best[np.argmin(np.abs(best - 0.5))]
    low = np.max(p, initial=0, where=p < high)
    middle = low + (high - low) / 2
    # Between neighbouring floats the middle may round up to `high`, which must stay above.
    return float(max(middle if middle < high else low, np.finfo(p.dtype).tiny))


def shift_threshold(p: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Shift log-odds so that `threshold`, in (0, 1), lands on 0.5; decisions stay exactly."""
    raised = p * (1 - threshold)
    shifted = raised / (raised + (1 - p) * threshold)
    half = p.dtype.type(0.5)
    above = np.maximum(shifted, np.nextafter(half, p.dtype.type(1)))
    return np.where(p > threshold, above, np.minimum(shifted, half))
