"""``altnorm apply``: adjust the predictions in a file."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from altnorm._base.errors import InputError
from altnorm._base.words import plural
from altnorm.adjuster import load
from altnorm.cli import _options as options
from altnorm.cli._screen import errors, in_options, out, print_json, progress
from altnorm.cli._stream import MOST_NUMBERS, ChangeCount, RowSample, open_classes
from altnorm.io.columns import Layout, check_adjusted, column_matrix
from altnorm.io.formats import find_source
from altnorm.io.predictions import read_predictions, write_predictions
from altnorm.io.tables import is_table, write_table
from altnorm.method.estimator import ProbabilityTransformer, unnamed
from altnorm.report.evaluation import check_kind

EXAMPLE = "altnorm apply model.safetensors new.parquet -o adjusted.parquet"

_MOST_ROWS = 4096  # looked at for drift: enough, and a small share of the work


@options.grouped
def apply(
    model: options.Model,
    source: Annotated[Path, typer.Argument(metavar="IN", help="Predictions to adjust.")],
    output: options.Output,
    *,
    columns: options.ClassColumns,
    prediction: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Add a column with the decision for the model's purpose: the class, empty where "
            "the row is left to a person.",
        ),
    ] = None,
    spreadsheet_safe: Annotated[
        bool,
        options.flag(
            "--spreadsheet-safe",
            "In CSV, write a single quote before text that a spreadsheet would run as a formula.",
        ),
    ] = False,
    jobs: options.Jobs = -1,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write what the model makes of the probabilities; all other columns stay as they are.

    Tables are streamed: memory does not grow with the file. Logits come out as probabilities.
    """
    start = time.perf_counter()
    normalizer = load(model)
    layout = columns.layout(logits=normalizer.input == "logits")
    writing = {"force": force, "spreadsheet_safe": spreadsheet_safe}
    seen = RowSample(min(MOST_NUMBERS, _MOST_ROWS * len(normalizer.classes_)))
    changes = ChangeCount(normalizer)
    job = _Job(normalizer, source, output, layout, prediction, writing, seen, changes)
    if find_source(source, layout.format).is_table:
        _stream(job, jobs)
    else:
        _whole(job)
    _tell(job, time.perf_counter() - start, json=json)


class _Job(NamedTuple):
    """What to read and to write, and what is counted on the way."""

    normalizer: ProbabilityTransformer
    source: Path
    output: Path
    layout: Layout
    prediction: str | None
    writing: dict[str, Any]  # how `write_table` is to write
    seen: RowSample
    changes: ChangeCount


def _tell(job: _Job, seconds: float, *, json: bool) -> None:
    """Print what was done, and a warning where predictions no longer look like those at fit."""
    rows, n_rows, changes = job.seen.rows, job.seen.n_seen, job.changes
    drift = None if rows is None else unnamed(job.normalizer).drift(rows)
    if drift is not None and drift.advice != "nothing":
        errors.print(f"Warning: {in_options(str(drift))}", soft_wrap=True)
    if json:
        record = {
            "output": str(job.output),
            "n_rows": n_rows,
            "n_rows_changed": changes.n_rows,
            "n_decisions_changed": changes.n_decisions,
            "n_rows_left": changes.n_left,
            "seconds": seconds,
            "drift": None if drift is None else asdict(drift),
        }
        print_json(record)
    else:
        rate = f"{n_rows / seconds:,.0f} rows a second"
        summary = f"{plural(n_rows, 'row')} in {seconds:.1f} s ({rate}), {changes}"
        out.print(f"{summary}: {job.output}", soft_wrap=True)


def _stream(job: _Job, n_jobs: int) -> None:
    """Adjust a table batch by batch."""
    from altnorm.deploy.arrow import apply_batches, output_schema

    if not is_table(job.output):
        raise InputError(
            f"A table cannot become '{job.output.suffix}' without losing columns",
            remedy="Name a .csv, .tsv, .jsonl, .parquet, .arrow or .feather file.",
            code="option",
        )
    model = job.normalizer
    names: dict[str, Any] = {"prefix": job.layout.prefix, "prediction": job.prediction}
    with open_classes(job.source, job.layout, model) as (table, columns):
        # Threads work ahead of the writer, so what was read waits here for its result.
        waiting: deque[Any] = deque()
        batches = apply_batches(model, _kept(table.batches, waiting), n_jobs=n_jobs, **names)
        schema = output_schema(model, table.schema, **names)
        how = {"numbers": columns, "codec": table.codec, **job.writing}
        with (
            write_table(job.output, schema, **how) as write,
            progress("Adjusting", table.n_rows) as advance,
        ):
            for batch in batches:
                write(batch)
                # Only now is the batch known to be sound, and may count.
                before = column_matrix(waiting.popleft(), columns)
                job.seen.add(before)
                job.changes.add(before, column_matrix(batch, columns))
                advance(batch.num_rows)


def _kept(batches: Iterator[Any], waiting: deque[Any]) -> Iterator[Any]:
    """Pass the batches on, and keep each until somebody takes it from those that wait."""
    for batch in batches:
        waiting.append(batch)
        yield batch


def _whole(job: _Job) -> None:
    """Adjust a file of arrays."""
    if job.prediction is not None:
        raise InputError(
            "--prediction adds a column to a table", remedy="Name a table as input.", code="option"
        )
    predictions = read_predictions(job.source, job.layout, classes=job.normalizer.classes_)
    check_kind(predictions, job.normalizer)
    proba = check_adjusted(job.normalizer.transform(predictions.proba))
    job.seen.add(predictions.proba)
    job.changes.add(predictions.proba, proba)
    adjusted = replace(predictions, proba=proba, input="proba")
    write_predictions(adjusted, job.output, job.layout, **job.writing)
