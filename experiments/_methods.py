"""What several studies need: a menu of settings, and a method that nobody would deploy."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from altnorm.peers import LabelThresholds

__all__ = ["SMALL_MENU", "GlobalThreshold"]

SMALL_MENU: dict[str, Any] = {
    "alphas": (0.5, 1.0, 2.0),
    "thresholds": (0.25,),
    "references": ("all",),
    "smoothings": (0.0, 0.1),
}
"""Options of `AlternatingNormalizerCV`: few settings, the ones that compete in `Adjuster`."""


class GlobalThreshold(BaseEstimator):
    r"""One decision threshold for all labels, the one of highest micro-F1.

    It is the one that :class:`altnorm.peers.LabelThresholds` shrinks to. `transform` moves the
    probabilities so that a decision at 0.5 gives the same answer:
    :math:`\operatorname{logit} p' = \operatorname{logit} p - \operatorname{logit} t`.
    """

    def fit(self, proba: np.ndarray, y: np.ndarray) -> Self:
        """Find the threshold on validation data."""
        self.threshold_: float = LabelThresholds().fit(proba, y).global_threshold_
        return self

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Shift log-odds so that the threshold lands on 0.5."""
        raised = proba * (1 - self.threshold_)
        shifted = raised / (raised + (1 - proba) * self.threshold_)
        # Rounding must not carry a probability next to the threshold to the other side.
        above = np.maximum(shifted, np.nextafter(0.5, 1))
        return np.where(proba > self.threshold_, above, np.minimum(shifted, 0.5))
