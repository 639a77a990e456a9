"""Many classes, good classifiers, small depths: what the paper expects, over all classifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from experiments._output import markdown_table, read_records
from experiments.suite.gains import Rows
from experiments.suite.measure import UNTOUCHED
from experiments.suite.names import source_of

__all__ = [
    "METHODS",
    "PAPER_DEPTHS",
    "Point",
    "Trend",
    "depths_table",
    "read_points",
    "trend",
    "trends_table",
]

ROOT = Path(__file__).parents[1]
METHODS = ("CAN as published", "AlternatingNormalizerCV", "Adjuster")
N_RESAMPLED = 2000
BEST = "best on these images"  # the line of the blur study that is tuned as the paper's CAN-best

# The depths of the paper's settings: its two tables and its list for the blurred images.
PAPER_DEPTHS: dict[str, Sequence[int]] = {
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


def read_points(rows: Rows) -> list[Point]:
    """The single-label classifiers of the suite."""
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
    low, high = np.quantile(drawn or [np.nan], (0.025, 0.975))
    return Trend(_rank_correlation(points, value), float(low), float(high), len(points))


def _rank_correlation(points: Sequence[Point], value: Callable[[Point], float]) -> float:
    x, y = [value(p) for p in points], [p.gain for p in points]
    if len(set(x)) < 2 or len(set(y)) < 2:
        return float("nan")
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def trends_table(points: Sequence[Point]) -> str:
    """Rank correlations of the gain, one line per method."""
    lines = []
    for method in METHODS:
        chosen = [p for p in points if p.method == method]
        trends = [trend(chosen, lambda p: p.classes), trend(chosen, lambda p: p.base)]
        cells = [f"{t.rho:+.2f} [{t.low:+.2f}, {t.high:+.2f}]" for t in trends]
        lines.append([method, str(trends[0].n), *cells])
    header = ["gain of", "classifiers", "with the number of classes", "with the base accuracy"]
    return markdown_table(header, lines)


def depths_table(rows: Rows) -> str:
    """How many of the chosen settings have depth 1 or 2, in all studies that tune as published."""
    here, theirs = _chosen_depths(rows), dict(PAPER_DEPTHS)
    for depths in (here, theirs):
        depths["all"] = [d for group in depths.values() for d in group]
    lines = [
        [name, _share(ours), _share(theirs[name]) if name in theirs else ""]
        for name, ours in here.items()
    ]
    return markdown_table(["settings with d ≤ 2", "here", "in the paper's tables"], lines)


def _share(depths: Sequence[int]) -> str:
    small = sum(depth <= 2 for depth in depths)
    return f"{small} of {len(depths)} ({small / len(depths):.0%})"


def _chosen_depths(rows: Rows) -> dict[str, Sequence[int]]:
    """Depths that tuning as in the paper chose, by study."""
    blur = read_records(ROOT / "blur" / "results" / "published.csv")
    return {
        "entity typing": list(_seed_depths("ufet")),
        "DialogRE": list(_seed_depths("dialogre")),
        "blurred images": [r["depth"] for r in blur if r["method"] == BEST],
        "the suite": [r["depth"] for r in rows if r["method"] == METHODS[0]],
    }


def _seed_depths(study: str) -> Iterable[int]:
    for row in read_records(ROOT / study / "results" / "results.csv"):
        if row["method"] == METHODS[0]:
            found = re.search(r"depth (\d)", row["setting"])
            if found:
                yield int(found[1])
