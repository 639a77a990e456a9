"""The nine commands: what each takes, what its help says, and which module has the function.

Help and completion need no library, so this imports none.
"""

# ruff: noqa: RUF009 - a field's default is how Typer is told of an option, and is never changed

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from altnorm.cli._options import (
    FORCE,
    JOBS,
    JSON,
    MODEL_FILE,
    OPEN,
    OUTPUT,
    STRICT,
    ClassColumns,
    EvidenceColumns,
    LabelColumns,
    Tuning,
    argument,
    flag,
    option,
)

MODEL = Path("altnorm-model.safetensors")
REPORT = Path("altnorm-report.html")


class Command:
    """A command: its fields are its options, and its docstring is its help."""

    module: ClassVar[str]  # of the package `cli`, with a function of the command's name
    example: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    """Run `check` on 7,500 real queries to an assistant that come with the package."""

    module = "check"
    example = "altnorm demo"

    output: Path = option(
        "FILE",
        "Report to write; the model goes beside it.",
        "--output",
        "-o",
        default=Path("altnorm-demo.html"),
    )
    open_page: bool = OPEN
    jobs: int = JOBS
    json: bool = JSON


@dataclass(frozen=True, kw_only=True)
class Check(Command):
    """Should I use it? Fit, judge, compare, and write a model and a report.

    Without TEST every validation row is judged by a model that was fitted without it. With --model
    an existing model is judged on new predictions, and nothing is fitted. VAL may be a folder of
    sample logs of lm-evaluation-harness: each task gets a line, and nothing is written.
    """

    module = "check"
    example = "altnorm check val.parquet test.parquet --label intent"

    validation: Path = argument(
        "VAL", "Predictions on validation data, with labels; with --model, new predictions."
    )
    test: Path | None = argument(
        "TEST",
        "Predictions on test data, with labels. Without, VAL is cross-validated.",
        default=None,
    )
    model: Path | None = option(
        "MODEL",
        "Fit nothing: judge this model on new predictions or, without labels, say whether "
        "they look like those it was tuned on.",
    )
    output: Path = option("FILE", "Model to write.", "--output", "-o", default=MODEL)
    report: Path = option("FILE", "Report to write.", default=REPORT)
    open_page: bool = OPEN
    tuning: Tuning
    columns: EvidenceColumns
    text: str | None = option("NAME", "Column to show beside the changed rows of the report.")
    force: bool = FORCE
    strict: bool = STRICT
    json: bool = JSON


@dataclass(frozen=True, kw_only=True)
class Tune(Command):
    """Fit and judge a model and write it, nothing else: for scripts.

    If the labels don't show a gain, the model changes no decision, and says so.
    """

    module = "tune"
    example = "altnorm tune val.parquet --label intent -o model.safetensors"

    validation: Path = argument("VAL", "Predictions on validation data, with labels.")
    output: Path = OUTPUT
    tuning: Tuning
    columns: EvidenceColumns
    prior: str = option(
        "PRIOR",
        "Class prior: `counted` from the labels, counted and `shrunk` towards uniform, "
        "`uniform`, or a CSV file with a class and a number per line.",
        default="shrunk",
    )
    no_labels: bool = flag(
        "--no-labels",
        "Fit without labels: nothing is chosen or judged. `altnorm ask` says which to get.",
    )
    families: str | None = option(
        "LIST", "Which of alternating, bias, matrix, curves compete; all by default."
    )
    calibrate: bool = flag(
        "--calibrate/--no-calibrate",
        "Adjust probabilities too, also where your decisions stay as they were.",
        default=True,
    )
    cv: int = option("K", "Number of folds.", default=5)
    force: bool = FORCE
    strict: bool = STRICT
    json: bool = JSON


@dataclass(frozen=True, kw_only=True)
class Apply(Command):
    """Apply a model to a file of predictions; all other columns stay as they are.

    Tables are streamed, also to `-o -`: memory does not grow with the file. Logits come out as
    probabilities.
    """

    module = "apply"
    example = "altnorm apply model.safetensors new.parquet -o adjusted.parquet"

    model: Path = MODEL_FILE
    source: Path = argument("IN", "Predictions to adjust.")
    output: Path = OUTPUT
    columns: ClassColumns
    prediction: str | None = option(
        "NAME",
        "Column or array for the decision, `prediction` by default: the class, empty where the "
        "row is left to a person.",
    )
    no_prediction: bool = flag("--no-prediction", "Add no column or array for the decision.")
    spreadsheet_safe: bool = flag(
        "--spreadsheet-safe",
        "In CSV, write a single quote before text that a spreadsheet would run as a formula.",
    )
    jobs: int = JOBS
    force: bool = FORCE
    strict: bool = flag("--strict", "Exit with status 1 if predictions no longer look as at fit.")
    json: bool = JSON


