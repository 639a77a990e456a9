"""What the records come to: shares with exact intervals, means with standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from experiments.evidence.plan import Case

__all__ = [
    "CONFIDENCE",
    "Mean",
    "Record",
    "Share",
    "by_case",
    "count",
    "covers",
    "fools",
    "gains",
    "gains_nothing",
    "has_interval",
    "mean",
    "of_cases",
    "points",
    "select",
    "share_gained",
    "share_interval",
    "upper_bound",
]

CONFIDENCE = 0.95  # of the verdict's interval, and of all intervals here
Z = 1.96
N_DRAWS = 2000
ROUNDING = 1e-4  # CSV files hold five digits

Record = dict[str, Any]


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
        error = "" if np.isnan(self.se) else f" ± {Z * self.se:.2f}"
        return points(self.value) + error


def points(gain: float) -> str:
    """A gain in points, with its sign; one that rounds to nothing is +0.00."""
    return f"{round(gain, 2) + 0.0:+.2f}"


def select(records: Iterable[Record], **values: Any) -> list[Record]:
    """Records with these values."""
    return [r for r in records if all(r[name] == value for name, value in values.items())]


def of_cases(records: Iterable[Record], cases: Iterable[Case]) -> list[Record]:
    """Records of some worlds, sizes and purposes."""
    keys = {case.key for case in cases}
    return [r for r in records if (r["world"], r["n_rows"], r["purpose"]) in keys]


def by_case(records: Iterable[Record], *more: str) -> list[list[Record]]:
    """Records of the same world, size and purpose, and other fields, in the order they come in."""
    cells: dict[tuple[Any, ...], list[Record]] = {}
    for r in records:
        cells.setdefault(
            tuple(r[name] for name in ("world", "n_rows", "purpose", *more)), []
        ).append(r)
    return list(cells.values())


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


def upper_bound(share: Share) -> float:
    """One-sided upper bound of a share, exact."""
    return float(binomtest(share.n, share.of, alternative="less").proportion_ci(CONFIDENCE).high)


def gains_nothing(record: Record) -> bool:
    """Whether decisions were changed and are really no better."""
    return bool(record["adopted"] and record["true"] <= ROUNDING)


def fools(record: Record, told: Sequence[str] = ()) -> bool:
    """Whether decisions were changed for nothing, and no caution names the reason."""
    return gains_nothing(record) and not set(told) & set(record["cautions"].split())


def gains(records: Sequence[Record]) -> np.ndarray:
    """True gains of what was adopted; 0 where nothing was."""
    return np.array([r["true"] if r["adopted"] else 0.0 for r in records])


def share_gained(records: Sequence[Record]) -> float:
    """What is gained, of what the best decisions would gain; worlds and sizes count alike."""
    cells = by_case(records)
    got = [np.mean(gains(cell)) for cell in cells]
    room = [np.mean([r["room"] for r in cell]) for cell in cells]
    return float(np.sum(got) / np.sum(room)) if np.sum(room) > ROUNDING else float("nan")


def share_interval(records: Sequence[Record]) -> tuple[float, float]:
    """Ends of a bootstrap interval for `share_gained`: data sets are drawn within each case."""
    rng = np.random.default_rng(0)
    total = np.zeros((N_DRAWS, 2))
    for cell in by_case(records):
        pairs = np.column_stack([gains(cell), [r["room"] for r in cell]])
        total += pairs[rng.integers(len(cell), size=(N_DRAWS, len(cell)))].mean(axis=1)
    ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    low, high = np.quantile(total[:, 0] / total[:, 1], ends)
    return float(low), float(high)


def has_interval(record: Record) -> bool:
    """Whether the verdict changed a decision and so has an interval to tell."""
    return bool(record["ci_low"] < record["ci_high"])


def covers(record: Record) -> bool:
    """Whether the reported interval holds the true gain of what the verdict is about."""
    return bool(record["ci_low"] - ROUNDING <= record["true"] <= record["ci_high"] + ROUNDING)
