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
    """A page of results: targets are for whoever runs the benchmarks.

    What one core does per second stands between marks, for the page about scale.
    """
    scale = [row for row in rows if row.name == "scale"]
    others = [row for row in rows if row.name != "scale"]
    lines = [title, "", *_table(others, HEADER[:3])]
    if scale:
        lines += ["", "<!-- scale -->", "", *_table(scale, HEADER[1:3]), "", "<!-- end scale -->"]
    return "\n".join([*lines, ""])


def _table(rows: list[Row], header: tuple[str, ...]) -> list[str]:
    shown = slice(HEADER.index(header[0]), HEADER.index(header[-1]) + 1)
    lines = [header, ("---",) * len(header), *(cells(row)[shown] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]
