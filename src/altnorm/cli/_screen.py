"""What commands print: sentences and tables in the words of the command line, or JSON."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from rich import box
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from altnorm._base.errors import InputError, Place, shown
from altnorm._base.words import Figures
from altnorm.evidence.verdict import Caution, Verdict, outcome, score_figures
from altnorm.io.labels import listed, names_of

# What could move the cursor, end a line or turn the direction of writing.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


_OPTIONS = (
    "append_to costs cv dtype families multilabel number prior scoring seed significance "
    "target_accuracy"
)
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _OPTIONS.split()}
"""How the command line calls a parameter of the library."""

_LOGITS = "If these are logits, pass --logits to `altnorm check` or `tune`; a model remembers it."
ROW_SUM = f"{_LOGITS} If they are rounded or percentages, divide each row by its sum."

REMEDIES = {
    "row_sum": ROW_SUM,
    "negative": _LOGITS,
    "outside_unit": _LOGITS,
    "no_model": "Name a file that `altnorm tune` or `check` wrote; where predictions follow it, "
    "the model comes first.",
    "exists": "Choose another name, or pass --force to replace it.",
    "one_label_per_row": "For a 0/1 matrix of several labels per row, pass --multilabel labelwise "
    "or --multilabel pairs.",
    "too_few_rows": "Name a file with more rows; with --group, a column with more groups.",
    "no_reference": "These predictions are too uncertain for --no-labels; tune with labels.",
    "adapted_twice": "Name the model that it was made from.",
    "shift_rejected": "Label some rows on which both models differ, or pass --insist to adapt "
    "anyway.",
    "prediction": "Pass another name with --prediction.",
    "onnx_output": "Pass another name with --label-output.",
}
"""What to do about an error, in the words of the command line, by its code or parameter."""

_RULES = {
    "multilabel": "--multilabel must be 'pairs' or 'labelwise'",
    "shift_rejected": "--assume label-shift needs new predictions that another class balance "
    "explains",
}

ADVICE = {
    "duplicates": (
        "pass groups that say which rows belong together",
        "say with --group which belong together",
    ),
    **dict.fromkeys(
        ("neighbours_alike", "classes_in_places"),
        ("pass groups that say which", "name the column that says which with --group"),
    ),
    **dict.fromkeys(
        ("other_purpose", "below_majority"),
        ("scoring='balanced_accuracy'", "--scoring balanced_accuracy"),
    ),
    "trained_on": ("insist=True", "--insist"),
    "adapt": (
        "adapt with assume='label_shift'",
        "run `altnorm adapt` with --assume label-shift",
    ),
}
"""What a caution, or drift, advises in Python and at the command line, by its code."""

RULES = {
    "weights": "the class of largest weighted probability",
    "costs": "the decision of least expected cost",
    "thresholds": "every label whose probability is above its threshold",
}
"""How a model decides, by the kind of its decision."""


def in_options(error: InputError) -> InputError:
    """Return an error in the words of the command line.

    >>> print(in_options(InputError("`cv` must be 2 or more", parameter="cv", example=5)))
    --cv must be 2 or more. Pass for example --cv 5.
    """
    if error.code == "file":  # names are those of arrays in a file
        return error
    fields = {name: with_options(getattr(error, name)) for name in ("rule", "offender", "remedy")}
    if error.parameter in OPTIONS and error.example is not None:
        value = error.example if isinstance(error.example, tuple) else (error.example,)
        passed = f"{OPTIONS[error.parameter]} {','.join(map(str, value))}"
        fields["remedy"] = f"Pass for example {passed}."
    for kind in (error.parameter, error.code):
        fields["rule"] = _RULES.get(kind, fields["rule"])
        fields["remedy"] = REMEDIES.get(kind, fields["remedy"])
    return error.replace(**fields)


def with_options(text: str) -> str:
    """Return a text whose parameters are called as the command line calls them."""
    begins = text.startswith("`proba`")
    for name, option in (OPTIONS | {"proba": "probabilities"}).items():
        text = text.replace(f"`{name}`", option)
    return text[0].upper() + text[1:] if begins else text


def advised(code: str, text: str) -> str:
    """Return a text that may advise something, in the words of the command line."""
    return text.replace(*ADVICE[code]) if code in ADVICE else text


@contextmanager
def by_class(classes: np.ndarray) -> Iterator[None]:
    """Tell errors about columns by their classes, and that a column may be none."""
    try:
        yield
    except InputError as error:
        if error.code == "row_sum":
            # A column that is not a class is the most likely reason.
            hint = f"The classes are {listed(names_of(classes))}; name a column that is not a class"
            remedy = f"{ROW_SUM} {hint} with --other."
            raise error.replace(remedy=remedy, code="class_columns") from error
        if error.code == "extra_column":
            name = shown(classes[int(str(error.value))])
            offender, remedy = f"without column '{name}' they do", f"Pass --other '{name}'."
            raise error.replace(offender=offender, remedy=remedy) from error
        if not isinstance(error.place, Place) or error.place.column is None:
            raise
        row, column, note = error.place
        raise error.replace(place=f"row {row}, class '{classes[column]}' ({note})") from error


class _TextConsole(Console):
    """A console to which strings are text: names of classes and files may look like anything.

    No markup, no emoji codes, and control characters are shown escaped.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escaped(text), **options)

    def say(self, text: str) -> None:
        """Print a line that only the terminal breaks: names and commands can be copied."""
        self.print(text, soft_wrap=True)


