"""Gain against the number of classes and against accuracy; depths that tuning chooses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from experiments._output import read_records
from experiments.blur.published import BEST
from experiments.suite.measure import UNTOUCHED
from experiments.suite.names import source_of

__all__ = [
    "METHODS",
    "PAPER_DEPTHS",
    "Point",
    "Trend",
    "chosen_depths",
    "read_points",
    "trend",
]

ROOT = Path(__file__).parents[1]
METHODS = ("CAN as published", "AlternatingNormalizerCV", "Adjuster")
N_RESAMPLED = 2000

# The depths of the paper's settings: its two tables and its list for the blurred images.
PAPER_DEPTHS = {
    "entity typing": (1, 2),
    "DialogRE": (2, 3, 1, 3, 2, 5, 1, 1, 1, 1),
    "blurred images": (1, 2, 5, 3, 1, 1),
}


class Point(NamedTuple):
    """One classifier with one method; accuracies in points."""

    classifier: str
    classes: int
    base: float
    method: str
    gain: float
    ci_low: float
    ci_high: float


class Trend(NamedTuple):
    """Rank correlation, and its 95 % interval from resampling the sources."""

    rho: float
    low: float
    high: float
    n: int


def read_points(path: Path = ROOT / "suite" / "results" / "suite.csv") -> list[Point]:
    """The single-label classifiers of the suite."""
    rows = read_records(path)
    base = {row["classifier"]: row["accuracy"] for row in rows if row["method"] == UNTOUCHED}
    return [
        Point(**{name: (row | {"base": base[row["classifier"]]})[name] for name in Point._fields})
        for row in rows
        if row["method"] in METHODS
    ]


def trend(points: Sequence[Point], value: Callable[[Point], float], seed: int = 0) -> Trend:
    """Does the gain rise with `value`? Sources are resampled as wholes."""
    sources = sorted({source_of(p.classifier) for p in points})
    rng = np.random.default_rng(seed)
    groups = [[p for p in points if source_of(p.classifier) == name] for name in sources]
    drawn = []
    for _ in range(N_RESAMPLED):
        chosen = [p for i in rng.integers(len(groups), size=len(groups)) for p in groups[i]]
        rho = _rank_correlation(chosen, value)
        if np.isfinite(rho):
            drawn.append(rho)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Trend(_rank_correlation(points, value), float(low), float(high), len(points))


def _rank_correlation(points: Sequence[Point], value: Callable[[Point], float]) -> float:
    x, y = [value(p) for p in points], [p.gain for p in points]
    if len(set(x)) < 2 or len(set(y)) < 2:
        return float("nan")
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def chosen_depths() -> dict[str, list[int]]:
    """Depths that tuning as in the paper chose, by study."""
    suite = read_records(ROOT / "suite" / "results" / "suite.csv")
    blur = read_records(ROOT / "blur" / "results" / "published.csv")
    return {
        "entity typing": list(_seed_depths("ufet")),
        "DialogRE": list(_seed_depths("dialogre")),
        "blurred images": [r["depth"] for r in blur if r["method"] == BEST],
        "the suite": [r["depth"] for r in suite if r["method"] == METHODS[0]],
    }


def _seed_depths(study: str) -> Iterable[int]:
    rows: list[dict[str, Any]] = read_records(ROOT / study / "results" / "results.csv")
    for row in rows:
        if row["method"] == "CAN as published":
            found = re.search(r"depth (\d)", row["setting"])
            if found:
                yield int(found[1])
