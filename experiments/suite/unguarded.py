"""What would be applied if nobody asked for evidence: the suite puts it beside what is adopted."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, peers

__all__ = ["AlwaysAlternating", "UnguardedAdjuster", "steps_of"]


class AlwaysAlternating(BaseEstimator):
    """The setting that a search finds best, applied whatever its verdict says."""

    def __init__(self, search: AlternatingNormalizerCV) -> None:
        self.search = search

    def fit(self, proba: np.ndarray, y: np.ndarray) -> Self:
        """Search, and fit the best setting."""
        found = clone(self.search).fit(proba, y)
        best = AlternatingNormalizer(**found.best_params_, prior=found.prior)
        self.normalizer_ = best.fit(proba, y)
        return self

    def transform(self, proba: np.ndarray) -> Any:
        """Apply it."""
        return self.normalizer_.transform(proba)


class UnguardedAdjuster(BaseEstimator):
    """The candidate of least cross-fitted log loss, applied without a test."""

    def fit(self, proba: np.ndarray, y: np.ndarray) -> Self:
        """Cross-fit all candidates, and fit the best."""
        # Input that looks wrong is refused without a test: that is no part of the guard.
        table = Adjuster(insist=True).fit(proba, y).cv_results_
        best = int(np.argmin(table["log_loss"]))
        chosen = {name: values[best] for name, values in table.items()}
        self.family_ = str(chosen["family"])
        self.steps_ = []
        for make in steps_of(chosen):
            step = make.fit(proba, y)
            self.steps_.append(step)
            proba = step.transform(proba)
        return self

    def transform(self, proba: np.ndarray) -> Any:
        """Apply it."""
        for step in self.steps_:
            proba = step.transform(proba)
        return proba


def steps_of(chosen: dict[str, Any]) -> list[Any]:
    """The candidate as estimators, to be applied one after the other."""
    family = chosen["family"]
    if family == "matrix":
        return [peers.MatrixScaling(float(chosen["strength"]), penalty=str(chosen["penalty"]))]
    if family == "bias":
        return [peers.BiasCorrectedTemperature(float(chosen["strength"]))]
    if family == "alternating":
        names = ("alpha", "threshold", "smoothing")
        setting = {name: float(chosen[name]) for name in names}
        setting |= {"depth": int(chosen["depth"]), "reference": str(chosen["reference"])}
        return [AlternatingNormalizer(**setting, prior="shrunk"), peers.TemperatureScaling()]
    return [peers.TemperatureScaling()] if family == "temperature" else [peers.Identity()]
