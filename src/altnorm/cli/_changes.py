"""How much a model changes: rows, and decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm._base.words import plural
from altnorm.families import Identity
from altnorm.method.kinds import kind_of


class ChangeCount:
    """Adds up how many rows, and how many decisions, a model changes.

    Parameters
    ----------
    normalizer : estimator
        The model. Nothing is counted of one that changes nothing.
    """

    def __init__(self, normalizer: Any) -> None:
        self.normalizer = normalizer
        applied = getattr(normalizer, "best_normalizer_", normalizer)
        parts = (getattr(normalizer, name, None) for name in ("temperatures_", "calibrator_"))
        self.active = not isinstance(applied, Identity) or any(p is not None for p in parts)
        self.n_rows = self.n_decisions = 0

    def add(self, values: np.ndarray, after: np.ndarray) -> None:
        """Count predictions as the file held them, and as they became."""
        if not self.active or not len(values):
            return
        kind = kind_of(self.normalizer)
        before = values
        if self.normalizer.input == "logits":
            before = kind.from_logits(values)
        self.n_rows += int((before != after).any(axis=1).sum())
        self.n_decisions += int(np.count_nonzero(kind.decide(before) != kind.decide(after)))

    def __str__(self) -> str:
        if not self.active:
            return "the model changes nothing"
        noun = kind_of(self.normalizer).words.decision
        return f"{plural(self.n_rows, 'row')} and {plural(self.n_decisions, noun)} changed"
