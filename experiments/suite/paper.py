"""Alternating normalization as the paper tunes it: the best setting on validation data itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import altnorm
from altnorm.metrics import resolve_scoring

ALPHAS = (*np.round(np.arange(1, 10) * 0.1, 1), *np.arange(1.0, 36.0))
THRESHOLDS = (0.25, 0.5, 0.75)


class PaperTuning(BaseEstimator):
    """Confident rows as reference, counted class frequencies as prior, no held-out evidence.

    Parameters
    ----------
    depth : int, default=1
        Largest number of iterations to try. The paper goes to 5; small depths win, and beyond 1
        large exponents make the search slow.
    multilabel : None or "pairs", default=None
        As for :class:`altnorm.AlternatingNormalizer`.
    """

    def __init__(self, depth: int = 1, multilabel: str | None = None) -> None:
        self.depth = depth
        self.multilabel = multilabel

    def fit(self, proba: np.ndarray, y: np.ndarray) -> PaperTuning:
        """Choose the setting with the best score on the rows it is fitted on."""
        several = self.multilabel is not None
        score = resolve_scoring("f1_micro" if several else "accuracy", several)
        best = -np.inf
        for alpha in ALPHAS:
            for threshold in THRESHOLDS:
                for depth, after in enumerate(self._steps(proba, y, alpha, threshold), start=1):
                    pred = after > 0.5 if several else after.argmax(axis=1)
                    found = score(y, pred)
                    if found > best:
                        best, self.best_params_ = (
                            found,
                            dict(alpha=float(alpha), depth=depth, threshold=threshold),
                        )
        self.normalizer_ = self._normalizer(**self.best_params_).fit(proba, y)
        return self

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Apply the chosen setting."""
        return self.normalizer_.transform(proba)

    def _normalizer(self, **settings: Any) -> altnorm.AlternatingNormalizer:
        return altnorm.AlternatingNormalizer(**settings, multilabel=self.multilabel)

    def _steps(self, proba: np.ndarray, y: np.ndarray, alpha: float, threshold: float) -> Any:
        """Validation predictions after 1, 2, .. iterations; none without confident rows."""
        if self.multilabel is not None:
            for depth in range(1, self.depth + 1):
                settings = dict(alpha=float(alpha), depth=depth, threshold=threshold)
                yield self._normalizer(**settings).fit(proba, y).transform(proba)
            return
        doubtful = altnorm.ambiguity(proba) > threshold
        if doubtful.all():
            return
        prior = np.bincount(y, minlength=proba.shape[1]) / len(y)
        steps = altnorm.trajectory(
            proba[doubtful],
            proba[~doubtful],
            prior=prior,
            alpha=float(alpha),
            depth=self.depth,
        )
        for step in steps[1:]:
            after = proba.copy()
            after[doubtful] = step
            yield after
