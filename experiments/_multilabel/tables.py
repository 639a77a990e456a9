"""Tables of means, spreads and gains over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

from experiments._multilabel.methods import BASE, METHODS, ONE, PUBLISHED
from experiments._output import markdown_table

__all__ = [
    "Gain",
    "Published",
    "adopted_count",
    "claims_table",
    "column",
    "doubt_table",
    "gain",
    "gain_table",
    "mean_and_sd",
    "paper_table",
    "study_tables",
]

TITLES = ("macro-F1", "micro-F1")


class Published(NamedTuple):
    """What the paper reports of a data set."""

    scores: Mapping[str, Mapping[str, tuple[float, float]]]
    """Its Table 1, by classifier and score: (base, CAN), test."""
    validation: Mapping[str, Mapping[str, tuple[float, float]]]
    """The same on validation data."""
    doubt: Mapping[float, str]
    """Entries in doubt and their share (its Table 4), by tau."""

    def gains(self, *scores: str) -> dict[str, list[float]]:
        """Gains of CAN, classifier by classifier."""
        tables = self.scores.values()
        return {name: [table[name][1] - table[name][0] for table in tables] for name in scores}


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
    """Mean and standard deviation over seeds, in points; a dash if it was not measured."""
    if np.isnan(values).any():
        return "–"
    spread = values.std(ddof=1) if values.size > 1 else 0.0
    return f"{values.mean():.2f} ± {spread:.2f}"


def study_tables(
    rows: Sequence[Any],
    doubts: Sequence[Any],
    paper: Published,
    scores: Mapping[str, str],
) -> dict[str, str]:
    """Return the tables that the pages of both studies have.

    Parameters
    ----------
    rows : sequence of records
        One per method and seed.
    doubts : sequence of dict
        Shares of entries in doubt.
    paper : Published
        What to compare with.
    scores : mapping of str to str
        Fields of `rows` with their titles: scores on test data.
    """
    return {
        "paper": paper_table(rows, paper),
        "claims": claims_table(rows, paper.gains("macro-F1", "micro-F1")),
        "doubt": doubt_table(doubts, paper.doubt),
        "gains": gain_table(rows, scores),
    }


def gain_table(rows: Sequence[Any], scores: Mapping[str, str]) -> str:
    """The base's scores, and a line per method: gains, and how often it was adopted."""
    lines = [[BASE, *(mean_and_sd(column(rows, BASE, field)) for field in scores), ""]]
    for name in METHODS[1:]:
        count = adopted_count(rows, name)
        lines.append([name, *(str(gain(rows, name, field)) for field in scores), count])
    return markdown_table(["method", *scores.values(), "adopted"], lines)


def adopted_count(rows: Sequence[Any], method: str) -> str:
    """How often a method with a verdict was adopted; empty for the others."""
    settings = [row.setting for row in rows if row.method == method]
    if not any("adopted (" in text for text in settings):
        return ""
    return f"{sum(text.startswith('adopted (') for text in settings)} of {len(settings)}"


def paper_table(rows: Sequence[Any], paper: Published) -> str:
    """The paper's Table 1, before and after, and the same from here, also on validation data."""
    lines = [
        [f"paper, {name}, {split}", *(_change(table.get(title)) for title in TITLES)]
        for split, tables in (("test", paper.scores), ("validation", paper.validation))
        for name, table in tables.items()
    ]
    for split, prefix in (("test", ""), ("validation", "val_")):
        found = []
        for field in ("macro", "micro"):
            before, after = (column(rows, name, prefix + field) for name in (BASE, PUBLISHED))
            known = not np.isnan(before).any()
            found.append(_change((before.mean(), after.mean()) if known else None))
        lines.append([f"here, {split}", *found])
    return markdown_table(["base → CAN", *TITLES], lines)


def _change(pair: tuple[float, float] | None) -> str:
    """A score before and after; a dash if it is not known."""
    return "–" if pair is None else f"{pair[0]:.2f} → {pair[1]:.2f} ({pair[1] - pair[0]:+.2f})"


def claims_table(rows: Sequence[Any], paper: Mapping[str, Sequence[float]]) -> str:
    """Gain of CAN as published beside the gains that the paper reports for its classifiers."""
    lines = []
    for field, title in (("macro", "macro-F1"), ("micro", "micro-F1")):
        found = gain(rows, PUBLISHED, field)
        better = f"{int((found.values > 0).sum())} of {found.values.size}"
        reported = " and ".join(f"{x:+.2f}" for x in paper[title])
        against = str(gain(rows, PUBLISHED, field, base=ONE))
        lines.append([title, reported, str(found), better, against])
    header = ["", "gain in the paper", "here, test", "seeds better", "less that of one threshold"]
    return markdown_table(header, lines)


def doubt_table(doubts: Sequence[Any], paper: Mapping[float, str]) -> str:
    """Share of entries in doubt for each tau, smallest and largest of the classifiers."""
    lines = []
    for threshold in sorted({row["threshold"] for row in doubts}):
        cells = []
        for split in ("validation", "test"):
            chosen = [
                row for row in doubts if (row["split"], row["threshold"]) == (split, threshold)
            ]
            shares = [row["share"] for row in chosen]
            digits = 2 if max(shares) >= 1 else 3
            ends = f"{min(shares):.{digits}f} to {max(shares):.{digits}f} %"
            cells.append(ends)
        lines.append([f"{threshold:g}", *cells, paper.get(threshold, "")])
    return markdown_table(["tau", "validation", "test", "in the paper"], lines)
