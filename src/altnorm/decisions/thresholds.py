"""Thresholds for several labels per row: one for all labels, or one for each."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from altnorm.families.thresholds import best_threshold, f1_at, f1_gains, levels, sum_from

SHRINKAGE = 10.0
"""Rows with a label at which its own threshold and the common one count equally."""


def common_threshold(p: np.ndarray, y: np.ndarray, weight: np.ndarray, beta: float = 1.0) -> float:
    """Return the threshold of best micro-F for all labels together."""
    every = np.repeat(weight, p.shape[1])
    return label_threshold(p.ravel(), y.ravel(), every, beta)


def rows_threshold(p: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the common threshold of best F1 of a row, on average."""
    ones = np.ones(p.shape[1])
    gains = np.stack([f1_gains(*row, ones) for row in zip(p, y, strict=True)]) * weight[:, None]
    level = levels(p, y)
    return best_threshold(p, level, sum_from(p.ravel(), level, gains.ravel()))


def label_threshold(p: np.ndarray, y: np.ndarray, weight: np.ndarray, beta: float = 1.0) -> float:
    """Return the threshold of best F for one label, or for entries taken as one."""
    level = levels(p, y)
    return best_threshold(p, level, f1_at(p, y, weight, level, beta))


def shrunk_thresholds(
    p: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    beta: float = 1.0,
    shrinkage: float = SHRINKAGE,
) -> np.ndarray:
    """Return a threshold for each label, shrunk towards the common one where it is rare."""
    columns = zip(p.T, y.T, strict=True)
    own = np.array([label_threshold(*column, weight, beta) for column in columns])
    common = np.full(own.size, common_threshold(p, y, weight, beta))
    return shrink(own, common, weight @ y, shrinkage)


def shrink(own: np.ndarray, common: np.ndarray, n: np.ndarray, shrinkage: float) -> np.ndarray:
    """Mix log-odds of thresholds: `n` rows speak for the label's own, `shrinkage` for the other."""
    trust = np.divide(n, n + shrinkage, out=np.zeros(own.size), where=n > 0)
    blended = expit(trust * logit(own) + (1 - trust) * logit(common))
    # The two ends are returned as they are: logit and back would round them.
    return np.select([trust == 1, trust == 0], [own, common], blended)
