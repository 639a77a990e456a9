"""How options are declared: as fields of a dataclass; and those that several commands share."""

# ruff: noqa: RUF009 - a field's default is how Typer is told of an option, and is never changed

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import typer
from typer.models import ParameterInfo

from altnorm._base.errors import InputError
from altnorm.io.formats import FORMATS, Layout

_MOST_JOBS = 4096


def _check_jobs(jobs: int) -> int:
    if jobs == 0 or abs(jobs) > _MOST_JOBS:
        raise InputError(
            "--jobs must be a number of threads, or -1 for all cores",
            f"it is {jobs}",
            "Pass for example --jobs 4.",
        )
    return jobs


def _split_names(lists: list[str] | None) -> list[str]:
    """Names in lists with commas, such as A,B,C."""
    return [name.strip() for text in lists or () for name in text.split(",") if name.strip()]


def prefix_words(columns: Layout) -> str:
    """How the next command has to be told of the class columns, if this one was."""
    return f" --prefix {shlex.quote(columns.prefix)}" if columns.prefix else ""


def check_suffix(path: Path, suffix: str, what: str) -> None:
    """Raise if the name of an output says that it is something else."""
    if path.suffix.lower() != suffix:
        raise InputError(
            f"The output is {what}, and its name must end in {suffix}",
            f"'{path.name}' does not",
            f"Pass for example -o {path.with_suffix(suffix).name}.",
        )


def argument(metavar: str, help: str, *, default: Any = ...) -> Any:
    """A file that a command is about."""
    return typer.Argument(default, metavar=metavar, help=help)


def option(metavar: str, help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """An option with a value; its name is that of the field unless `names` are given."""
    return typer.Option(default, *names, metavar=metavar, help=help, **more)


def flag(name: str, help: str, *, default: bool = False) -> Any:
    """An option that is given or not."""
    return typer.Option(default, name, help=help)


MODEL_FILE = argument("MODEL", "Model file that `tune` or `check` wrote.")
OUTPUT = option("FILE", "File to write.", "--output", "-o", default=...)
FORCE = flag("--force", "Replace an existing output.")
JSON = flag("--json", "Print one line of JSON, no tables.")
STRICT = flag("--strict", "Exit with status 1 if the answer is no.")
OPEN = flag("--open", "Open the report in a browser.")
JOBS = option(
    "N", "Number of threads; -1 uses all cores.", "--jobs", "-j", default=-1, callback=_check_jobs
)


SIGNIFICANCE = 0.01
"""Level of a fit's tests unless another is given."""


@dataclass(frozen=True)
class Tuning:
    """What tuning looks for, and how: parameters of :class:`~altnorm.Adjuster`."""

    scoring: str | None = option(
        "SCORE",
        "Score to improve: accuracy, balanced_accuracy, f1_macro, fbeta=2, neg_log_loss or "
        "another score that scikit-learn knows.",
    )
    costs: Path | None = option(
        "FILE",
        "Costs to lower instead of a score: a CSV, TSV or JSON table of true classes and "
        "decisions; a column `person` is the cost of leaving a row to a person.",
    )
    target_accuracy: float | None = option(
        "SHARE",
        "Decide only as many rows as are proved to be right this often, such as 0.95, and "
        "leave the others to a person.",
    )
    multilabel: str | None = option(
        "MODE",
        "Several labels per row: `labelwise`, each label a problem of its own, or `pairs`, all "
        "labels one two-class problem, as in the paper.",
    )
    significance: float = option("P", "Significance level.", default=SIGNIFICANCE)
    insist: bool = flag(
        "--insist", "Apply the best correction even without evidence, or if the input looks wrong."
    )
    n_jobs: int = JOBS


# Columns of a file: a layout, of which each command takes the fields that are options here.


@dataclass(frozen=True)
class ClassColumns(Layout):
    """Which columns of a file are classes, and how to read it."""

    prefix: str = option(
        "TEXT",
        "How the names of the class columns start, such as p_; the rest is the class.",
        default="",
    )
    other: list[str] = option(
        "NAME",
        "A floating-point column that is not a class; may be given several times.",
        default=(),
    )
    format: str | None = option(
        "FORMAT",
        "Format of the input, if its name does not say it: "
        f"{', '.join(FORMATS)}. `-` is the standard input.",
    )


@dataclass(frozen=True)
class LabelColumns(ClassColumns):
    """Where the labels are, too."""

    label: str | None = option(
        "NAME",
        "Column of the labels: class names or column indices (.npz: the array). `doc.answer` "
        "is a field of a nested column.",
    )
    id: str | None = option("NAME", "Column that tells rows apart, not a class.")
    label_prefix: str | None = option(
        "TEXT", "Several labels per row: how the names of the 0/1 columns start, such as y_."
    )

    def __post_init__(self) -> None:
        in_one = self.label is not None or self.labels is not None
        if in_one and self.label_prefix is not None:
            raise InputError(
                "Labels are in one column or in one column per label",
                remedy="Pass --label or --label-prefix, not both.",
            )


@dataclass(frozen=True)
class EvidenceColumns(LabelColumns):
    """And which rows count as one."""

    labels: Path | None = option(
        "FILE", "Table of labels by id (--id), or by row number from 0 (column `row`)."
    )
    classes: list[str] = option(
        "LIST",
        "Names of the classes, with commas in between: columns, or the answers of a language "
        "model.",
        default=(),
        callback=_split_names,
    )
    group: str | None = option(
        "NAME", "Column that says which rows belong together: a patient, a speaker, a document."
    )
    logits: bool = flag("--logits", "The file holds logits; this is never guessed.")


def command_of(kind: type, run: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function with an option for each field of a dataclass, as Typer reads it.

    Fields that are dataclasses, such as `LabelColumns`, stand for their own fields.
    """

    def command(**values: Any) -> Any:
        return run(_record(kind, values))

    vars(command)["__signature__"] = inspect.Signature(list(_parameters(kind)))
    return command


def _parameters(kind: type) -> Iterator[inspect.Parameter]:
    for name, hint in get_type_hints(kind).items():
        default = getattr(kind, name, None)
        if is_dataclass(hint):
            yield from _parameters(hint)  # type: ignore[arg-type]
        elif isinstance(default, ParameterInfo):
            keyword = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(name, keyword, default=default, annotation=hint)


def _record(kind: type, values: Mapping[str, Any]) -> Any:
    """A record of the values of its options, and of those of the records within it."""
    hints = get_type_hints(kind)
    fields = {name: values[name] for name in hints if name in values}
    nested = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    fields |= {name: _record(hint, values) for name, hint in nested.items()}  # type: ignore[arg-type]
    return kind(**fields)
