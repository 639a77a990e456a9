"""``altnorm adapt``: what new predictions say about the class balance, and a model for it."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm.adjuster import load
from altnorm.balance.shift import Shift
from altnorm.cli import _options as options
from altnorm.cli._screen import out, print_json
from altnorm.cli.apply import RowSample, open_classes
from altnorm.io.columns import Layout, column_matrix, names_of
from altnorm.io.formats import find_source
from altnorm.io.predictions import read_predictions
from altnorm.method.estimator import unnamed
from altnorm.method.kinds import FittedNormalizer
from altnorm.report.evaluation import check_kind

_N_SHOWN = 5


class Assumption(StrEnum):
    """What a user may know about new data."""

    LABEL_SHIFT = "label-shift"


@options.grouped
def adapt(
    model: options.Model,
    new: Annotated[
        Path, options.argument("NEW", "Predictions without labels, at least a few hundred rows.")
    ],
    output: Annotated[
        Path | None, options.option("FILE", "Model to write; needs --assume.", "--output", "-o")
    ] = None,
    *,
    columns: options.ClassColumns,
    assume: Annotated[
        Assumption | None,
        options.option("WHAT", "`label-shift`: you know that only the class balance has changed."),
    ] = None,
    insist: Annotated[
        bool, options.flag("--insist", "Adapt even if the predictions contradict --assume.")
    ] = False,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Estimate the class balance of new predictions and, with --assume, adapt a model to it.

    Predictions alone cannot tell whether only the balance has changed. Without --assume nothing is
    written.
    """
    _check_options(output, assume, insist)
    if output is not None:
        check_output(output, force=force)
    normalizer = load(model)
    if not hasattr(normalizer, "adapt"):
        raise InputError(
            "Only a model that was tuned on labels can be adapted",
            f"'{model}' was not (it is {type(normalizer).__name__})",
            "Tune one with `altnorm tune`, without --no-labels.",
            code="option",
        )
    rows = _read_rows(normalizer, new, columns.layout(logits=normalizer.input == "logits"))
    word = None if assume is None else "label_shift"
    adapted = unnamed(normalizer).adapt(rows, assume=word, insist=insist)
    if hasattr(normalizer, "feature_names_in_"):
        adapted.feature_names_in_ = normalizer.feature_names_in_
    if output is not None:
        adapted.save(output, force=force)
    if json:
        print_json({"model": output and str(output), "shift": asdict(adapted.shift_)})
    else:
        _show(adapted.shift_, names_of(adapted.classes_))
        _say_next(adapted.shift_, model, new, output)
    return int(strict and adapted.shift_.contradicted)


def _check_options(output: Path | None, assume: Assumption | None, insist: bool) -> None:
    """Raise where an option does nothing without --assume, or --assume without an output."""
    if assume is None and (output is not None or insist):
        given = "--output" if output is not None else "--insist"
        raise InputError(
            f"{given} needs --assume label-shift",
            "it is not given",
            "Add it if you know that only the class balance has changed.",
            code="option",
        )
    if assume is not None and output is None:
        raise InputError(
            "--assume needs a model to write", "--output is not given", "Add -o.", code="option"
        )


def _read_rows(normalizer: FittedNormalizer, source: Path, layout: Layout) -> np.ndarray:
    """Predictions from a file, of a long one rows at equal steps."""
    sample = RowSample()
    if find_source(source, layout.format).is_table:
        with open_classes(source, layout, normalizer) as (table, columns):
            for batch in table.batches:
                sample.add(column_matrix(batch, columns))
    else:
        predictions = read_predictions(source, layout, classes=normalizer.classes_)
        check_kind(predictions, normalizer)
        sample.add(predictions.proba)
    if sample.rows is None:
        raise InputError(
            "Adapting needs predictions",
            f"'{source}' has no rows",
            "Name a file with a few hundred rows.",
            code="file",
        )
    return sample.rows


def _show(shift: Shift, names: list[str]) -> None:
    """Print the sentences of a shift, and the classes whose share changes most."""
    out.print(str(shift), soft_wrap=True)
    order = sorted(range(len(names)), key=lambda j: -abs(shift.after[j] - shift.before[j]))
    for j in order[:_N_SHOWN]:
        out.print(
            f"  {names[j]}: {shift.before[j]:.1%} before, {shift.after[j]:.1%} now "
            f"({shift.low[j]:.1%} to {shift.high[j]:.1%})",
            soft_wrap=True,
        )


def _say_next(shift: Shift, model: Path, new: Path, output: Path | None) -> None:
    if output is not None:
        out.print(f"Model: {output}", soft_wrap=True)
        out.print(f"Next: altnorm ask {output} {new} --against {model} -o ask.csv", soft_wrap=True)
    elif not shift.adapted and not shift.contradicted:
        out.print(
            f"If you know that only the balance has changed: altnorm adapt {model} {new} "
            "--assume label-shift -o MODEL2",
            soft_wrap=True,
        )
