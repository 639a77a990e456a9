"""Rows like a classifier's."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

SURE, IN_DOUBT = 12.0, 4.0  # logits that the planted class is ahead by, on average


def classifier_rows(rng: np.random.Generator, n: int, m: int, margin: float) -> np.ndarray:
    """Softmax of Gaussian logits with one planted class a row."""
    logits = rng.normal(size=(n, m))
    logits[np.arange(n), rng.integers(0, m, n)] += rng.normal(margin, 1.0, n)
    return np.asarray(softmax(logits, axis=1))


def class_prior(rng: np.random.Generator, m: int) -> np.ndarray:
    """Uneven class frequencies."""
    return rng.dirichlet(np.full(m, 5.0))
