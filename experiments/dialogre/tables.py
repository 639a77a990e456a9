"""The tables of the study's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments._multilabel.methods import BASE
from experiments._multilabel.tables import Published, study_tables
from experiments._output import markdown_table
from experiments.dialogre.study import Measured

__all__ = ["PAPER", "SCORES", "make_tables"]

PAPER = Published(
    {
        "BERT": {"macro-F1": (35.76, 36.45), "micro-F1": (57.93, 58.27)},
        "BERT_s": {"macro-F1": (39.45, 40.13), "micro-F1": (59.52, 59.81)},
    },
    validation={"BERT": {"micro-F1": (59.44, 59.60)}},
    doubt={0.25: "4.54 to 6.67 %", 0.5: "1.71 to 3.79 %", 0.75: "1.3 to 2.15 %"},
)
SCORES = {"micro": "micro-F1", "macro": "macro-F1", "conversational": "F1c"}
VALIDATION = {"val_micro": "validation micro-F1", "val_macro": "validation macro-F1"}


def make_tables(
    rows: Sequence[Measured], second: Sequence[Measured], doubts: Sequence[Any]
) -> dict[str, str]:
    """The tables of the page."""
    tables = study_tables(rows, doubts, PAPER, SCORES, VALIDATION)
    return tables | ({"second look": _second_look(second)} if second else {})


def _second_look(rows: Sequence[Measured]) -> str:
    base = next(row for row in rows if row.method == BASE)
    lines = [
        [
            row.method,
            f"{row.micro:.2f} ({row.micro - base.micro:+.2f})",
            f"{row.macro:.2f} ({row.macro - base.macro:+.2f})",
            row.setting,
        ]
        for row in rows
    ]
    return markdown_table(["method", "micro-F1", "macro-F1", "setting"], lines)
