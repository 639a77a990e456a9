"""Gains over the classifiers of the suite: means, intervals over sources, and clear ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from experiments.suite.measure import UNTOUCHED
from experiments.suite.names import source_of

__all__ = [
    "Rows",
    "by_key",
    "clear_counts",
    "gains",
    "holm_counts",
    "mean_within",
    "names_of",
    "p_value",
    "passes_holm",
    "relative_loss",
    "source_interval",
]

Rows = Sequence[dict[str, Any]]
N_RESAMPLED = 2000
LEVEL = 0.05


def by_key(rows: Rows) -> dict[tuple[str, str], dict[str, Any]]:
    """Records by classifier and method."""
    return {(r["classifier"], r["method"]): r for r in rows}


def names_of(rows: Rows) -> list[str]:
    """The classifiers, in their order."""
    return list(dict.fromkeys(r["classifier"] for r in rows))


def gains(rows: Rows, method: str, score: str = "accuracy") -> dict[str, float]:
    """Gain over the untouched predictions by classifier, where the method was tried."""
    found = by_key(rows)
    return {
        name: found[name, method][score] - found[name, UNTOUCHED][score]
        for name in names_of(rows)
        if (name, method) in found
    }


def source_interval(values: Mapping[str, float], seed: int = 0) -> tuple[float, float]:
    """Ends of a 95 % interval for the mean: sources are drawn anew, with all their classifiers."""
    sources: dict[str, list[float]] = {}
    for name, value in values.items():
        sources.setdefault(source_of(name), []).append(value)
    sums = np.array([(sum(some), len(some)) for some in sources.values()])
    rng = np.random.default_rng(seed)
    drawn = sums[rng.integers(len(sums), size=(N_RESAMPLED, len(sums)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (0.025, 0.975))
    return float(low), float(high)


def mean_within(values: Mapping[str, float]) -> str:
    """Mean with its interval over sources."""
    low, high = source_interval(values)
    return f"{np.mean(list(values.values())):+.2f} [{low:+.2f}, {high:+.2f}]"


def relative_loss(rows: Rows, method: str) -> dict[str, float]:
    """Log loss divided by that of the untouched predictions, by classifier."""
    found = by_key(rows)
    return {
        name: found[name, method]["log_loss"] / found[name, UNTOUCHED]["log_loss"]
        for name in names_of(rows)
        if (name, method) in found
    }


def clear_counts(rows: Rows) -> str:
    """Records whose 95 % interval is above 0, and below."""
    better, worse = (sum(r["ci_low"] > 0 for r in rows), sum(r["ci_high"] < 0 for r in rows))
    return f"{better} / {worse}"


def holm_counts(rows: Rows) -> str:
    """Better and worse ones that are still clear when all records of a method count as one test."""
    passed = passes_holm([p_value(r) for r in rows])
    chosen = [r["gain"] for r, passes in zip(rows, passed, strict=True) if passes]
    return f"{sum(gain > 0 for gain in chosen)} / {sum(gain < 0 for gain in chosen)}"


def p_value(row: Mapping[str, Any]) -> float:
    """Two-sided p-value of a gain, of the test that its 95 % interval belongs to."""
    half = (row["ci_high"] - row["ci_low"]) / 2
    return float(2 * norm.sf(norm.isf(0.025) * abs(row["gain"]) / half)) if half else 1.0


def passes_holm(p_values: Sequence[float], level: float = LEVEL) -> np.ndarray:
    """Which of several tests pass so that one wrong pass among them has at most this probability.

    Holm's procedure: the k-th smallest p-value (k from 0) of n must be at most level / (n - k), and
    so must be all smaller ones.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    small = p[order] <= level / (p.size - np.arange(p.size))
    passed = np.zeros(p.size, dtype=bool)
    passed[order] = np.logical_and.accumulate(small)
    return passed
