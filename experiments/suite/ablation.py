"""Tables of what each part adds: families, the guard, the order of rows, the menu."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from experiments._output import markdown_table
from experiments.suite.gains import (
    Rows,
    clear_counts,
    gains,
    holm_counts,
    mean_within,
    names_of,
    relative_loss,
)
from experiments.suite.methods import ADJUSTER, PUBLISHED, SEARCH, SMALL, UNGUARDED
from experiments.suite.names import LATER, plain_name

__all__ = ["ablation_table", "guard_table", "menu_table", "orders_table"]

PARTS = (ADJUSTER, "without curves", "without alternating", "temperature", UNGUARDED)
GUARDED = {
    "all families": (ADJUSTER, UNGUARDED),
    "alternating, whole grid": (SEARCH, f"{SEARCH}, always"),
    "alternating, small menu": (SMALL, f"{SMALL}, always"),
    "alternating, the paper's grid": ("the paper's grid, guarded", PUBLISHED),
}
"""What is adopted on evidence, and the same applied always."""


def ablation_table(rows: Rows) -> str:
    """One line for each set of families: gains in accuracy, and log loss."""
    lines = []
    for method in _tried(rows, PARTS):
        some, values = _of(rows, method), gains(rows, method)
        logs = np.log(list(relative_loss(rows, method).values()))
        nothing = sum(not r["adopted"] for r in some)
        cells = [mean_within(values), f"{min(values.values()):+.2f}", clear_counts(some)]
        cells += [holm_counts(some), str(nothing), f"{np.exp(logs.mean()):.3f}"]
        lines.append([method, str(len(some)), *cells])
    header = ["", "classifiers", "mean gain", "worst", "clearly better / worse", "after Holm"]
    return markdown_table([*header, "nothing found", "log loss, relative"], lines)


def guard_table(rows: Rows) -> str:
    """Adopted on evidence beside always applied, on the classifiers where both were tried."""
    lines = []
    for name, pair in GUARDED.items():
        if len(_tried(rows, pair)) < len(pair):
            continue
        both = set(gains(rows, pair[0])) & set(gains(rows, pair[1]))
        cells = [cell for method in pair for cell in _side(rows, method, both)]
        lines.append([name, str(len(both)), *cells])
    names = ("mean", "worst", "clearly better / worse", "after Holm")
    header = [f"{kind}: {name}" for kind in ("guarded", "always") for name in names]
    return markdown_table(["", "classifiers", *header], lines)


def _side(rows: Rows, method: str, chosen: set[str]) -> list[str]:
    values = {name: gain for name, gain in gains(rows, method).items() if name in chosen}
    some = [r for r in _of(rows, method) if r["classifier"] in chosen]
    mean, worst = mean_within(values), f"{min(values.values()):+.2f}"
    return [mean, worst, clear_counts(some), holm_counts(some)]


def menu_table(rows: Rows) -> str:
    """The small menu beside the whole grid, on the files that led to it and on later ones."""
    everything = names_of(rows)
    groups = {
        "those it was found on": [name for name in everything if name not in LATER],
        "later ones": [name for name in everything if name in LATER],
        "all": everything,
    }
    lines = []
    for title, chosen in groups.items():
        if not chosen or len(_tried(rows, (SMALL, SEARCH))) < 2:
            continue
        values = [_only(gains(rows, method), chosen) for method in (SMALL, SEARCH)]
        apart = {name: values[0][name] - values[1][name] for name in chosen}
        means = [f"{np.mean(list(part.values())):+.2f}" for part in values]
        level = f"{sum(x > 0.05 for x in apart.values())} / "
        level += f"{sum(x < -0.05 for x in apart.values())}"
        lines.append([title, str(len(chosen)), *means, mean_within(apart), level])
    header = ["classifiers", "number", "small menu", "whole grid", "difference"]
    return markdown_table([*header, "better / worse by 0.05"], lines)


def orders_table(orders: Rows) -> str:
    """Classifiers whose verdict depends on the order of the rows, and how many do not."""
    lines, hesitant = [], 0
    names = names_of(orders)
    for name in names:
        own, *drawn = (r for r in orders if r["classifier"] == name)
        hesitant += len({r["adopted"] for r in (own, *drawn)}) > 1
        if len({_verdict(r) for r in (own, *drawn)}) == 1:
            continue
        adopted = [r for r in drawn if r["adopted"]]
        counts = f"{len(adopted)} of {len(drawn)}"
        families = ", ".join(dict.fromkeys(_verdict(r) for r in adopted)) or "–"
        lines.append(
            [plain_name(name), _verdict(own), _said([own]), counts, families, _said(drawn)]
        )
    text = (
        f"Whether anything is adopted is the same in all orders on {len(names) - hesitant} of "
        f"{len(names)} classifiers, and the family, too, on {len(names) - len(lines)}."
    )
    if not lines:
        return text
    header = ["classifier", "as in the file", "promised, found", "adopted in drawn orders"]
    return f"{text}\n\n{markdown_table([*header, 'family', 'promised, found'], lines)}"


def _verdict(row: Mapping[str, object]) -> str:
    return str(row["family"]) if row["adopted"] else "nothing"


def _said(rows: Rows) -> str:
    """Gain that was promised, and that was found, from the smallest to the largest."""
    return ", ".join(_span(r[name] for r in rows) for name in ("promised", "gain"))


def _span(values: Iterable[float]) -> str:
    ends = sorted({f"{value:+.2f}" for value in values}, key=float)
    return ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"


def _of(rows: Rows, method: str) -> Rows:
    return [r for r in rows if r["method"] == method]


def _tried(rows: Rows, methods: Iterable[str]) -> list[str]:
    """Those of the methods that were measured."""
    found = {r["method"] for r in rows}
    return [method for method in methods if method in found]


def _only(values: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    return {name: values[name] for name in names}
