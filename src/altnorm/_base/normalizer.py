"""What a fitted normalizer is to those who apply, judge or deploy it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class FittedNormalizer(Protocol):
    """An Adjuster, an AlternatingNormalizer, a peer, or any fitted object that has what they have.

    What only some of them have, such as `decision_` or `temperature_`, is asked for by name.
    """

    input: str  # "proba" or "logits": what the methods take
    multilabel: str | None  # as `altnorm.method.kinds.resolve_kind` takes it
    classes_: np.ndarray  # (m,) the class that each column stands for

    def transform(self, proba: Any) -> Any:
        """Return adjusted class probabilities, (n, m)."""

    def predict(self, proba: Any) -> Any:
        """Return the decision of each row: a class, None if left to a person, or 0/1 labels."""
