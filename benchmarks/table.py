"""One table for the terminal and for the documentation."""

from __future__ import annotations

from benchmarks.harness import Row

HEADER = ("benchmark", "what", "measured", "target", "met")


def cells(row: Row) -> tuple[str, ...]:
    """A row as text."""
    met = {None: "", True: "yes", False: "NO"}[row.ok]
    return row.name, row.what, row.measured, row.target, met


def as_text(title: str, rows: list[Row]) -> str:
    """Columns padded to their widest cell."""
    lines = [HEADER, *(cells(row) for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    padded = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([title, "", *(line.rstrip() for line in padded)])


def as_markdown(title: str, rows: list[Row]) -> str:
    """A page with the table on it."""
    lines = [HEADER, ("---",) * len(HEADER), *(cells(row) for row in rows)]
    table = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(["# Benchmarks on the CPU", "", title, "", *table, ""])
