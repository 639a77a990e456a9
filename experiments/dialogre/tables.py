"""The tables of the study's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments._multilabel.authors import Setting, authors_table
from experiments._multilabel.methods import BASE
from experiments._multilabel.tables import Published, study_tables
from experiments._output import markdown_table
from experiments.dialogre.study import Measured

__all__ = ["PAPER", "SCORES", "SETTINGS", "make_tables"]

PAPER = Published(
    {
        "BERT": {"macro-F1": (35.76, 36.45), "micro-F1": (57.93, 58.27)},
        "BERT_s": {"macro-F1": (39.45, 40.13), "micro-F1": (59.52, 59.81)},
    },
    validation={
        "BERT": {"macro-F1": (35.89, 36.80), "micro-F1": (59.44, 59.60)},
        "BERT_s": {"macro-F1": (40.58, 41.41), "micro-F1": (62.18, 62.51)},
    },
    doubt={
        0.25: "4.54 to 6.67 %",
        0.5: "2,610 (3.79 %); test 1,148 (1.71 %)",
        0.75: "1.3 to 2.15 %",
    },
)
SETTINGS = {
    "BERT's five settings": [
        Setting(alpha, depth) for alpha, depth in ((5, 2), (0.7, 3), (8, 1), (5, 3), (0.6, 2))
    ],
    "BERT_s's five settings": [
        Setting(alpha, depth) for alpha, depth in ((0.8, 5), (7, 1), (4, 1), (7, 1), (4, 1))
    ],
}
SCORES = {"micro": "micro-F1", "macro": "macro-F1"}


def make_tables(
    rows: Sequence[Measured],
    authors: Sequence[Measured],
    second: Sequence[Measured],
    doubts: Sequence[Any],
) -> dict[str, str]:
    """The tables of the page."""
    tables = study_tables(rows, doubts, PAPER, SCORES)
    tables["authors"] = authors_table(rows, authors)
    return tables | ({"second look": _second_look(second)} if second else {})


def _second_look(rows: Sequence[Measured]) -> str:
    base = next(row for row in rows if row.method == BASE)
    lines = [
        [
            row.method,
            f"{row.micro:.2f} ({row.micro - base.micro:+.2f})",
            f"{row.macro:.2f} ({row.macro - base.macro:+.2f})",
        ]
        for row in rows
    ]
    return markdown_table(["method", "micro-F1", "macro-F1"], lines)
