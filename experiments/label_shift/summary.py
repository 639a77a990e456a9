"""Numbers that the page and the figure share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.label_shift.study import OTHER_PEOPLE, Case

__all__ = ["gain", "other_people", "resampled", "share_of_oracle"]


def resampled(cases: Sequence[Case]) -> list[Case]:
    """Cases of classifiers whose validation and test rows are alike."""
    return [case for case in cases if not case.classifier.startswith(OTHER_PEOPLE)]


def other_people(cases: Sequence[Case]) -> list[Case]:
    """Cases of classifiers whose test rows are of other people."""
    return [case for case in cases if case.classifier.startswith(OTHER_PEOPLE)]


def gain(cases: Sequence[Case], method: str) -> float:
    """Mean gain over not adapting, in points."""
    return float(np.mean([case.scores[method] - case.scores["none"] for case in cases]))


def share_of_oracle(cases: Sequence[Case], method: str = "adapt") -> float:
    """Which part of the oracle's mean gain a method reaches."""
    return gain(cases, method) / gain(cases, "oracle")
