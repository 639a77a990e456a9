"""The tables of the suite's page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments._output import markdown_table
from experiments.suite.names import plain_name

__all__ = ["gain_table", "make_tables", "priors_table", "probability_table"]

Rows = Sequence[dict[str, Any]]


def _select(rows: Rows, kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def _methods(rows: Rows, *, untouched: bool = False) -> list[str]:
    names = dict.fromkeys(row["method"] for row in rows)
    return [name for name in names if untouched or name != "untouched"]


def gain_table(rows: Rows) -> str:
    """One line per classifier, one column per method, and summary lines below."""
    methods, by_key = _methods(rows), {(r["classifier"], r["method"]): r for r in rows}
    lines = []
    for name in dict.fromkeys(row["classifier"] for row in rows):
        base = by_key[name, "untouched"]["base"]
        cells = [_gain_cell(by_key.get((name, method))) for method in methods]
        lines.append([plain_name(name), f"{base:.2f}", *cells])
    found = [[r for r in rows if r["method"] == method] for method in methods]
    for label, text in _SUMMARIES:
        lines.append([f"**{label}**", "", *(f"**{text(column)}**" for column in found)])
    return markdown_table(["classifier", "base", *methods], lines)


def _gain_cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not tried"
    if row["gain"] == 0 and row["ci_low"] == 0:
        return "0"
    return f"{row['gain']:+.2f} [{row['ci_low']:+.1f}, {row['ci_high']:+.1f}]"


_SUMMARIES: tuple[tuple[str, Callable[[Rows], str]], ...] = (
    ("mean gain", lambda rows: f"{np.mean([r['gain'] for r in rows]):+.2f}"),
    ("worst", lambda rows: f"{min(r['gain'] for r in rows):+.2f}"),
    (
        "clearly better / worse",
        lambda rows: (
            f"{sum(r['ci_low'] > 0 for r in rows)} / {sum(r['ci_high'] < 0 for r in rows)}"
        ),
    ),
    ("classifiers", lambda rows: f"{len(rows)}"),
)


def probability_table(rows: Rows, field: str, digits: int) -> str:
    """One line per classifier, one column per method, of a number that is better when lower."""
    methods = _methods(rows, untouched=True)
    by_key = {(r["classifier"], r["method"]): r for r in rows}
    lines = []
    for name in dict.fromkeys(row["classifier"] for row in rows):
        found = (by_key.get((name, method)) for method in methods)
        cells = ["not tried" if r is None else f"{r[field]:.{digits}f}" for r in found]
        lines.append([plain_name(name), *cells])
    means = [np.mean([r[field] for r in rows if r["method"] == method]) for method in methods]
    lines.append(["**mean**", *(f"**{mean:.{digits}f}**" for mean in means)])
    return markdown_table(["classifier", *methods], lines)


def priors_table(published: Rows) -> str:
    """Summaries of CAN as published by prior; several labels per row have one prior only."""
    names = [row["classifier"] for row in published]
    single = [row for row in published if names.count(row["classifier"]) > 1]
    chosen = {
        "uniform for all": [row for row in single if row["prior"] == "uniform"],
        "counted for all": [row for row in single if row["prior"] == "counted"],
        "as the source allows": [row for row in single if row["allowed"]],
    }
    lines = [
        [name, *(text(found) for _, text in _SUMMARIES), f"{sum(r['depth'] <= 2 for r in found)}"]
        for name, found in chosen.items()
    ]
    return markdown_table(["prior", *(label for label, _ in _SUMMARIES), "with d ≤ 2"], lines)


def make_tables(rows: Rows, published: Rows) -> dict[str, str]:
    """The tables of the page."""
    single, multi = (_select(rows, kind) for kind in ("single-label", "multi-label"))
    return {
        "accuracy": gain_table(single),
        "priors": priors_table(published),
        "loss": probability_table(single, "log_loss", 3),
        "error": probability_table(single, "calibration_error", 1),
        "several": gain_table(multi),
        "seconds": probability_table(
            [row for row in single if row["method"] != "CAN as published"], "seconds", 1
        ),
    }
