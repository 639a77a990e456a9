"""Fit an estimator to predictions from a file, keeping the class names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm.cli._remedies import REMEDIES
from altnorm.io.columns import Layout, listed, names_of
from altnorm.io.formats import find_source
from altnorm.io.predictions import Predictions, read_texts
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


def fit_named(
    estimator: Any, predictions: Predictions, *, labelled: bool = True, groups: Any = None
) -> Any:
    """Fit on column indices, then name the classes: some of them may have no row."""
    codes = _check_labels(estimator, predictions) if labelled else None
    more = {} if groups is None else {"groups": groups}
    try:
        estimator.fit(predictions.proba, codes, **more)
    except InputError as error:
        raise _with_columns(error, predictions) from error
    names = ("best_normalizer_", "calibrator_", "shift_calibrator_", "shift_matrix_")
    for fitted in (estimator, *(getattr(estimator, name, None) for name in names)):
        if fitted is not None:
            fitted.classes_ = predictions.classes
    return estimator


def read_groups(path: Path, name: str | None, n_rows: int, layout: Layout) -> np.ndarray | None:
    """Read the column that says which rows belong together."""
    if name is None:
        return None
    if not find_source(path, layout.format).is_table:
        raise InputError(
            "--group names a column of a table",
            f"'{path.name}' holds arrays",
            "Write the predictions as a table, such as .csv or .parquet.",
            code="option",
        )
    groups = np.array(read_texts(path, name, layout))
    empty = np.flatnonzero(groups == "")
    if empty.size or groups.size != n_rows:
        raise InputError(
            "Each row must have a group",
            f"'{name}' has {groups.size - empty.size} for {n_rows} rows",
            "Give a row that is on its own a group of its own.",
            code="option",
        )
    return groups


def _check_labels(estimator: Any, predictions: Predictions) -> Any:
    """Return the labels as column indices, if they are of the estimator's kind."""
    codes, given = predictions.codes, predictions.kind.words
    if given != kind_of(estimator).words:
        rule, remedy = _OTHER_KIND[given.problem]
        raise InputError(rule, f"the labels are {given.labels}", remedy, code="option")
    return codes


def _with_columns(error: InputError, predictions: Predictions) -> InputError:
    """Say which columns were taken for classes, where their sum is wrong."""
    if error.code != "row_sum":
        return error
    names = listed(names_of(predictions.classes))
    hint = f"The classes are {names}; name a column that is not a class with --other."
    return error.replace(remedy=f"{REMEDIES['row_sum']} {hint}", code="class_columns")
