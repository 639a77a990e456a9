"""The nine commands: what each takes, what its help says, and which module has the function.

Help and completion need no library, so this imports none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

from altnorm.cli._options import (
    ClassColumns,
    EvidenceColumns,
    Force,
    Jobs,
    Json,
    LabelColumns,
    Model,
    OpenPage,
    Output,
    Significance,
    Strict,
    Tuning,
    argument,
    flag,
    option,
)

MODEL = Path("altnorm-model.safetensors")
REPORT = Path("altnorm-report.html")


class Command:
    """A command: its fields are its options, and its docstring is its help."""

    module: ClassVar[str]
    """Module of the package `cli` that has the function, of the command's name."""
    example: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    """Run `check` on 7,500 real queries to an assistant that come with the package."""

    module = "check"
    example = "altnorm demo"

    output: Annotated[
        Path, option("FILE", "Report to write; the model goes beside it.", "--output", "-o")
    ] = Path("altnorm-demo.html")
    open_page: OpenPage = False
    jobs: Jobs = -1
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Check(Command):
    """Should I use it? Fit, judge, compare, and write a model and a report.

    Without TEST every validation row is judged by a model that was fitted without it. With --model
    an existing model is judged on new predictions, and nothing is fitted. VAL may be a folder of
    sample logs of lm-evaluation-harness: each task gets a line, and nothing is written.
    """

    module = "check"
    example = "altnorm check val.parquet test.parquet --label intent"

    validation: Annotated[
        Path,
        argument(
            "VAL", "Predictions on validation data, with labels; with --model, new predictions."
        ),
    ]
    test: Annotated[
        Path | None,
        argument("TEST", "Predictions on test data, with labels. Without, VAL is cross-validated."),
    ] = None
    model: Annotated[
        Path | None,
        option(
            "MODEL",
            "Fit nothing: judge this model on new predictions or, without labels, say whether "
            "they look like those it was tuned on.",
        ),
    ] = None
    output: Annotated[Path, option("FILE", "Model to write.", "--output", "-o")] = MODEL
    report: Annotated[Path, option("FILE", "Report to write.")] = REPORT
    open_page: OpenPage = False
    tuning: Tuning
    columns: EvidenceColumns
    text: Annotated[
        str | None, option("NAME", "Column to show beside the changed rows of the report.")
    ] = None
    force: Force = False
    strict: Strict = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Tune(Command):
    """Fit and judge a model and write it, nothing else: for scripts.

    If the labels don't show a gain, the model changes no decision, and says so.
    """

    module = "tune"
    example = "altnorm tune val.parquet --label intent -o model.safetensors"

    validation: Annotated[Path, argument("VAL", "Predictions on validation data, with labels.")]
    output: Output
    tuning: Tuning
    columns: EvidenceColumns
    prior: Annotated[
        str,
        option(
            "PRIOR",
            "Class prior: `counted` from the labels, counted and `shrunk` towards uniform, "
            "`uniform`, or a CSV file with a class and a number per line.",
        ),
    ] = "shrunk"
    no_labels: Annotated[
        bool,
        flag(
            "--no-labels",
            "Fit without labels: nothing is chosen or judged. `altnorm ask` says which to get.",
        ),
    ] = False
    families: Annotated[
        str | None,
        option("LIST", "Which of alternating, bias, matrix, curves compete; all by default."),
    ] = None
    calibrate: Annotated[
        bool,
        flag(
            "--calibrate/--no-calibrate",
            "Adjust probabilities too, also where your decisions stay as they were.",
        ),
    ] = True
    cv: Annotated[int, option("K", "Number of folds.")] = 5
    force: Force = False
    strict: Strict = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Apply(Command):
    """Apply a model to a file of predictions; all other columns stay as they are.

    Tables are streamed, also to `-o -`: memory does not grow with the file. Logits come out as
    probabilities.
    """

    module = "apply"
    example = "altnorm apply model.safetensors new.parquet -o adjusted.parquet"

    model: Model
    source: Annotated[Path, argument("IN", "Predictions to adjust.")]
    output: Output
    columns: ClassColumns
    prediction: Annotated[
        str | None,
        option(
            "NAME",
            "Column for the decision, `prediction` by default: the class, empty where the row is "
            "left to a person.",
        ),
    ] = None
    no_prediction: Annotated[bool, flag("--no-prediction", "Add no column for the decision.")] = (
        False
    )
    spreadsheet_safe: Annotated[
        bool,
        flag(
            "--spreadsheet-safe",
            "In CSV, write a single quote before text that a spreadsheet would run as a formula.",
        ),
    ] = False
    jobs: Jobs = -1
    force: Force = False
    strict: Annotated[
        bool, flag("--strict", "Exit with status 1 if predictions no longer look as at fit.")
    ] = False
    json: Json = False


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

    model: Model
    new: Annotated[
        Path, argument("NEW", "Predictions without labels, at least a few hundred rows.")
    ]
    output: Annotated[
        Path | None, option("FILE", "Model to write; needs --assume.", "--output", "-o")
    ] = None
    columns: ClassColumns
    assume: Annotated[
        Assumption | None,
        option("WHAT", "`label-shift`: you know that only the class balance has changed."),
    ] = None
    insist: Annotated[
        bool, flag("--insist", "Adapt even if the predictions contradict --assume.")
    ] = False
    force: Force = False
    strict: Strict = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Ask(Command):
    """Choose the rows to label that tell whether a model helps.

    They are rows whose decision it changes, in a random order. Fill in the column `label` from the
    top and run `altnorm judge` whenever you like. A file that exists already gets N further rows
    and keeps its labels.
    """

    module = "ask"
    example = "altnorm ask model.safetensors pool.parquet -n 40 -o ask.csv"

    model: Model
    pool: Annotated[Path, argument("POOL", "Predictions for many rows, without labels.")]
    output: Output
    number: Annotated[int, option("N", "Rows to label.", "--number", "-n")] = 40
    against: Annotated[
        Path | None,
        option("MODEL0", "Compare with this model, not with the predictions as they came."),
    ] = None
    text: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Column of POOL to show, such as `review` or `doc.question`; may be given several "
            "times. By default all that are not scores, labels, ids or nested.",
        ),
    ] = None
    columns: LabelColumns
    seed: Annotated[int, option("N", "Same seed, same rows.")] = 0
    force: Force = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Judge(Command):
    """Say what the labels so far mean: adopt the model, do not adopt it, or label more.

    The file may be filled in only partly, and you may judge as often as you like: the answer
    remains valid after every label.
    """

    module = "ask"
    example = "altnorm judge model.safetensors ask.csv"

    model: Model
    asked: Annotated[Path, argument("ASKED", "File that `ask` wrote, with some labels filled in.")]
    significance: Significance = 0.05
    strict: Strict = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write a model as an ONNX graph of standard operators, or append it to a classifier's."""

    module = "model"
    example = "altnorm export model.safetensors -o model.onnx"

    model: Model
    output: Output
    dtype: Annotated[str, option("TYPE", "Type of input and output, float32 or float64.")] = (
        "float32"
    )
    append_to: Annotated[
        Path | None, option("FILE", "ONNX classifier to append the adjustment to.")
    ] = None
    label_output: Annotated[
        str | None, option("NAME", "Add an output of this name: the decided class by name.")
    ] = None
    force: Force = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Info(Command):
    """Show what a model file holds, or print a model card."""

    module = "model"
    example = "altnorm info model.safetensors"

    model: Model
    card: Annotated[
        bool, flag("--card", "Print a model card in Markdown: evidence, cautions, limits.")
    ] = False
    json: Json = False


COMMANDS: dict[str, type[Command]] = {
    kind.__name__.lower(): kind
    for kind in (Demo, Check, Tune, Apply, Adapt, Ask, Judge, Export, Info)
}
"""The commands by name, in the order of the help."""
