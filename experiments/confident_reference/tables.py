"""The tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.confident_reference.study import REFERENCES, Record

__all__ = ["make_tables", "mean_and_error"]


def make_tables(records: Sequence[Record]) -> dict[str, str]:
    """The tables of the page."""
    return {"gains": _gains(records), "shares": _shares(records)}


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean over the draws, and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(np.mean(values)), float(error)


def _worlds(records: Sequence[Record]) -> list[tuple[int, float]]:
    return list(dict.fromkeys((r.classes, r.spread) for r in records))


def _of(records: Sequence[Record], world: tuple[int, float], reference: str) -> list[Record]:
    return [r for r in records if (r.classes, r.spread, r.reference) == (*world, reference)]


def _gains(records: Sequence[Record]) -> str:
    lines = []
    for world in _worlds(records):
        found = [_of(records, world, name) for name in REFERENCES]
        accuracy = np.mean([r.accuracy for r in found[0]])
        cells = [mean_and_error([r.gain for r in some]) for some in found]
        texts = [f"{mean:+.2f} ± {error:.2f}" for mean, error in cells]
        lines.append([str(world[0]), f"{world[1]:g}", f"{accuracy:.1f} %", *texts])
    return markdown_table(["classes", "spread", "right before", *REFERENCES], lines)


def _shares(records: Sequence[Record]) -> str:
    lines = []
    for world in _worlds(records):
        found = [_of(records, world, name) for name in REFERENCES]
        halves = [f"{np.mean([r.hard_half for r in some]):.0f} %" for some in found]
        doubts = [f"{np.mean([r.in_doubt for r in some]):.0f} %" for some in found[:-1]]
        lines.append([str(world[0]), f"{world[1]:g}", *halves, *doubts])
    doubtful = [f"in doubt at {name.removeprefix('confident, ')}" for name in REFERENCES[:-1]]
    return markdown_table(["classes", "spread", *REFERENCES, *doubtful], lines)
