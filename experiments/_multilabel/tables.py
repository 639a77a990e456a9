"""Means, spreads and verdicts over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

from experiments._multilabel.methods import BASE, METHODS, PUBLISHED
from experiments._output import markdown_table

__all__ = [
    "Gain",
    "adopted_count",
    "claim",
    "column",
    "gain",
    "gain_table",
    "mean_and_sd",
    "paper_table",
    "score_table",
    "verdict",
]


class Gain(NamedTuple):
    """Mean gain over seeds with its 95 % interval (Student's t, paired; of one seed, endless)."""

    values: np.ndarray
    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if not self.values.any():
            return "0"
        interval = f" [{self.low:+.2f}, {self.high:+.2f}]" if self.values.size > 1 else ""
        return f"{self.mean:+.2f}{interval}"


def column(rows: Sequence[Any], method: str, field: str) -> np.ndarray:
    """One field of one method, an entry a seed."""
    return np.array([getattr(row, field) for row in rows if row.method == method])


def gain(rows: Sequence[Any], method: str, field: str, *, base: str = BASE) -> Gain:
    """Gain of a method over the base, seed by seed."""
    values = column(rows, method, field) - column(rows, base, field)
    half = math.inf
    if values.size > 1:
        half = float(t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))
    mean = float(values.mean())
    return Gain(values, mean, mean - half, mean + half)


def mean_and_sd(values: np.ndarray) -> str:
    """Mean and standard deviation over seeds, in points."""
    spread = values.std(ddof=1) if values.size > 1 else 0.0
    return f"{values.mean():.2f} ± {spread:.2f}"


def verdict(found: Gain, claimed: Sequence[float]) -> str:
    """What the interval over seeds says about the gains that the paper claims."""
    if found.low > 0:
        return "agrees"
    if found.high < 0:
        return "disagrees"
    inside = [f"{x:+.2f}" for x in claimed if found.low <= x <= found.high]
    outside = [f"{x:+.2f}" for x in claimed if not found.low <= x <= found.high]
    words = " and ".join(["no gain", *inside])
    against = f", not with {' and '.join(outside)}" if outside else ""
    return f"{'open' if inside else 'not reproduced'}, compatible with {words}{against}"


def claim(rows: Sequence[Any], field: str, title: str, claimed: Sequence[float]) -> str:
    """The claim that CAN as published raises a score, and what is found here."""
    found = gain(rows, PUBLISHED, field)
    better = f"{int((found.values > 0).sum())} of {found.values.size} seeds better"
    paper = " and ".join(f"{x:+.2f}" for x in claimed)
    told = f"(paper: {paper}): {verdict(found, claimed)}. Here {found}, {better}."
    return f"- **CAN raises {title}** {told}"


def score_table(rows: Sequence[Any], scores: Mapping[str, str]) -> str:
    """One line per method, one column per score (field and title): mean and spread."""
    lines = [
        [name, *(mean_and_sd(column(rows, name, field)) for field in scores)] for name in METHODS
    ]
    return markdown_table(["method", *scores.values()], lines)


def gain_table(rows: Sequence[Any], scores: Mapping[str, str]) -> str:
    """One line per method: gains, and how often the method was adopted."""
    lines = []
    for name in METHODS[1:]:
        told = adopted_count(rows, name)
        lines.append([name, *(str(gain(rows, name, field)) for field in scores), told])
    return markdown_table(["method", *scores.values(), "adopted"], lines)


def adopted_count(rows: Sequence[Any], method: str) -> str:
    """How often a method with a verdict was adopted; empty for the others."""
    settings = [row.setting for row in rows if row.method == method]
    if not any("adopted (" in text for text in settings):
        return ""
    return f"{sum(text.startswith('adopted (') for text in settings)} of {len(settings)}"


def paper_table(rows: Sequence[Any], paper: Mapping[str, Mapping[str, tuple[float, float]]]) -> str:
    """The paper's Table 1, before and after, and the same from here below."""
    lines = [
        [f"paper, {name}", *(f"{a:.2f} → {b:.2f} ({b - a:+.2f})" for a, b in table.values())]
        for name, table in paper.items()
    ]
    found = []
    for field in ("macro", "micro"):
        before, after = (column(rows, name, field).mean() for name in (BASE, PUBLISHED))
        found.append(f"{before:.2f} → {after:.2f} ({after - before:+.2f})")
    return markdown_table(["base → CAN, test", "macro-F1", "micro-F1"], [*lines, ["here", *found]])