class Assumption(StrEnum):
    """What a user may know about new data."""

    LABEL_SHIFT = "label-shift"


@dataclass(frozen=True, kw_only=True)
class Adapt(Command):
    """Estimate the class balance of new predictions and, with --assume, adapt a model to it.

    Predictions alone cannot tell whether only the balance has changed. Without --assume nothing is
    written.
    """

    module = "apply"
    example = (
        "altnorm adapt model.safetensors new.parquet --assume label-shift -o model2.safetensors"
    )

    model: Path = MODEL_FILE
    new: Path = argument("NEW", "Predictions without labels, at least a few hundred rows.")
    output: Path | None = option("FILE", "Model to write; needs --assume.", "--output", "-o")
    columns: ClassColumns
    assume: Assumption | None = option(
        "WHAT", "`label-shift`: you know that only the class balance has changed."
    )
    insist: bool = flag("--insist", "Adapt even if the predictions contradict --assume.")
    force: bool = FORCE
    strict: bool = STRICT
    json: bool = JSON


@dataclass(frozen=True, kw_only=True)
class Ask(Command):
    """Choose the rows to label that tell whether a model helps.

    They are rows whose decision it changes, in a random order. Fill in the column `label` from the
    top and run `altnorm judge` whenever you like. A file that exists already gets N further rows
    and keeps its labels.
    """

    module = "ask"
    example = "altnorm ask model.safetensors pool.parquet -n 40 -o ask.csv"

    model: Path = MODEL_FILE
    pool: Path = argument("POOL", "Predictions for many rows, without labels.")
    output: Path = OUTPUT
    number: int = option("N", "Rows to label.", "--number", "-n", default=40)
    against: Path | None = option(
        "MODEL0", "Compare with this model, not with the predictions as they came."
    )
    text: list[str] | None = option(
        "NAME",
        "Column of POOL to show, such as `review` or `doc.question`; may be given several "
        "times. By default all that are not scores, labels, ids or nested.",
    )
    columns: LabelColumns
    seed: int = option("N", "Same seed, same rows.", default=0)
    force: bool = FORCE
    json: bool = JSON


@dataclass(frozen=True, kw_only=True)
class Judge(Command):
    """Say what the labels so far mean: adopt the model, do not adopt it, or label more.

    The file may be filled in only partly, and you may judge as often as you like: the answer
    remains valid after every label.
    """

    module = "ask"
    example = "altnorm judge model.safetensors ask.csv"

    model: Path = MODEL_FILE
    asked: Path = argument("ASKED", "File that `ask` wrote, with some labels filled in.")
    significance: float = option("P", "Significance level.", default=0.05)
    strict: bool = STRICT
    json: bool = JSON


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write a model as an ONNX graph of standard operators, or append it to a classifier's."""

    module = "model"
    example = "altnorm export model.safetensors -o model.onnx"

    model: Path = MODEL_FILE
    output: Path = OUTPUT
    dtype: str = option("TYPE", "Type of input and output, float32 or float64.", default="float32")
    append_to: Path | None = option("FILE", "ONNX classifier to append the adjustment to.")
    label_output: str | None = option(
        "NAME", "Add an output of this name: the decided class by name."
    )
    force: bool = FORCE
    json: bool = JSON


@dataclass(frozen=True, kw_only=True)
class Info(Command):
    """Show what a model file holds, or print a model card."""

    module = "model"
    example = "altnorm info model.safetensors"

    model: Path = MODEL_FILE
    card: bool = flag("--card", "Print a model card in Markdown: evidence, cautions, limits.")
    json: bool = JSON


COMMANDS: dict[str, type[Command]] = {
    kind.__name__.lower(): kind
    for kind in (Demo, Check, Tune, Apply, Adapt, Ask, Judge, Export, Info)
}
"""The commands by name, in the order of the help."""
