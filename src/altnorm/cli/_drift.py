"""Watch a stream for predictions that the model's reference no longer fits."""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm.cli._sample import RowSample
from altnorm.method.drift import Drift, Usage, count_usage, fitted_usage, measure_drift
from altnorm.method.estimator import unnamed
from altnorm.method.kinds import kind_of

_SAMPLE = 512  # rows looked at in a batch: enough in all, and a small share of the work


class DriftWatch:
    """Adds up how predictions use the classes.

    Parameters
    ----------
    normalizer : estimator
        The model. Watches nothing unless it was tuned on labels or has a reference.
    """

    def __init__(self, normalizer: Any) -> None:
        self.normalizer = normalizer
        self.chosen = getattr(normalizer, "best_normalizer_", normalizer)
        # Only a model that was fitted to labels, one per row, keeps what `drift` compares with.
        self.keeps_rows = getattr(normalizer, "balance_rows_", None) is not None
        self.active = self.keeps_rows or hasattr(self.chosen, "reference_")
        self.usage: Usage | None = None
        self.seen = RowSample()

    def sample(self, n_rows: int) -> np.ndarray:
        """Return which rows of a batch to look at, spread over it."""
        return np.unique(np.linspace(0, n_rows - 1, min(n_rows, _SAMPLE)).astype(int))

    def add(self, values: np.ndarray) -> None:
        """Count predictions as the file holds them, known to be sound."""
        if not self.active or not len(values):
            return
        if self.keeps_rows:
            self.seen.add(values)
        else:
            proba = kind_of(self.normalizer).read(np.asarray(values), self.normalizer.input)
            now = count_usage(self.chosen, proba)
            self.usage = now if self.usage is None else self.usage.plus(now)

    def result(self) -> Drift | None:
        """Return the comparison with what was seen at fit, if there is anything to compare."""
        if self.seen.rows is not None:
            return unnamed(self.normalizer).drift(self.seen.rows)
        if self.usage is None:
            return None
        return measure_drift(fitted_usage(self.chosen), self.usage)
