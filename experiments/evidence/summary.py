"""What the records come to: shares with exact intervals, means with standard errors."""

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
    "count",
    "covers",
    "honesty",
    "mean",
    "points",
    "select",
    "share_gained",
    "share_interval",
]

NOMINAL = 0.025  # significance 0.05, two-sided, and only gains are adopted
CONFIDENCE = 0.95  # of the verdict's interval, and of all intervals here
Z = 1.96
N_DRAWS = 2000
# The score of the best decisions and that of the same decisions, summed in another order and
# rounded for the file.
ROUNDING = 1e-9


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


def share_gained(records: Sequence[Record], *, always: bool = False) -> float:
    """What is gained, of what the best decisions would gain; worlds and sizes count alike.

    With `always`, what would be if the best setting were applied whatever the verdict.
    """
    gain, room = (
        float(np.mean([np.mean([getattr(r, name) for r in cell]) for cell in _cells(records)]))
        for name in ("best" if always else "gain", "room")
    )
    return gain / room if room > ROUNDING else float("nan")


def share_interval(records: Sequence[Record]) -> tuple[float, float]:
    """Ends of a bootstrap interval for `share_gained`: data sets are drawn within each cell."""
    rng = np.random.default_rng(0)
    cells = [np.array([(r.gain, r.room) for r in cell]) for cell in _cells(records)]
    means = [
        cell[rng.integers(len(cell), size=(N_DRAWS, len(cell)))].mean(axis=1) for cell in cells
    ]
    gain, room = np.mean(means, axis=0).T
    low, high = np.quantile(gain / room, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _cells(records: Sequence[Record]) -> list[list[Record]]:
    """Records of the same world and size."""
    cells: dict[tuple[str, int], list[Record]] = {}
    for r in records:
        cells.setdefault((r.world, r.n_rows), []).append(r)
    return list(cells.values())


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
