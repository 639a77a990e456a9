"""Fit an estimator to predictions from a file, keeping the class names."""

from __future__ import annotations

from typing import Any

from altnorm._validation import InputError
from altnorm.cli._remedies import REMEDIES
from altnorm.columns import listed, names_of
from altnorm.predictions import Predictions

__all__ = ["fit_named"]


def fit_named(estimator: Any, predictions: Predictions, *, labelled: bool = True) -> Any:
    """Fit on column indices, then name the classes: some of them may have no row."""
    codes = _check_labels(estimator, predictions) if labelled else None
    try:
        estimator.fit(predictions.proba, codes)
    except InputError as error:
        raise _with_columns(error, predictions) from error
    names = ("best_normalizer_", "calibrator_", "shift_calibrator_")
    for fitted in (estimator, *(getattr(estimator, name, None) for name in names)):
        if fitted is not None:
            fitted.classes_ = predictions.classes
    return estimator


def _check_labels(estimator: Any, predictions: Predictions) -> Any:
    """Return the labels as column indices, if they are of the estimator's kind."""
    codes = predictions.codes
    if predictions.multilabel and estimator.multilabel is None:
        raise InputError(
            "The labels are a 0/1 matrix",
            remedy="Pass --multilabel labelwise (each label its own problem) or --multilabel pairs "
            "(the paper's way).",
            code="option",
        )
    if not predictions.multilabel and estimator.multilabel is not None:
        raise InputError(
            "For --multilabel each label needs a 0/1 column",
            "the labels are one class per row",
            "Pass --label-prefix, or leave --multilabel out.",
            code="option",
        )
    return codes


def _with_columns(error: InputError, predictions: Predictions) -> InputError:
    """Say which columns were taken for classes, where their sum is wrong."""
    if error.code != "row_sum":
        return error
    names = listed(names_of(predictions.classes))
    hint = f"The classes are {names}; name a column that is not a class with --other."
    return error.replace(remedy=f"{REMEDIES['row_sum']} {hint}", code="class_columns")
