"""Cross-fitted predictions as the score needs them, and what the test wants to know beside."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from altnorm._base.arrays import Array, array_namespace, column_of_max, entries_at, to_numpy
from altnorm.adjuster.attribution import sureness


class Predictions(NamedTuple):
    """Predictions as the score needs them and, where it is asked for, how sure changes are.

    That is asked for what is on the menu. Probabilities do not need it, since they say it.
    """

    values: np.ndarray  # class codes (n,), probabilities (n, m) or booleans (n, m)
    sure: np.ndarray | None = None  # (n,)

    @classmethod
    def room(cls, size: int, base: np.ndarray, *, sure: bool) -> Self:
        """Make room for predictions of the same kind as the untouched ones."""
        values = np.empty((size, *base.shape[1:]), base.dtype)
        return cls(values, np.zeros(size, np.float32) if sure and base.ndim == 1 else None)

    @classmethod
    def of(cls, proba: Array, base: np.ndarray, *, sure: bool) -> Self:
        """Read adjusted probabilities as `base`, their rows' untouched predictions, are read."""
        if base.ndim == 2:
            return cls(to_numpy(proba))
        codes = column_of_max(proba)
        if not sure:
            return cls(codes)
        return cls(codes, sureness(entries_at(proba, base) / entries_at(proba, codes)))

    @classmethod
    def of_logs(cls, log_p: Array, base: np.ndarray, *, sure: bool) -> Self:
        """Read logarithms of adjusted probabilities."""
        if base.ndim == 2:
            return cls.of(array_namespace(log_p).exp(log_p), base, sure=sure)
        codes = column_of_max(log_p)
        if not sure:
            return cls(codes)
        ratio = np.exp(entries_at(log_p, base) - entries_at(log_p, codes))
        return cls(codes, sureness(ratio))

    def put(self, rows: np.ndarray, new: Predictions) -> None:
        """Replace those of some rows."""
        self.values[rows] = new.values
        if self.sure is not None:
            self.sure[rows] = new.sure

    def head(self, size: int) -> Predictions:
        """Those of the first rows."""
        return Predictions(self.values[:size], None if self.sure is None else self.sure[:size])
