"""``altnorm ask``: a file of the rows to label, to learn whether a model helps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from altnorm._base.files import check_output
from altnorm._base.persistence import load, model_metadata
from altnorm.asking.asking import find_changes
from altnorm.cli import _options as options
from altnorm.cli._screen import out, print_json
from altnorm.io.columns import Layout, names_of
from altnorm.io.predictions import read_predictions
from altnorm.io.questions import (
    Origin,
    Questions,
    make_questions,
    other_columns,
    read_questions,
    short_digest,
)
from altnorm.report.evaluation import check_kind

EXAMPLE = "altnorm ask model.safetensors pool.parquet -n 40 -o ask.csv"


@options.grouped
def ask(
    model: options.Model,
    pool: Annotated[
        Path, typer.Argument(metavar="POOL", help="Predictions without labels, of many rows.")
    ],
    output: options.Output,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", min=1, help="Rows to label.")
    ] = 40,
    *,
    labels: options.LabelColumns,
    columns: options.ClassColumns,
    seed: options.Seed = 0,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write the rows whose labels decide whether the model helps: those that it changes.

    They come in a random order. Fill in the column `label` from the top and run `altnorm judge`
    whenever you like. A file that is there already gets N further rows and keeps its labels.
    """
    asked = None
    if Path(output).exists() and not force:
        asked = read_questions(output)
    check_output(output, force=force or asked is not None)
    layout = columns.layout(labels)
    stop = number if asked is None else asked.n_rows + number
    questions = pool_questions(model, pool, layout, seed, stop)
    if asked is not None:
        questions = asked.extended(questions)
    if questions.lines:
        questions.write(output, force=force or asked is not None)
    if json:
        origin = questions.source._asdict()
        print_json({"output": str(output), "n_asked": questions.n_rows, **origin})
    else:
        _show(questions, 0 if asked is None else asked.n_rows, model, output)


def pool_questions(model: Path, pool: Path, layout: Layout, seed: int, n: int) -> Questions:
    """The first `n` questions about a pool."""
    normalizer = load(model)
    # The pool is read without its labels; they may have gaps, or be of another kind.
    plain = replace(layout, label=None, label_prefix=None, logits=normalizer.input == "logits")
    predictions = read_predictions(pool, plain, classes=normalizer.classes_)
    check_kind(predictions, normalizer)
    changes = find_changes(normalizer, predictions.proba)
    counts = (changes.n_rows, changes.rows.size, int(changes.size.sum()))
    source = Origin(*counts, seed, short_digest(model_metadata(model)["digest"]))
    names = names_of(normalizer.classes_)
    truth = [] if layout.label is None else [layout.label]
    if layout.label_prefix is not None:
        truth = [layout.label_prefix + name for name in names]
    others = other_columns(pool, layout, [layout.prefix + name for name in names], truth)
    return make_questions(changes, normalizer.classes_, source, n=n, others=others)


def _show(questions: Questions, n_before: int, model: Path, output: Path) -> None:
    source = questions.source
    if not questions.lines:
        out.print(f"The model changes no decision in {source.n_rows:,} rows: nothing to label.")
        return
    added = questions.n_rows - n_before
    left = source.n_changed - questions.n_rows
    rows = f"{added:,} {'further ' if n_before else ''}rows to label"
    out.print(
        f"{rows}, of {source.n_changed:,} that the model changes among {source.n_rows:,}"
        f"{'' if left else ' (these are all)'}: {output}",
        soft_wrap=True,
    )
    out.print(
        f"Fill in the column `label` from the top ({questions.form.hint}), then: altnorm judge "
        f"{model} {output}",
        markup=False,
        soft_wrap=True,
    )