def escaped(text: str) -> str:
    """Text with its control characters, except newlines, as escape sequences."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def name_cell(name: Any) -> str:
    """A class name as a table shows it, on one line."""
    return str(name).replace("\n", "\\n")


out = _TextConsole()
errors = _TextConsole(stderr=True)


NARROW = 70  # columns of a terminal that has no room for a table's numbers on one line
_STYLES = {"adopted": "bold green", "better": "bold green", "worse": "bold red"}


def head(text: str) -> None:
    """Print a heading."""
    out.print()
    out.print(Text(text, style="bold"))


def verdict_words(verdict: Verdict) -> str:
    """Return the line of a verdict in the words of the command line."""
    cautions = [replace(c, text=advised(c.code, c.text)) for c in verdict.cautions]
    return str(verdict.with_cautions(cautions)).replace("insist=True", "--insist")


def show_verdict(verdict: Verdict) -> None:
    """Print the verdict's line, its outcome coloured, and the cautions that are not part of it."""
    line = Text(escaped(verdict_words(verdict)))
    line.stylize(_STYLES.get(outcome(verdict), "bold yellow"), 0, line.plain.index(":"))
    out.print(line)
    show_cautions([caution for caution in verdict.cautions if not caution.serious])
    if verdict.reason == "suspect_input" and not verdict.insisted:
        out.print("If the input is right, pass --insist.")
    if verdict.gates and verdict.reason != "identical":
        header, *rows = verdict.gates.rows()
        table = new_table(header, header[:3])
        for row in rows:
            table.add_row(*row)
        out.print(table)


def show_cautions(cautions: Sequence[Caution], where: str = "") -> None:
    """Print what a reader should know, a line each."""
    for caution in cautions:
        text = escaped(advised(caution.code, caution.text))
        out.print(Text(f"Caution{where}:", style="bold yellow"), Text(text))


def new_table(names: Sequence[str], text: Collection[str]) -> Table:
    """A table without rows; its columns are for numbers, but for those of `text`."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    for name in names:
        # Rich shrinks the columns that may wrap: those of text or, as on a phone, all of them.
        justify: JustifyMethod = "left" if name in text else "right"
        wraps = name in text or out.width < NARROW
        table.add_column(name, justify=justify, no_wrap=not wraps, overflow="fold")
    return table


def score_table(verdicts: Sequence[Verdict]) -> Table:
    """Scores before and after, one row per score."""
    names = ("score", "before", "after", "change", "95% interval", "p-value")
    table = new_table(names, ["score"])
    losses: list[str] = []
    for verdict in verdicts:
        figures = score_figures(verdict)
        losses += [figures.name] if figures.lower else []
        change = tinted(figures.change_and_unit, figures)
        interval = f"{figures.low} to {figures.high}"
        p_value = figures.p_value.removeprefix("p ").removeprefix("= ")
        table.add_row(figures.name, figures.before, figures.after, change, interval, p_value)
    if losses:
        table.caption = f"Lower is better: {', '.join(losses)}"
    return table


def tinted(change: str, figures: Figures) -> Text:
    """A change in colour: green or red only where its interval excludes zero."""
    style = {"better": "green", "worse": "red"}.get(figures.better, "default")
    return Text(change, style=style)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Any]:
    """Show a bar on the terminal, or nothing where there is none; yields ``advance(n)``."""
    if not errors.is_terminal:  # where a bar that is disabled still ends a line, with Rich 13.0
        yield lambda _: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.advance(task, n)
