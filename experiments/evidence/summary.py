"""What the records come to: shares with exact intervals, and words that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from experiments.evidence.study import Record

__all__ = [
    "CONFIDENCE",
    "NOMINAL",
    "Honesty",
    "Mean",
    "Share",
    "compare_share",
    "count",
    "covers",
    "has_room",
    "honesty",
    "mean",
    "points",
    "select",
]

NOMINAL = 0.025  # significance 0.05, two-sided, and only gains are adopted
CONFIDENCE = 0.95  # of the verdict's interval, and of all intervals here
Z = 1.96
# The score of the best decisions and that of the same decisions, summed in another order.
ROUNDING = 1e-12


class Share(NamedTuple):
    """So many of so many, with an exact (Clopper-Pearson) interval."""

    n: int
    of: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share itself."""
        return self.n / self.of

    def __str__(self) -> str:
        ends = f"[{100 * self.low:.1f}, {100 * self.high:.1f}]"
        return f"{100 * self.value:.1f} % {ends}"


class Mean(NamedTuple):
    """A mean and its standard error (not a number for fewer than two values)."""

    value: float
    se: float

    @property
    def sign(self) -> int:
        """1 or -1 where the 95 % interval leaves no doubt of the sign, otherwise 0."""
        return int(np.sign(self.value)) if abs(self.value) > Z * self.se else 0

    def __str__(self) -> str:
        """In points; without an error where there is only one value."""
        error = "" if np.isnan(self.se) else f" ± {100 * Z * self.se:.2f}"
        return points(self.value) + error


class Honesty(NamedTuple):
    """The reported gain beside the true one."""

    reported: Mean
    true: Mean
    excess: Mean  # reported - true
    covered: Share
    below: int  # data sets whose true gain lies below the interval: less than promised
    above: int


def points(gain: float) -> str:
    """A gain in points, with its sign; one that rounds to nothing is +0.00."""
    return f"{round(100 * gain, 2) + 0.0:+.2f}"


def select(records: Sequence[Record], **values: Any) -> list[Record]:
    """Records with these values; a tuple stands for any of several."""
    allowed = {k: v if isinstance(v, tuple) else (v,) for k, v in values.items()}
    return [r for r in records if all(getattr(r, name) in v for name, v in allowed.items())]


def count(events: Sequence[bool]) -> Share:
    """Share of the events that are true, of at least one."""
    n, of = sum(map(bool, events)), len(events)
    interval = binomtest(n, of).proportion_ci(CONFIDENCE, method="exact")
    return Share(n, of, float(interval.low), float(interval.high))


def mean(values: Sequence[float]) -> Mean:
    """Mean of at least one value."""
    x = np.asarray(values, dtype=float)
    se = float(x.std(ddof=1) / np.sqrt(x.size)) if x.size > 1 else float("nan")
    return Mean(float(x.mean()), se)


def compare_share(share: Share, target: float) -> int:
    """1 if the interval lies above the target, -1 if below, 0 if it holds it."""
    return int(share.low > target) - int(share.high < target)


def has_room(records: Sequence[Record]) -> bool:
    """Whether there is anything to gain: decisions exist that are better than the classifier's."""
    return max(r.room for r in records) > ROUNDING


def covers(record: Record) -> bool:
    """Whether the reported interval holds the true gain of the best setting."""
    return record.ci_low - ROUNDING <= record.best <= record.ci_high + ROUNDING


def honesty(records: Sequence[Record]) -> Honesty:
    """Reported against true gains of the best settings."""
    missed = [r for r in records if not covers(r)]
    below = sum(r.best < r.ci_low for r in missed)
    return Honesty(
        mean([r.reported for r in records]),
        mean([r.best for r in records]),
        mean([r.reported - r.best for r in records]),
        count([covers(r) for r in records]),
        below,
        len(missed) - below,
    )
