"""``altnorm evaluate``: before and after on labelled test predictions."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from altnorm.adjuster import load
from altnorm.cli import _options as options
from altnorm.cli._screen import (
    changed_table,
    out,
    print_json,
    score_table,
    show_cautions,
    show_verdict,
)
from altnorm.io.predictions import Predictions, read_predictions
from altnorm.report.evaluation import Evaluation
from altnorm.report.evaluation import evaluate as evaluate_normalizer

EXAMPLE = "altnorm evaluate model.safetensors test.parquet --label intent"


@options.grouped
def evaluate(
    model: options.Model,
    test: options.Test,
    scoring: options.Scoring = None,
    *,
    labels: options.LabelColumns,
    columns: options.ClassColumns,
    rows: Annotated[
        int, typer.Option(metavar="N", min=0, help="Fixed and broken rows to show, each.")
    ] = 5,
    significance: options.Significance = 0.05,
    seed: options.Seed = 0,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Scores before and after, the verdict, and which rows were fixed and broken."""
    normalizer = load(model)
    layout = columns.layout(labels, logits=normalizer.input == "logits")
    predictions = read_predictions(test, layout, classes=normalizer.classes_)
    result = evaluate_normalizer(
        normalizer, predictions, scoring=scoring, significance=significance, random_state=seed
    )
    if json:
        print_json(result.to_dict())
    else:
        show_evaluation(result, predictions, rows)
        tuned = getattr(normalizer, "verdict_", None)
        show_cautions(() if tuned is None else tuned.cautions, " from tuning")
    return int(strict and not result.verdict.adopted)


def show_evaluation(result: Evaluation, predictions: Predictions, n_rows: int) -> None:
    """Print verdict, scores and some changed rows."""
    show_verdict(result.verdict)
    out.print(score_table([result.verdict, *result.scores]))
    for rows, what in ((result.fixed, "fixed"), (result.broken, "broken")):
        show_changed(result, predictions, rows, what, n_rows)


def show_changed(
    result: Evaluation, predictions: Predictions, rows: np.ndarray, what: str, n_rows: int
) -> None:
    """Print a table of some of the rows that were fixed or broken."""
    changed = result.changed(rows)[:n_rows]
    if not changed:
        return
    described = [(f"{one.row:,}", truth(predictions, one.row), one) for one in changed]
    shown = f", the first {len(changed)}" if len(changed) < rows.size else ""
    out.print(changed_table(described, f"{rows.size:,} rows {what}{shown}"))


def truth(predictions: Predictions, row: int) -> str:
    """The label of a row, or its labels."""
    assert predictions.labels is not None
    label = predictions.labels[row]
    names = predictions.kind.named(label, predictions.classes)
    return ", ".join(str(name) for name in names)
