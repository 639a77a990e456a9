"""The tables of the suite's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.suite.ablation import ablation_table, guard_table, menu_table, orders_table
from experiments.suite.gains import (
    Rows,
    by_key,
    clear_counts,
    gains,
    holm_counts,
    mean_within,
    names_of,
    relative_loss,
    source_interval,
)
from experiments.suite.measure import DIVIDED, UNTOUCHED
from experiments.suite.methods import ADJUSTER, OUTSIDE, PUBLISHED
from experiments.suite.names import plain_name
from experiments.suite.trends import depths_table, read_points, trends_table

__all__ = ["make_tables"]

SUSPECT = "suspect_input"  # why nothing is changed where columns seem to be exchanged
BALANCED, MACRO = "Adjuster, balanced accuracy", "Adjuster, macro-F1"
DECISIONS = (
    *(ADJUSTER, "AlternatingNormalizerCV", PUBLISHED),
    *("BCTS, always", "matrix, always", "curves, always", *OUTSIDE),
)
PURPOSES = (ADJUSTER, BALANCED, DIVIDED, MACRO, "BCTS, always", "matrix, always")
SEVERAL = (UNTOUCHED, ADJUSTER, MACRO, "LabelThresholds", PUBLISHED)
PROBABILITIES = (
    *(UNTOUCHED, ADJUSTER, "temperature", "BCTS, always", "matrix, always", "curves, always"),
    *(*OUTSIDE, "AlternatingNormalizerCV", PUBLISHED),
)
SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1_macro": "macro-F1",
}


def make_tables(records: Mapping[str, Rows]) -> dict[str, str]:
    """The tables of the page."""
    single = records["suite"]
    tables = {
        "summary": _summary(single),
        "guard": guard_table(single),
        "ablation": ablation_table(single),
        "menu": menu_table(single),
        "purposes": _purposes(single),
        "probabilities": _probabilities(single),
        "trends": trends_table(read_points(single)),
        "depths": depths_table(single),
    }
    several = records.get("labels", [])
    if "few" in records:
        tables["few"] = _few(single, records["few"])
    if "few_labels" in records:
        tables["few_several"] = _few(several, records["few_labels"])
    if "orders" in records:
        tables["orders"] = orders_table(records["orders"])
    if several:
        tables["several"] = _several(several)
    return tables


def _measured(methods: Sequence[str], rows: Rows) -> list[str]:
    """Without what was not tried: a package may be missing."""
    tried = {r["method"] for r in rows}
    return [method for method in methods if method in tried]


def _summary(rows: Rows) -> str:
    """One line for each method: gains in accuracy."""
    lines = []
    ours = gains(rows, ADJUSTER)
    for method in _measured((*DECISIONS, "temperature"), rows):
        found = [r for r in rows if r["method"] == method]
        values = gains(rows, method)
        each = list(values.values())
        adopted = [r for r in found if r["adopted"] and np.isfinite(r["promised"])]
        excess = {r["classifier"]: r["promised"] - r["gain"] for r in adopted}
        there = np.mean([ours[name] for name in values])
        cells = [mean_within(values), f"{there:+.2f}"]
        cells += [f"{np.median(each):+.2f}", f"{min(each):+.2f}"]
        cells += [clear_counts(found), holm_counts(found)]
        cells += [f"{sum(not r['adopted'] for r in found)}"]
        cells += [mean_within(excess) if excess else "promises nothing"]
        lines.append([method, str(len(found)), *cells])
    header = ["method", "classifiers", "mean gain", "`Adjuster` there", "median", "worst"]
    header += ["clearly better / worse", "after Holm", "nothing found", "promised - found"]
    return markdown_table(header, lines)


def _purposes(rows: Rows) -> str:
    """One line for each method: mean gains in three scores, and the worst."""
    lines = []
    for method in PURPOSES:
        cells = []
        for score in SCORES:
            values = gains(rows, method, score)
            cells += [mean_within(values), f"{min(values.values()):+.2f}"]
        lines.append([method, *cells])
    header = [cell for text in SCORES.values() for cell in (text, "worst")]
    return markdown_table(["method", *header], lines)


def _probabilities(rows: Rows) -> str:
    """Log loss relative to that of the untouched predictions, and the calibration error."""
    lines = []
    for method in _measured(PROBABILITIES, rows):
        some = [r for r in rows if r["method"] == method]
        ratios = relative_loss(rows, method)
        logs = {name: np.log(ratio) for name, ratio in ratios.items()}
        low, high = np.exp(source_interval(logs))
        mean = np.exp(np.mean(list(logs.values())))
        error = np.mean([r["calibration_error"] for r in some])
        worse = sum(ratio > 1.001 for ratio in ratios.values())
        cells = [f"{mean:.3f} [{low:.3f}, {high:.3f}]", f"{max(ratios.values()):.2f}"]
        lines.append([method, str(len(some)), *cells, str(worse), f"{error:.1f}"])
    header = [
        "method",
        "classifiers",
        "log loss, relative",
        "worst",
        "worse on",
        "calibration error",
    ]
    return markdown_table(header, lines)


def _few(all_rows: Rows, few: Rows) -> str:
    """Gains in accuracy with some of the labels, mean over draws of each classifier."""
    everything = [r | {"labels": "all"} for r in all_rows]
    lines = []
    for n in (*sorted({r["labels"] for r in few}), "all"):
        for method in dict.fromkeys(r["method"] for r in few):
            some = [r for r in (*few, *everything) if (r["labels"], r["method"]) == (n, method)]
            lines.append([str(n), method, str(len(some)), *_few_cells(some)])
    header = ["labels", "method", "fits", "mean gain", "median", "worst fit"]
    more = ["clearly better / worse", "nothing found", "input suspected"]
    return markdown_table([*header, *more], lines)


def _few_cells(rows: Rows) -> list[str]:
    drawn: dict[str, list[float]] = {}
    for r in rows:
        drawn.setdefault(r["classifier"], []).append(r["gain"])
    means = {name: float(np.mean(values)) for name, values in drawn.items()}
    median = np.median(list(means.values()))
    return [
        mean_within(means),
        f"{median:+.2f}",
        f"{min(r['gain'] for r in rows):+.2f}",
        clear_counts(rows),
        f"{sum(not r['adopted'] for r in rows)}",
        f"{sum(r['reason'] == SUSPECT for r in rows)}",
    ]


def _several(rows: Rows) -> str:
    """Several labels per row: micro-F1, macro-F1 and log loss, as they are."""
    found, lines = by_key(rows), []
    for name in names_of(rows):
        for method in SEVERAL:
            r = found[name, method]
            scores = [f"{r[field]:.2f}" for field in ("f1_micro", "f1_macro")]
            chosen = f"{r['family']}, {r['decision']}" if r["adopted"] else "nothing"
            probabilities = [f"{r['log_loss']:.4f}", f"{r['calibration_error']:.2f}"]
            lines.append([plain_name(name), method, *scores, *probabilities, chosen])
    header = ["classifier", "method", "micro-F1", "macro-F1", "log loss", "calibration error"]
    return markdown_table([*header, "chosen"], lines)
