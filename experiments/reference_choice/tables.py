"""The tables of the page on references."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._output import markdown_table
from experiments.reference_choice.results import NAIVE, TUNED, Results, Summary, summarise
from experiments.reference_choice.study import (
    ALL,
    BALANCED,
    CHOICES,
    CONFIDENT,
    DEFAULTS,
    NEAREST,
    PRIORS,
    STRATIFIED,
    WEIGHTED,
    WHOLE,
    Design,
)

__all__ = ["make_tables", "paired", "standard_error"]

TIE = 0.05  # points: a smaller difference counts as none
LIBRARY = "AlternatingNormalizerCV"


def make_tables(results: Results, design: Design) -> dict[str, str]:
    """The tables of the page."""
    return {
        "choices": _choices_table(results, design.near_sizes[1]),
        "priors": _priors_table(results.gains),
        "pairs": _pairs_table(results),
    }


def _choices_table(results: Results, few: int) -> str:
    """Each choice, naive and tuned, with all rows and with a few."""
    rows = []
    for choice in (*CHOICES, DEFAULTS):
        cells = []
        for kind in (NAIVE, TUNED):
            whole, small = (summarise(results.gains, choice, n, kind) for n in (WHOLE, few))
            cells += [*_cells(whole), _cells(small)[0]]
        if choice == NEAREST:
            cells[0] = cells[1] = cells[3] = cells[4] = "–"  # all neighbours are all rows
        if choice == DEFAULTS:
            cells[:3] = ["–"] * 3
        rows.append([choice, *cells])
    library = np.array([about["library_gain"] for about in results.classifiers])
    counts = int((library > TIE).sum()), int((library < -TIE).sum())
    one = Summary(float(library.mean()), float(library.min()), *counts)
    rows.append([f"`{LIBRARY}`", *["–"] * 3, *_cells(one), "–"])
    names = ("all rows", "better/worse", f"{few} rows")
    header = [f"{kind}: {name}" for kind in ("naive", "tuned") for name in names]
    return markdown_table(["reference", *header], rows)


def _cells(one: Summary) -> list[str]:
    return [f"{one.mean:+.2f} ({one.worst:+.2f})", f"{one.better}/{one.worse}"]


def _priors_table(gains: list[dict[str, Any]]) -> str:
    rows = []
    for choice in (CONFIDENT, ALL, DEFAULTS):
        found = [summarise(gains, choice, WHOLE, TUNED, prior) for prior in PRIORS]
        rows.append([choice, *(f"{one.mean:+.2f} ({one.worst:+.2f})" for one in found)])
    return markdown_table(["reference", *PRIORS], rows)


def _pairs_table(results: Results) -> str:
    """Differences between choices, classifier by classifier."""
    pairs = ((CONFIDENT, ALL), (WEIGHTED, ALL), (STRATIFIED, ALL), (BALANCED, ALL))
    rows = []
    for first, second in (*pairs, (DEFAULTS, CONFIDENT), (DEFAULTS, ALL)):
        margins = paired(results, first, second)
        mean = f"{margins.mean():+.2f} ± {standard_error(margins):.2f}"
        wins = f"{int((margins > TIE).sum())}/{int((margins < -TIE).sum())}"
        rows.append([f"{first} less {second}", mean, wins])
    return markdown_table(["tuned, all rows", "mean ± standard error", "better/worse"], rows)


def paired(results: Results, first: str, second: str) -> np.ndarray:
    """Tuned gain of one choice minus that of another, for each classifier."""
    margins = []
    for about in results.classifiers:
        mine = [r for r in results.gains if r["classifier"] == about["classifier"]]
        a, b = (summarise(mine, c, WHOLE, TUNED).mean for c in (first, second))
        margins.append(a - b)
    return np.array(margins)


def standard_error(margins: np.ndarray) -> float:
    """Of the mean over classifiers."""
    return float(margins.std(ddof=1) / np.sqrt(margins.size)) if margins.size > 1 else 0.0
