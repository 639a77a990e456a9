"""The tables of the study's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments._multilabel.authors import Setting, authors_table
from experiments._multilabel.methods import BASE
from experiments._multilabel.tables import Published, column, study_tables
from experiments._output import markdown_table
from experiments.ufet.figures import Curves
from experiments.ufet.study import Measured, Shifted

__all__ = ["PAPER", "SCORES", "SETTINGS", "make_tables"]

PAPER = Published(
    {
        "Multitask": {"macro-F1": (31.98, 33.69), "micro-F1": (28.80, 30.69)},
        "Denoised": {"macro-F1": (40.22, 40.75), "micro-F1": (37.87, 38.71)},
    },
    validation={
        "Multitask": {"macro-F1": (31.32, 33.47), "micro-F1": (27.92, 30.43)},
        "Denoised": {"macro-F1": (40.07, 40.41), "micro-F1": (37.88, 38.47)},
    },
    doubt={
        0.25: "Multitask: 14,269 (0.07 %); test 19,007 (0.09 %)",
        0.75: "Denoised: 4,454 (0.02 %); test 4,601 (0.02 %)",
    },
)
SETTINGS = {
    "Multitask's setting": [Setting(16.0, 1, (0.25,))],
    "Denoised's setting": [Setting(22.0, 2, (0.75,))],
}
SCORES = {"macro": "macro-F1", "micro": "micro-F1"}
SMALL, LARGE = 1.0, 10.0  # alphas up to, and from which on, the curves are summed up


def make_tables(
    rows: Sequence[Measured],
    authors: Sequence[Measured],
    curves: Curves,
    shifted: Sequence[Shifted],
    doubts: Sequence[Any],
) -> dict[str, str]:
    """The tables of the page."""
    return {
        **study_tables(rows, doubts, PAPER, SCORES),
        "authors": authors_table(rows, authors),
        "shifted": _shifted_table(shifted),
        "tuning": _tuning_table(curves, float(column(rows, BASE, "val_macro").mean())),
    }


def _shifted_table(shifted: Sequence[Shifted]) -> str:
    header = ["logits lowered by", "precision", "recall", "base", "CAN", "one threshold"]
    lines = []
    for shift in sorted({row.shift for row in shifted}):
        chosen = np.array([row[2:] for row in shifted if row.shift == shift]).mean(axis=0)
        base, can, one = chosen[2:]
        gains = (f"{x:.2f} ({x - base:+.2f})" for x in (can, one))
        lines.append([f"{shift:g}", *(f"{x:.2f}" for x in chosen[:3]), *gains])
    return markdown_table(header, lines)


def _tuning_table(curves: Curves, base: float) -> str:
    """Validation macro-F1 over the grid: lowest, mean and highest by depth and size of alpha."""
    alphas = next(iter(curves.values()))[0]
    lines = [["untouched", f"{base:.2f}", "", ""]]
    for depth in sorted({depth for _, depth in curves}):
        scores = np.array([score for (_, d), (_, score) in curves.items() if d == depth])
        cells = [_span(scores[:, chosen]) for chosen in (alphas <= SMALL, alphas >= LARGE)]
        lines.append([f"d = {depth}", *cells, f"{scores.max():.2f}"])
    header = ["", f"alpha up to {SMALL:g}", f"alpha from {LARGE:g}", "best of all"]
    return markdown_table(header, lines)


def _span(scores: np.ndarray) -> str:
    if not scores.size:
        return "–"
    return f"{scores.mean():.2f} ({scores.min():.2f} to {scores.max():.2f})"
