"""The methods that are compared, each fitted on predictions of which some have a label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

import altnorm
from altnorm import peers

__all__ = ["DIVIDED", "NEEDS_LABELS", "NO_LABELS", "OURS", "LearntBatchCalibration", "fit_method"]

# The paper of batch calibration tries strengths from -5 to 5; below 0 it would favour favourites.
STRENGTHS = np.round(np.arange(0, 51) * 0.1, 1)


class BatchCalibration(BaseEstimator):
    """Batch calibration as published: by the mean prediction of the rows to be adjusted."""

    strength_ = 1.0

    def fit(self, proba: np.ndarray) -> Self:
        """Learn nothing."""
        return self

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Divide by the mean prediction of these rows, raised to the strength."""
        return _calibrate(proba, self.strength_)


class LearntBatchCalibration(BatchCalibration):
    """Batch calibration whose strength is the one with the most labelled rows right."""

    def fit(self, proba: np.ndarray, y: np.ndarray) -> Self:
        """Choose the strength; rows whose label is None only count for the mean prediction."""
        known = np.array([label is not None for label in y])
        labels = np.array(list(y[known]))
        right = [
            np.mean(_calibrate(proba, strength)[known].argmax(axis=1) == labels)
            for strength in STRENGTHS
        ]
        best = np.flatnonzero(np.array(right) == max(right))
        # Of equally good ones the nearest to the usual strength.
        self.strength_ = float(STRENGTHS[best[np.abs(STRENGTHS[best] - 1).argmin()]])
        return self


def _calibrate(proba: np.ndarray, strength: float) -> np.ndarray:
    return peers.BatchCalibration(gamma=float(strength)).fit_transform(proba)


DIVIDED = "divided by the mean prediction"


def _divided() -> altnorm.AlternatingNormalizer:
    """Depth 1, a uniform prior, all rows as reference, and every row adjusted."""
    return altnorm.AlternatingNormalizer(threshold=0.0, prior="uniform", reference="all")


NO_LABELS: dict[str, Callable[[], Any]] = {
    "batch calibration": BatchCalibration,
    DIVIDED: _divided,
    "AlternatingNormalizer": lambda: altnorm.AlternatingNormalizer(prior="uniform"),
}
"""Methods that see predictions only."""

NEEDS_LABELS: dict[str, Callable[[], Any]] = {
    "batch calibration, learnt": LearntBatchCalibration,
    "temperature": peers.TemperatureScaling,
    "BCTS": peers.BiasCorrectedTemperature,
    "AlternatingNormalizerCV": altnorm.AlternatingNormalizerCV,
    "Adjuster": altnorm.Adjuster,
}
"""Methods that take labels."""

OURS = ("AlternatingNormalizerCV", "Adjuster")
_TAKES_GAPS = ("batch calibration, learnt", *OURS)


def fit_method(name: str, proba: np.ndarray, y: np.ndarray, known: np.ndarray) -> Any:
    """Fit a method on predictions, of which the `known` ones have a label.

    Parameters
    ----------
    name : str
        One of `NO_LABELS` or `NEEDS_LABELS`.
    proba : ndarray of shape (n_samples, n_classes)
        Validation predictions.
    y : ndarray of int of shape (n_samples,)
        Their labels.
    known : ndarray of bool of shape (n_samples,)
        Which of these may be used.

    Returns
    -------
    object
        With a method `transform`. Rows without a label are passed to what can use them.
    """
    if name in NO_LABELS:
        return NO_LABELS[name]().fit(proba)
    method = clone(NEEDS_LABELS[name]())
    if name not in _TAKES_GAPS:
        return method.fit(proba[known], y[known])
    labels = y if known.all() else np.where(known, y.astype(object), None)
    return method.fit(proba, labels)
