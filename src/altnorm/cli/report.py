"""``altnorm report``: one self-contained interactive page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from altnorm._base.files import check_output
from altnorm.adjuster import load
from altnorm.cli import _options as options
from altnorm.cli._journey import compare_tuned
from altnorm.cli._screen import out, print_json
from altnorm.io.predictions import read_predictions, read_texts

EXAMPLE = "altnorm report model.safetensors test.parquet --label intent -o report.html"


@options.grouped
def report(
    model: options.Model,
    test: options.Test,
    output: options.Output,
    validation: Annotated[
        Path | None,
        typer.Option(
            metavar="VAL",
            help="Predictions that the model was tuned on: adds a comparison with other methods.",
            show_default=False,
        ),
    ] = None,
    text: options.Text = None,
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Title of the page.", show_default=False),
    ] = None,
    scoring: options.Scoring = None,
    *,
    labels: options.LabelColumns,
    columns: options.ClassColumns,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write a page that opens from disk: should I use it, what changes, why, and how sure is it."""
    from altnorm.report import check_page, write_report

    check_page(output)
    check_output(output, force=force)
    normalizer = load(model)
    layout = columns.layout(labels, logits=normalizer.input == "logits")
    tested = read_predictions(test, layout, classes=normalizer.classes_)
    texts = None if text is None else read_texts(test, text, layout)
    val = compared = None
    if validation is not None:
        val = read_predictions(validation, layout, classes=normalizer.classes_)
        if tested.labels is not None:
            compared = compare_tuned(normalizer, val, tested, scoring)
    write_report(
        normalizer,
        tested,
        output,
        comparison=compared,
        validation=val,
        texts=texts,
        title=title,
        scoring=scoring,
        force=force,
    )
    if json:
        print_json({"output": str(output)})
    else:
        out.print(f"Report: {output}", soft_wrap=True)
