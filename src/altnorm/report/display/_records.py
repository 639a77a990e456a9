"""The records that figures are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class AmbiguityHistogram:
    """How ambiguous the rows are and, with labels, how often each bin is right.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Bounds of the bins, from 0 to 1.
    count : ndarray of shape (n_bins,)
        Rows in each bin; for multi-label problems yes/no decisions.
    right_before, right_after : ndarray of shape (n_bins,) or None
        How many of them are right before and after the adjustment.
    threshold : float or None
        Rows above it are in doubt.
    """

    edges: np.ndarray
    count: np.ndarray
    right_before: np.ndarray | None = None
    right_after: np.ndarray | None = None
    threshold: float | None = None


@dataclass(frozen=True, eq=False)
class ClassUse:
    """Class prior against the share of each class in the reference.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Names.
    prior : ndarray of shape (n_classes,)
        Share of each class that the prior expects.
    used : ndarray of shape (n_classes,)
        Share of each class that the reference rows use up.
    """

    classes: np.ndarray
    prior: np.ndarray
    used: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        """Share used over share expected; 1 where both are zero."""
        safe = np.where(self.prior > 0, self.prior, 1.0)
        return np.where(self.prior > 0, self.used / safe, np.where(self.used > 0, np.inf, 1.0))


@dataclass(frozen=True, eq=False)
class ClassChanges:
    """Changed decisions by class.

    Attributes
    ----------
    gained, lost : ndarray of shape (n_classes,)
        Rows that came to each class, and rows that left it.
    fixed, broken : ndarray of shape (n_classes,) or None
        Of the rows that truly have the class, those that became right and wrong; for multi-label
        problems the yes/no decisions about the label.
    """

    gained: np.ndarray
    lost: np.ndarray
    fixed: np.ndarray | None = None
    broken: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Flows:
    """Rows that moved from one class to another, largest flow first.

    Attributes
    ----------
    source, target : ndarray of int, shape (n_flows,)
        Column of the class before and after.
    count : ndarray of int, shape (n_flows,)
        Rows that moved.
    fixed, broken : ndarray of int, shape (n_flows,), or None
        How many of them became right, and wrong.
    """

    source: np.ndarray
    target: np.ndarray
    count: np.ndarray
    fixed: np.ndarray | None = None
    broken: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class TuningCurve:
    """Best score at each exponent, for one depth and threshold."""

    depth: int
    threshold: float
    alpha: np.ndarray
    score: np.ndarray


@dataclass(frozen=True, eq=False)
class TuningCurves:
    """Cross-fitted score against the exponent.

    Attributes
    ----------
    curves : tuple of TuningCurve
        One for each threshold and depth, best over references and smoothings.
    base : float
        Score without an adjustment.
    best : dict
        "alpha", "depth", "threshold" and "score" of the best setting.
    n_settings : int
        Settings that were compared.
    """

    curves: tuple[TuningCurve, ...]
    base: float
    best: dict[str, float]
    n_settings: int


@dataclass(frozen=True, eq=False)
class Reliability:
    """Mean confidence against the share that is right, in bins of equally many predictions.

    Attributes
    ----------
    confidence, right, count : ndarray of shape (n_bins,)
        Mean probability, share that is right, and predictions in each bin.
    error : float
        Expected calibration error: mean distance of the two, weighted by the counts.
    histogram : ndarray of shape (20,)
        Predictions by confidence, in bins of equal width.
    """

    confidence: np.ndarray
    right: np.ndarray
    count: np.ndarray
    error: float
    histogram: np.ndarray
