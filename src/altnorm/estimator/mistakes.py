"""Mistakes that are easily made with `fit`, told by their cause rather than by what follows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from scipy.sparse import issparse

from altnorm._base.arrays import on_host
from altnorm._base.errors import InputError, shown
from altnorm._base.frames import column_names
from altnorm._base.validation import sum_tolerance


def check_numbers(frame: Any) -> None:
    """Raise where a column of a data frame holds no numbers, such as an id."""
    for name in column_names(frame) or []:
        try:
            np.asarray(frame[name]).astype(np.float64)
        except (TypeError, ValueError) as error:
            rule = "The columns of `proba` must hold numbers"
            offender = f"column '{shown(name)}' does not"
            remedy = "Drop it, or name the columns of the classes with `classes`."
            code = "extra_column"
            raise InputError(rule, offender, remedy, value=name, code=code) from error


def check_order(proba: Any, y: Any, method: str = "fit") -> None:
    """Raise where a method is given labels first and probabilities second."""
    first, second = _shape(proba), _shape(y)
    dimensions = len(first), len(second)
    swapped = dimensions == (1, 2) and second[-1] > 1
    if dimensions == (2, 2) and not issparse(y):  # a 0/1 matrix of several labels first
        labels = np.asarray(on_host(y))
        fractions = labels.dtype.kind == "f" and ((labels > 0) & (labels < 1)).any()
        swapped = bool(fractions) and bool(np.isin(np.asarray(on_host(proba)), (0, 1)).all())
    if swapped:
        rule = f"`{method}` takes probabilities first and labels second"
        remedy = f"Call {method}(proba, y)."
        raise InputError(rule, "they are the other way round", remedy, value=first, code="order")


def _shape(values: Any) -> tuple[int, ...]:
    with suppress(ValueError):  # lists of different lengths, of which others tell
        return tuple(values.shape if hasattr(values, "shape") else np.asarray(values).shape)
    return ()


def likelier_mistake(
    error: InputError, values: np.ndarray, names: np.ndarray | None, y: Any
) -> InputError:
    """Return the error that tells of a column too many, of features, or of several labels."""
    if error.code not in ("row_sum", "negative", "outside_unit"):
        return error
    column = _find_extra_column(values, error.code)
    if column is not None:
        name = f"'{shown(names[column])}'" if names is not None else str(column)
        offender = f"without column {name} they do"
        remedy = "Drop this column"
        remedy += "." if names is None else ", or name those of the classes with `classes`."
        told = {"offender": offender, "remedy": remedy, "value": name, "place": None}
        return error.replace(code="extra_column", **told)
    shape = _shape(y)
    n_classes = shape[1] if len(shape) == 2 else len(set(map(str, np.ravel(on_host(y)))))
    hint = "If these are features, pass what `predict_proba` of your classifier returns."
    if len(shape) == 2 and error.code == "row_sum":
        hint = "If rows have several labels, pass multilabel='labelwise'."
    elif y is None or n_classes == values.shape[1]:
        return error
    return error.replace(remedy=f"{hint} {error.remedy}")


def _find_extra_column(values: np.ndarray, code: str) -> int | None:
    """Which column alone is no probability: without it rows sum to 1, or entries are in [0, 1]."""
    if code == "outside_unit":
        outside = ~((values >= 0) & (values <= 1)).all(axis=0)
        return int(outside.argmax()) if outside.sum() == 1 < outside.size else None
    if code != "row_sum" or values.shape[1] < 3:
        return None
    sums = values.sum(axis=1, keepdims=True)
    # Beside an id of many digits the other columns are rounded.
    rounding = 8 * np.finfo(values.dtype).eps * np.abs(sums)
    explains = np.abs(sums - values - 1) <= sum_tolerance(values.dtype.name) + rounding
    columns = np.flatnonzero(explains.all(axis=0))
    return int(columns[0]) if columns.size == 1 else None
