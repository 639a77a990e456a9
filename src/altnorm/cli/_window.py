"""What `adapt` needs to know of the predictions in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from altnorm._base.errors import InputError
from altnorm.io.columns import (
    Layout,
    check_no_spare,
    class_columns,
    names_of,
    spare_columns,
    with_spare_hint,
)
from altnorm.io.formats import find_source
from altnorm.io.predictions import read_predictions
from altnorm.io.tables import open_table
from altnorm.method.estimator import unnamed
from altnorm.report.evaluation import check_kind


def adapt_to_file(
    normalizer: Any, source: Path, layout: Layout, *, only_balance: bool = False
) -> Any:
    """Return a copy of a model for the class balance in a file; a table is read batch by batch."""
    if not hasattr(normalizer, "adapt"):
        raise InputError(
            "Only a model that was tuned on labels can be adapted",
            f"this is {type(normalizer).__name__}",
            "Tune one with `altnorm tune`.",
            code="option",
        )
    if find_source(source, layout.format).is_table:
        window = _window_of_table(normalizer, source, layout)
    else:
        predictions = read_predictions(source, layout, classes=normalizer.classes_)
        check_kind(predictions, normalizer)
        window = unnamed(normalizer).take_in(predictions.proba)
    if window is None:
        raise InputError(
            "Adapting needs predictions",
            f"'{source}' has no rows",
            "Name a file with some hundred rows.",
            code="too_few_rows",
        )
    return normalizer.adapt(window, only_balance=only_balance)


def _window_of_table(normalizer: Any, source: Path, layout: Layout) -> Any:
    from altnorm.deploy.arrow import take_in_batches

    columns = [layout.prefix + name for name in names_of(normalizer.classes_)]
    with open_table(source, numbers=columns, **layout.reading) as table:
        class_columns(table.schema, layout, normalizer.classes_)
        # Probabilities give a class too many away by their sum; logits do not.
        if layout.logits:
            check_no_spare(table.schema, layout, columns)
        try:
            return take_in_batches(normalizer, table.batches, prefix=layout.prefix)
        except InputError as error:
            spare = spare_columns(table.schema, layout, columns)
            raise with_spare_hint(error, spare) from error
