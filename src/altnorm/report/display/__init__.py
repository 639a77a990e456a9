"""Figures for notebooks: scikit-learn-style displays that compute once and draw later.

Each display has `from_predictions` or `from_estimator`, which compute, and `plot`, which draws on a
matplotlib axes. The numbers come from :mod:`altnorm.report.measures`, as those of the report do.
"""

from altnorm.report.display._classes import FixedBrokenDisplay
from altnorm.report.display._curves import PurposeDisplay, ReliabilityDisplay

__all__ = ["FixedBrokenDisplay", "PurposeDisplay", "ReliabilityDisplay"]
