"""The tables of the study's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments._multilabel.methods import BASE
from experiments._multilabel.tables import (
    claims_table,
    doubt_table,
    gain_table,
    paper_table,
    score_table,
    settings_table,
)
from experiments._output import markdown_table
from experiments.dialogre.study import Measured

__all__ = ["PAPER", "PAPER_GAINS", "SCORES", "make_tables"]

# Table 1 of the paper: (base, CAN), test.
PAPER = {
    "BERT": {"macro-F1": (35.76, 36.45), "micro-F1": (57.93, 58.27)},
    "BERT_s": {"macro-F1": (39.45, 40.13), "micro-F1": (59.52, 59.81)},
}
PAPER_GAINS = {
    score: [table[score][1] - table[score][0] for table in PAPER.values()]
    for score in ("micro-F1", "macro-F1")
}
PAPER_DOUBT = {0.75: "1.3 to 2.15 %"}
SCORES = {"micro": "micro-F1", "macro": "macro-F1", "conversational": "F1c"}
VALIDATION = {"val_micro": "validation micro-F1", "val_macro": "validation macro-F1"}


def make_tables(
    rows: Sequence[Measured], second: Sequence[Measured], doubts: Sequence[Any]
) -> dict[str, str]:
    """The tables of the page."""
    tables = {
        "paper": paper_table(rows, PAPER),
        "claims": claims_table(rows, PAPER_GAINS),
        "doubt": doubt_table(doubts, PAPER_DOUBT),
        "scores": score_table(rows, {**SCORES, **VALIDATION}),
        "gains": gain_table(rows, SCORES),
        "settings": settings_table(rows),
    }
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
