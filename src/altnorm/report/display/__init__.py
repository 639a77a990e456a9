"""Figures for notebooks: scikit-learn-style displays that compute once and draw later.

Each display has `from_predictions` or `from_estimator`, which compute, and `plot`, which draws on a
matplotlib axes. The numbers come from :mod:`altnorm.report.display._measures`, as those of the
report do.
"""

from altnorm.report.display._confidence import AmbiguityDisplay, ReliabilityDisplay
from altnorm.report.display._settings import ClassUseDisplay, FixedBrokenDisplay
from altnorm.report.display._tuning import TuningDisplay

__all__ = [
    "AmbiguityDisplay",
    "ClassUseDisplay",
    "FixedBrokenDisplay",
    "ReliabilityDisplay",
    "TuningDisplay",
]
