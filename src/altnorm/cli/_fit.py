"""Fit an estimator to predictions from a file, keeping the class names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm.cli._remedies import REMEDIES
from altnorm.io.columns import listed, names_of
from altnorm.io.predictions import Predictions
from altnorm.method.estimator import unnamed
from altnorm.method.kinds import kind_of

# What to say where the labels are of this kind, and the estimator is for the other one.
_OTHER_KIND = {
    "multi-label": (
        "Without --multilabel each row needs one class",
        "Pass --multilabel labelwise (each label its own problem) or --multilabel pairs (the "
        "paper's way).",
    ),
    "single-label": (
        "For --multilabel each label needs a 0/1 column",
        "Pass --label-prefix, or leave --multilabel out.",
    ),
}


@dataclass(frozen=True)
class NamedColumns:
    """A frame of probabilities: `fit` learns from it which class each column stands for.

    Labels alone would not tell: some classes may have no row, and columns come in any order.
    """

    values: np.ndarray
    columns: list[Any]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # NumPy before 2.0 knows no `copy=None`.
        return np.asarray(self.values, dtype) if not copy else np.array(self.values, dtype)


def fit_named(estimator: Any, predictions: Predictions, *, labelled: bool = True) -> Any:
    """Fit on columns with names; return the estimator, which takes arrays in their order."""
    labels = _check_labels(estimator, predictions) if labelled else None
    frame = NamedColumns(predictions.proba, predictions.classes.tolist())
    # Groups are the units of the evidence, of which there is none without labels.
    has_groups = labelled and predictions.groups is not None
    more = {"groups": predictions.groups} if has_groups else {}
    try:
        return unnamed(estimator.fit(frame, labels, **more))
    except InputError as error:
        raise _with_columns(error, predictions) from error


def _check_labels(estimator: Any, predictions: Predictions) -> Any:
    """Return the labels, if there are any and they are of the estimator's kind."""
    _ = predictions.codes  # raises where there are none
    given = predictions.kind.words
    if given != kind_of(estimator).words:
        rule, remedy = _OTHER_KIND[given.problem]
        raise InputError(rule, f"the labels are {given.labels}", remedy, code="option")
    return predictions.labels


def _with_columns(error: InputError, predictions: Predictions) -> InputError:
    """Say which columns were taken for classes, where their sum is wrong."""
    if error.code != "row_sum":
        return error
    names = listed(names_of(predictions.classes))
    hint = f"The classes are {names}; name a column that is not a class with --other."
    return error.replace(remedy=f"{REMEDIES['row_sum']} {hint}", code="class_columns")
