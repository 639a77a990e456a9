"""What commands print: tables and sentences for people, JSON for machines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from altnorm.comparison import MethodResult
from altnorm.explanation import ChangedRow
from altnorm.verdict import Verdict

__all__ = [
    "changed_table",
    "errors",
    "gain_cells",
    "number",
    "out",
    "print_json",
    "progress",
    "score_table",
    "show_verdict",
]

# What could move the cursor, end a line or turn the direction of writing.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class _TextConsole(Console):
    """A console to which strings are text: names of classes and files may look like anything.

    No markup, no emoji codes, and control characters are shown escaped.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escaped(text), **options)


def escaped(text: str) -> str:
    """Text with its control characters, except newlines, as escape sequences."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def name_cell(name: Any) -> str:
    """A class name as a table shows it, on one line."""
    return str(name).replace("\n", "\\n")


out = _TextConsole()
errors = _TextConsole(stderr=True)


def print_json(record: dict[str, Any]) -> None:
    """Print a record as JSON, one line."""
    print(json.dumps(record, default=_plain, allow_nan=False))


def show_verdict(verdict: Verdict) -> None:
    """Print the verdict's line, green if adopted, yellow if not."""
    line = Text(str(verdict))
    line.stylize("bold green" if verdict.adopted else "bold yellow", 0, str(verdict).index(":"))
    out.print(line)


def score_table(verdicts: Sequence[Verdict], title: str = "") -> Table:
    """Scores before and after, one row a score."""
    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("score")
    for name in ("before", "after", "gain", "95 % interval", "p-value"):
        table.add_column(name, justify="right")
    for one in verdicts:
        table.add_row(
            one.scoring,
            number(one.before, one.in_points),
            number(one.after, one.in_points),
            *gain_cells(one, one.in_points),
        )
    return table


def changed_table(rows: Sequence[tuple[str, Any, ChangedRow]], title: str) -> Table:
    """Changed rows: the truth, class before and after with probability and factor, ambiguity."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
    for name in ("row", "truth", "before", "p", "×", "after", "p", "×", "doubt"):
        is_class = name in ("truth", "before", "after")
        table.add_column(
            name,
            justify="left" if is_class else "right",
            no_wrap=not is_class,  # Rich shrinks the columns that may wrap
            overflow="ellipsis",
        )
    for name, truth, changed in rows:
        table.add_row(
            name,
            name_cell(truth),
            name_cell(changed.before),
            f"{changed.proba_before:.2f}",
            f"{changed.factor_before:.2f}",
            name_cell(changed.after),
            f"{changed.proba_after:.2f}",
            f"{changed.factor_after:.2f}",
            f"{changed.ambiguity:.2f}",
        )
    return table


def gain_cells(one: Verdict | MethodResult, in_points: bool) -> tuple[Text, str, str]:
    """The gain, its interval and its p-value, as they are told in tables."""
    gain, low, high = (
        number(value, in_points, sign=True) for value in (one.gain, one.ci_low, one.ci_high)
    )
    style = gain_style(one.ci_low, one.ci_high)
    return Text(gain, style=style), f"{low} to {high}", p_text(one.p_value)


def number(value: float, in_points: bool, *, sign: bool = False) -> str:
    """A score or a difference of scores, in per cent where the score is a share."""
    scaled, digits = (100 * value, 1) if in_points else (value, 4)
    return f"{scaled:+.{digits}f}" if sign else f"{scaled:.{digits}f}"


def p_text(p_value: float) -> str:
    """A p-value as it is told in tables."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def gain_style(ci_low: float, ci_high: float) -> str:
    """Colour of a gain: green or red only where its interval excludes zero."""
    if ci_low > 0:
        return "green"
    return "red" if ci_high < 0 else "default"


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Any]:
    """Show a bar on the terminal, or nothing where there is none; yields ``advance(n)``."""
    if not errors.is_terminal:
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.advance(task, n)


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers and arrays into Python's."""
    return value.tolist()
