"""The tables of the suite, and the page around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._output import markdown_table, write_csv
from experiments.suite.measure import FIELDS
from experiments.suite.names import plain_name

__all__ = ["gain_table", "probability_table", "write_page"]

Rows = Sequence[dict[str, Any]]

_PAGE = """# Real classifiers

`python -m experiments.suite --data FOLDER`. Every method was fitted on validation data alone and is
measured on test data: {n_single} single-label and {n_multi} multi-label classifiers. *Guarded*
means adopted only if the test of `Adjuster` passes; *always* means without asking. "CAN as
published" takes the setting with the best score on the validation data themselves (depth 1). All
numbers: [suite.csv](suite.csv).

![Gains of each classifier with 95 % intervals](gains.png)

## Accuracy

Gain over the untouched predictions in points, with a 95 % interval; 0 means that no decision was
changed. Clearly better or worse: the interval excludes 0.

{accuracy}

## Probabilities

Log-loss (lower is better), then top-label calibration error in points. A mean is over the
classifiers on which the method was tried.

{loss}

{error}

## Several labels per row: micro-F1

{multi}

## Time to fit

Seconds, one thread, on a machine that did other work as well: for the proportions.

{seconds}
"""


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


def write_page(rows: Rows, folder: Path) -> str:
    """Write the tables as CSV and as Markdown; return the page."""
    write_csv(folder / "suite.csv", {name: [row[name] for row in rows] for name in FIELDS})
    single, multi = (_select(rows, kind) for kind in ("single-label", "multi-label"))
    page = _PAGE.format(
        n_single=len({row["classifier"] for row in single}),
        n_multi=len({row["classifier"] for row in multi}),
        accuracy=gain_table(single),
        loss=probability_table(single, "log_loss", 3),
        error=probability_table(single, "calibration_error", 1),
        multi=gain_table(multi),
        seconds=probability_table(single, "seconds", 1),
    )
    (folder / "README.md").write_text(page, encoding="utf-8")
    return page
