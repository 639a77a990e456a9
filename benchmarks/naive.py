"""The two defining equations, row by row: what one writes first."""

from __future__ import annotations

import numpy as np


def naive(
    proba: np.ndarray, reference: np.ndarray, prior: np.ndarray, *, alpha: float, depth: int
) -> np.ndarray:
    """Stack each row under the reference and iterate; NumPy does whole matrices at a time."""
    adjusted = np.empty_like(proba)
    for t, row in enumerate(proba):
        stacked = np.vstack([reference, row])
        for _ in range(depth):
            powers = stacked**alpha
            shares = powers / powers.sum(axis=0)
            stacked = shares * prior
            stacked = stacked / stacked.sum(axis=1, keepdims=True)
        adjusted[t] = stacked[-1]
    return adjusted
