"""``altnorm compare``: alternating normalization next to its peers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from altnorm import compare as compare_methods
from altnorm._base.errors import InputError
from altnorm.adjuster.comparison import Comparison, default_methods
from altnorm.cli import _options as options
from altnorm.cli._screen import errors, gain_style, out, print_json
from altnorm.io.predictions import Predictions, read_predictions

EXAMPLE = "altnorm compare val.parquet test.parquet --label intent"


@options.grouped
def compare(
    validation: options.Validation,
    test: options.Test,
    scoring: options.Scoring = None,
    *,
    labels: options.LabelColumns,
    columns: options.ClassColumns,
    logits: options.Logits = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """Fit each method on validation predictions and compare them on test predictions."""
    layout = columns.layout(labels, logits=logits)
    val = read_predictions(validation, layout)
    tested = read_predictions(test, layout, classes=val.classes)
    if val.labels is not None and tested.labels is not None and val.kind != tested.kind:
        raise InputError(
            "Both files must have the same kind of labels",
            remedy="Check their label columns.",
            code="option",
        )
    result = compare_all(val, tested, scoring, seed=seed, jobs=jobs)
    if json:
        print_json({"scoring": result.scoring, "base": result.base, "methods": result.to_dicts()})
    else:
        out.print(comparison_table(result))


def compare_all(
    val: Predictions, test: Predictions, scoring: str | None, *, seed: int = 0, jobs: int = -1
) -> Comparison:
    """Compare all methods."""
    methods = default_methods(val.multilabel, random_state=seed)
    for method in methods.values():
        if "n_jobs" in method.get_params():
            method.set_params(n_jobs=jobs)
    return compare_files(val, test, methods, scoring)


def compare_files(
    val: Predictions, test: Predictions, methods: Mapping[str, Any], scoring: Any
) -> Comparison:
    """Compare methods on what two files hold, with a progress bar on a terminal."""
    return compare_methods(
        val.probabilities(),
        val.codes,
        test.probabilities(),
        test.codes,
        methods=methods,
        scoring=scoring,
        verbose=int(errors.is_terminal),
    )


def comparison_table(result: Comparison, title: str = "") -> Table:
    """One row per method, best first."""
    table = Table(
        title=title or None, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0)
    )
    header, *lines = result.cells()
    for j, heading in enumerate(header):
        table.add_column(heading, justify="right" if j else "left")
    rows = sorted(result, key=lambda row: -row.score)
    for (method, score, change, *rest), row in zip(lines, rows, strict=True):
        table.add_row(method, score, Text(change, style=gain_style(result.figures(row))), *rest)
    return table
