"""What `adapt` needs to know of the predictions in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from altnorm._base.errors import InputError
from altnorm.io.columns import Layout
from altnorm.io.predictions import read_predictions
from altnorm.method.estimator import unnamed
from altnorm.report.evaluation import check_kind


def adapt_to_file(
    normalizer: Any, source: Path, layout: Layout, *, only_balance: bool = False
) -> Any:
    """Return a copy of a model for the class balance in a file."""
    if not hasattr(normalizer, "adapt"):
        raise InputError(
            "Only a model that was tuned on labels can be adapted",
            f"this is {type(normalizer).__name__}",
            "Tune one with `altnorm tune`.",
            code="option",
        )
    predictions = read_predictions(source, layout, classes=normalizer.classes_)
    check_kind(predictions, normalizer)
    return unnamed(normalizer).adapt(predictions.proba, only_balance=only_balance)
