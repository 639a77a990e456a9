"""How much a model changes: rows, and decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm._base.words import plural
from altnorm.decisions.purpose import HALF
from altnorm.families import Identity
from altnorm.method.kinds import kind_of


class ChangeCount:
    """Adds up how many rows, and how many decisions, a model changes.

    Parameters
    ----------
    fitted : estimator
        The model. Nothing is counted of one that changes nothing.
    """

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted
        self.decision = getattr(fitted, "decision_", None)
        self.active = not _changes_nothing(fitted)
        self.n_rows = self.n_decisions = self.n_left = 0

    def add(self, values: np.ndarray, after: np.ndarray) -> None:
        """Count predictions as the file held them, and as they became."""
        if not self.active or not len(values):
            return
        kind = kind_of(self.fitted)
        before = kind.from_logits(values) if self.fitted.input == "logits" else values
        # As written: in single precision that may tip a tie, and a count can bear it.
        decided = kind.decide(after) if self.decision is None else self.decision.codes(after)
        self.n_rows += int((before != after).any(axis=1).sum())
        self.n_decisions += int(np.count_nonzero(kind.decide(before) != decided))
        if self.decision is not None and self.decision.leaves_rows:
            self.n_left += int(np.count_nonzero(decided == after.shape[1]))

    def __str__(self) -> str:
        if not self.active:
            return "the model changes nothing"
        noun = kind_of(self.fitted).words.decision
        text = f"{plural(self.n_rows, 'row')} and {plural(self.n_decisions, noun)} changed"
        return f"{text}, {plural(self.n_left, 'row')} left to a person" if self.n_left else text


def _changes_nothing(fitted: Any) -> bool:
    model = getattr(fitted, "model_", getattr(fitted, "best_normalizer_", fitted))
    as_before = getattr(fitted, "temperature_", 1.0) == 1 and isinstance(model, Identity)
    decision = getattr(fitted, "decision_", None)
    if decision is None or decision.kind != "thresholds":
        return as_before and (decision is None or decision.is_argmax)
    return as_before and bool((decision.values == HALF).all())
