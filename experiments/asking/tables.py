"""The tables of the study's page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.asking.study import BUDGET, Summary

__all__ = ["make_tables"]

CLEAR = 0.2  # of the changed decisions that fix or break: how far from a draw


def make_tables(found: Sequence[Summary]) -> dict[str, str]:
    """The tables of the page."""
    return {"errors": _errors(found), "labels": _labels(found)}


def _errors(found: Sequence[Summary]) -> str:
    """What is promised of all runs, and the line that comes closest to breaking it."""
    runs = sum(one.runs for one in found)
    rows = []
    for title, promised, field, worst in (
        ("wrong answer at the stop", "at most 5 %", "wrong", max),
        ("interval held the true gain", "at least 95 %", "covered", min),
    ):
        mean = sum(getattr(one, field) * one.runs for one in found) / runs
        edge = worst(found, key=lambda one: getattr(one, field))
        text = f"{getattr(edge, field):.1f} % ({edge.classifier}, {edge.adjustment})"
        rows.append([title, promised, f"{mean:.1f} %", text])
    return markdown_table(["", "promised", f"of {runs:,} runs", "worst line"], rows)


def _labels(found: Sequence[Summary]) -> str:
    """Labels until the answer: medians over all lines, the clear ones, the others."""
    clear = [one for one in found if _lead(one) >= CLEAR]
    close = [one for one in found if _lead(one) < CLEAR]
    rows = []
    for title, group in (("all", found), ("clear", clear), ("close to a draw", close)):
        columns = ("median", "p90", "random_median", "in_budget")
        medians = [np.median([getattr(one, name) for one in group] or [np.nan]) for name in columns]
        ratios = [one.random_median / one.median for one in group] or [np.nan]
        times = f"{np.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.0f})"
        numbers = [f"{x:,.0f}" for x in medians[:3]]
        rows.append([title, f"{len(group)}", *numbers, times, f"{medians[3]:.0f} %"])
    header = ["cases", "lines", "labels", "90 %", "at random", "times as many", f"in {BUDGET}"]
    return markdown_table(header, rows)


def _lead(one: Summary) -> float:
    """How far fixed and broken are from a draw, from 0 to 1."""
    return abs(one.fixed - one.broken) / max(1, one.fixed + one.broken)
