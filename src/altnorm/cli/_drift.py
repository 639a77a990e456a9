"""Watch a stream for predictions that the model's reference no longer fits."""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm.drift import Drift, Usage, measure_drift

__all__ = ["DriftWatch"]

_SAMPLE = 512  # rows looked at in a batch: enough in all, and a small share of the work


class DriftWatch:
    """Adds up how predictions use the classes.

    Parameters
    ----------
    normalizer : estimator
        The model. Watches nothing unless it is, or has chosen, an `AlternatingNormalizer`.
    """

    def __init__(self, normalizer: Any) -> None:
        self.normalizer = normalizer
        self.chosen = getattr(normalizer, "best_normalizer_", normalizer)
        self.active = hasattr(self.chosen, "usage_counts_")
        self.usage: Usage | None = None

    def sample(self, n_rows: int) -> np.ndarray:
        """Return which rows of a batch to look at, spread over it."""
        return np.unique(np.linspace(0, n_rows - 1, min(n_rows, _SAMPLE)).astype(int))

    def add(self, values: np.ndarray) -> None:
        """Count predictions as the file holds them, known to be sound."""
        if self.active and len(values):
            now = self.chosen._usage(self.normalizer._check_transform(values))
            before = self.usage or Usage(np.zeros_like(now.counts), 0, 0)
            self.usage = Usage(*(a + b for a, b in zip(before, now, strict=True)))

    def result(self) -> Drift | None:
        """Return the comparison with what was seen at fit, if there is anything to compare."""
        if self.usage is None:
            return None
        fitted = Usage(self.chosen.usage_counts_, *self.chosen.usage_doubt_)
        return measure_drift(fitted, self.usage)
