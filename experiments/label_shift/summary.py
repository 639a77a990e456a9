"""Numbers that the tables and the figure share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.label_shift.study import OTHER_PEOPLE, Case

__all__ = [
    "SIZES",
    "WANTED",
    "biases_alone",
    "gain",
    "gains",
    "knowable",
    "other_people",
    "resampled",
    "share_of_oracle",
    "size",
    "strong_cases",
    "worst",
]

WANTED = 0.85
"""Part of the oracle's gain that adapting should reach."""

SIZES = {"up to 250": 250, "251 to 1,000": 1000, "more": np.inf}


def resampled(cases: Sequence[Case]) -> list[Case]:
    """Cases of classifiers whose validation and test rows are alike."""
    return [case for case in cases if not case.classifier.startswith(OTHER_PEOPLE)]


def strong_cases(cases: Sequence[Case]) -> list[Case]:
    """Re-sampled sets with a strong shift, or in which one class dominates."""
    return [c for c in resampled(cases) if c.shift in ("strong", "one class dominates")]


def other_people(cases: Sequence[Case]) -> list[Case]:
    """Cases of classifiers whose test rows are of other people."""
    return [case for case in cases if case.classifier.startswith(OTHER_PEOPLE)]


def size(case: Case) -> str:
    """How many new rows, in words."""
    return next(name for name, most in SIZES.items() if case.n_new <= most)


def knowable(cases: Sequence[Case]) -> list[Case]:
    """Cases of cells (classifier, shift, number of rows) where the informed reach 85 %."""
    cells: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        cells.setdefault((case.classifier, case.shift, size(case)), []).append(case)
    return [
        case
        for cell in cells.values()
        if gain(cell, "informed") >= WANTED * gain(cell, "oracle")
        for case in cell
    ]


def biases_alone(cases: Sequence[Case]) -> list[Case]:
    """The same cases as if there were no matrix family."""
    return [
        case._replace(none=case.none_bias, adapt=case.adapt_bias, oracle=case.oracle_bias)
        for case in cases
    ]


def gains(cases: Sequence[Case], method: str) -> list[float]:
    """Gain of each case over not adapting, in points."""
    return [getattr(case, method) - case.none for case in cases]


def gain(cases: Sequence[Case], method: str) -> float:
    """Mean gain over not adapting, in points."""
    return float(np.mean(gains(cases, method)))


def worst(cases: Sequence[Case], method: str) -> float:
    """The lowest gain of all."""
    return min(gains(cases, method))


def share_of_oracle(cases: Sequence[Case], method: str = "adapt") -> float:
    """Which part of the oracle's mean gain a method reaches."""
    return gain(cases, method) / gain(cases, "oracle")
