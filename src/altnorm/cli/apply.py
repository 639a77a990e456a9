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
from altnorm.cli._changes import ChangeCount
from altnorm.cli._drift import DriftWatch
from altnorm.cli._screen import errors, out, print_json, progress
from altnorm.io.columns import (
    Layout,
    check_adjusted,
    check_no_spare,
    class_columns,
    column_matrix,
    names_of,
    spare_columns,
    with_spare_hint,
)
from altnorm.io.formats import find_source
from altnorm.io.predictions import read_predictions, write_predictions
from altnorm.io.tables import is_table, open_table, write_table
from altnorm.method.kinds import kind_of
from altnorm.report.evaluation import check_kind

EXAMPLE = "altnorm apply model.safetensors new.parquet -o adjusted.parquet"


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
            show_default=False,
        ),
    ] = None,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe",
            metavar="",
            help="In CSV, write a single quote before text that a spreadsheet would run as a "
            "formula.",
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
    watch, changes = DriftWatch(normalizer), ChangeCount(normalizer)
    writing = {"force": force, "spreadsheet_safe": spreadsheet_safe}
    job = _Job(source, output, layout, prediction, writing, watch, changes)
    is_stream = find_source(source, layout.format).is_table
    n_rows = _stream(job, jobs) if is_stream else _whole(job)
    _tell(job, n_rows, time.perf_counter() - start, json=json)


def _tell(job: _Job, n_rows: int, seconds: float, *, json: bool) -> None:
    """Print what was done, and a warning where predictions no longer look like those at fit."""
    drift, changes, output = job.watch.result(), job.changes, job.output
    if drift is not None and drift.advice != "nothing":
        errors.print(f"Warning: {drift}", markup=False, soft_wrap=True)
    if json:
        record = {
            "output": str(output),
            "n_rows": n_rows,
            "n_rows_changed": changes.n_rows,
            "n_decisions_changed": changes.n_decisions,
            "seconds": seconds,
            "drift": None if drift is None else asdict(drift),
        }
        print_json(record)
    else:
        rate = f"{n_rows / seconds:,.0f} rows a second"
        summary = f"{plural(n_rows, 'row')} in {seconds:.1f} s ({rate}), {changes}"
        out.print(f"{summary}: {output}", soft_wrap=True)


class _Job(NamedTuple):
    """What to read and to write, and what is counted on the way."""

    source: Path
    output: Path
    layout: Layout
    prediction: str | None
    writing: dict[str, bool]  # how `write_table` is to write
    watch: DriftWatch
    changes: ChangeCount

    def take_in(self, read: tuple[Any, Any], after: Any, columns: list[str]) -> None:
        """Count what a batch holds: a sample and all of it as it was read, and all of it now."""
        sample, before = read
        self.watch.add(column_matrix(sample, columns))
        if self.changes.active:
            self.changes.add(column_matrix(before, columns), column_matrix(after, columns))


def _stream(job: _Job, n_jobs: int) -> int:
    """Adjust a table batch by batch."""
    from altnorm.deploy.arrow import apply_batches, output_schema

    _check_is_table(job.output)
    layout, normalizer, n_rows = job.layout, job.watch.normalizer, 0
    columns = [layout.prefix + name for name in names_of(normalizer.classes_)]
    with open_table(job.source, numbers=columns, **layout.reading) as table:
        class_columns(table.schema, layout, normalizer.classes_)
        # Neither logits nor labels have a sum that would give away a class too many.
        if layout.logits or kind_of(normalizer).is_multilabel:
            check_no_spare(table.schema, layout, columns)
        names: dict[str, Any] = {"prefix": layout.prefix, "prediction": job.prediction}
        schema = output_schema(normalizer, table.schema, **names)
        # Threads work ahead of the writer, so what was read waits here for its result.
        seen: deque[Any] = deque()
        batches = apply_batches(
            normalizer, _sampled(table.batches, columns, job.watch, seen), n_jobs=n_jobs, **names
        )
        how: dict[str, Any] = {"numbers": columns, "codec": table.codec, **job.writing}
        with (
            write_table(job.output, schema, **how) as write,
            progress("Adjusting", table.n_rows) as advance,
        ):
            for batch in _with_spare(batches, spare_columns(table.schema, layout, columns)):
                write(batch)
                # Only now is the batch known to be sound, and may count.
                job.take_in(seen.popleft(), batch, columns)
                n_rows += batch.num_rows
                advance(batch.num_rows)
    return n_rows


def _check_is_table(output: Path) -> None:
    if not is_table(output):
        raise InputError(
            f"A table cannot become '{output.suffix}' without losing columns",
            remedy="Name a .csv, .tsv, .jsonl, .parquet, .arrow or .feather file.",
            code="option",
        )


def _sampled(
    batches: Iterator[Any], columns: list[str], watch: DriftWatch, seen: deque[Any]
) -> Iterator[Any]:
    """Pass the batches on, and keep them and some rows of each until they are known to be sound."""
    import pyarrow as pa

    for batch in batches:
        rows = watch.sample(batch.num_rows if watch.active else 0)
        values = batch.select(columns)
        seen.append((values.take(pa.array(rows, pa.int64())), values))
        yield batch


def _with_spare(batches: Iterator[Any], spare: list[str]) -> Iterator[Any]:
    """Pass the batches on; where sums are wrong, name the columns that may be unknown classes."""
    try:
        yield from batches
    except InputError as error:
        raise with_spare_hint(error, spare) from error


def _whole(job: _Job) -> int:
    """Adjust a file of arrays."""
    if job.prediction is not None:
        raise InputError(
            "--prediction adds a column to a table", remedy="Name a table as input.", code="option"
        )
    normalizer = job.watch.normalizer
    predictions = read_predictions(job.source, job.layout, classes=normalizer.classes_)
    check_kind(predictions, normalizer)
    proba = check_adjusted(normalizer.transform(predictions.proba))
    adjusted = replace(predictions, proba=proba, input="proba")
    job.watch.add(predictions.proba)
    job.changes.add(predictions.proba, proba)
    write_predictions(adjusted, job.output, job.layout, **job.writing)
    return len(adjusted.proba)
