"""What commands print: sentences and tables in the words of the command line, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from altnorm._base.errors import InputError, Place
from altnorm._base.words import Figures
from altnorm.estimator.explanation import ChangedRow
from altnorm.evidence.verdict import Caution, Verdict, outcome, score_figures
from altnorm.io.columns import listed, names_of

# What could move the cursor, end a line or turn the direction of writing.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


LOGITS = "If these are logits, pass --logits to `altnorm check` or `tune`; a model remembers it."

REMEDIES = {
    "row_sum": f"{LOGITS} If they are rounded or percentages, divide each row by its sum.",
    "negative": LOGITS,
    "outside_unit": LOGITS,
    "exists": "Choose another name, or pass --force to replace it.",
    "one_label_per_row": "For a 0/1 matrix of several labels per row, pass --multilabel labelwise "
    "or --multilabel pairs.",
    "too_few_rows": "Name a file with more rows; with --group, a column with more groups.",
    "no_reference": "These predictions are too uncertain for --no-labels; tune with labels.",
    "adapted_twice": "Name the model that it was made from.",
}
"""What to do about an error, by its code."""

RULES = {
    "weights": "the class of largest weighted probability",
    "costs": "the decision of least expected cost",
    "thresholds": "every label whose probability is above its threshold",
}
"""How a model decides, by the kind of its decision."""

_OPTIONS = "scoring|costs|multilabel|significance|families|cv|prior|dtype|number|seed"

_WORDS = {
    # Names of arrays in a file stay as they are.
    r"^`proba`(?! in ')": "Probabilities",
    r"`proba`(?! in '| or `)": "probabilities",
    "n_samples = ([0-9]+)": r"\1 rows",
    "pass groups that say which rows belong together": "say with --group which belong together",
    "pass groups that say which": "name the column that says which with --group",
    "input='logits'": "--logits",
    "adapt with assume='label_shift'": "run `altnorm adapt` with --assume label-shift",
    "^assume='label_shift'": "--assume label-shift",
    "insist=True": "--insist",
    "`append_to`": "--append-to",
    "Pass another `output_name` or `label_output`": "Pass another name with --label-output",
    "Pass another `output` or `prediction`": "Pass another name with --prediction",
    ", a scikit-learn scorer, or a name": ", or a name",
    rf"\b({_OPTIONS})=(?:\('|')([^']+)(?:',\)|')": r"--\1 \2",
    rf"\b({_OPTIONS})=([\d.]+)": r"--\1 \2",
    r"(?<=--scoring accuracy), 'f1_macro' or '(\w+)'": r", f1_macro or \1",
    rf"`({_OPTIONS})`": r"--\1",
    "--multilabel must be None or": "--multilabel must be",
    "multilabel=None": "--multilabel labelwise",
}


def in_options(text: str) -> str:
    """Return a sentence of the library with options in place of Python arguments.

    >>> in_options("scoring='balanced_accuracy' would give 61.0%.")
    '--scoring balanced_accuracy would give 61.0%.'
    """
    for python, option in _WORDS.items():
        text = re.sub(python, option, text)
    return text


@contextmanager
def by_class(classes: np.ndarray) -> Iterator[None]:
    """Tell errors about columns by their classes, and that a column may be none."""
    try:
        yield
    except InputError as error:
        if error.code == "row_sum":
            # A column that is not a class is the likeliest reason.
            hint = f"The classes are {listed(names_of(classes))}; name a column that is not a class"
            remedy = f"{REMEDIES['row_sum']} {hint} with --other."
            raise error.replace(remedy=remedy, code="class_columns") from error
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


def print_json(record: dict[str, Any]) -> None:
    """Print a record as JSON, one line."""
    print(json.dumps(record, default=_plain, allow_nan=False))


_STYLES = {"adopted": "bold green", "better": "bold green", "worse": "bold red"}


def head(text: str) -> None:
    """Print a heading."""
    out.print()
    out.print(Text(text, style="bold"))


def show_verdict(verdict: Verdict) -> None:
    """Print the verdict's line, its outcome coloured, and the cautions that are not part of it."""
    line = Text(escaped(in_options(str(verdict))))
    line.stylize(_STYLES.get(outcome(verdict), "bold yellow"), 0, line.plain.index(":"))
    out.print(line)
    show_cautions([caution for caution in verdict.cautions if not caution.serious])
    if verdict.reason == "suspect_input":
        out.print("If the input is right, pass --insist.")


def show_cautions(cautions: Sequence[Caution], where: str = "") -> None:
    """Print what a reader should know, a line each."""
    for caution in cautions:
        out.print(
            Text(f"Caution{where}:", style="bold yellow"), Text(escaped(in_options(caution.text)))
        )


def new_table(names: Sequence[str], text: Collection[str], title: str | None = None) -> Table:
    """A table without rows; its columns are for numbers, but for those of `text`."""
    left: dict[str, Any] = {"title_justify": "left", "caption_justify": "left"}
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), **left)
    for name in names:
        # Rich shrinks the columns that may wrap.
        is_text = name in text
        table.add_column(name, justify="left" if is_text else "right", no_wrap=not is_text)
    return table


def score_table(verdicts: Sequence[Verdict]) -> Table:
    """Scores before and after, one row per score."""
    names = ("score", "before", "after", "change", "95% interval", "p-value")
    table = new_table(names, ["score"])
    losses: list[str] = []
    for one in verdicts:
        figures = score_figures(one)
        losses += [figures.name] if figures.lower else []
        change = Text(figures.change_and_unit, style=gain_style(figures))
        interval = f"{figures.low} to {figures.high}"
        p_value = figures.p_value.removeprefix("p ").removeprefix("= ")
        table.add_row(figures.name, figures.before, figures.after, change, interval, p_value)
    if losses:
        table.caption = f"Lower is better: {', '.join(losses)}"
    return table


def changed_table(rows: Sequence[tuple[str, Any, ChangedRow]], title: str) -> Table:
    """Changed rows: the truth, class before and after with probability and factor, ambiguity."""
    names = ("row", "truth", "before", "p", "×", "after", "p", "×", "doubt")
    table = new_table(names, ("truth", "before", "after"), title)
    for name, truth, changed in rows:
        table.add_row(
            name,
            name_cell(truth),
            name_cell(changed.before),
            f"{changed.proba_before:.2f}",
            _factor(changed.factor_before),
            name_cell(changed.after),
            f"{changed.proba_after:.2f}",
            _factor(changed.factor_after),
            f"{changed.ambiguity:.2f}",
        )
    return table


def _factor(factor: float) -> str:
    """A factor as tables show it: beyond a thousand its digits say nothing."""
    return f"{factor:.2f}" if factor < 1000 else "> 1000"


def gain_style(figures: Figures) -> str:
    """Colour of a change: green or red only where its interval excludes zero."""
    return {"better": "green", "worse": "red"}.get(figures.better, "default")


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


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers and arrays into Python's."""
    return value.tolist()
