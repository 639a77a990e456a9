"""Checks of labels: class names, 0/1 matrices, and the probabilities of their entries."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets

from altnorm._base.arrays import is_array_api_obj, to_numpy
from altnorm._base.errors import InputError, Place, shown
from altnorm._base.validation import check_matrix, check_unmasked


def check_label_proba(proba: Any, name: str = "proba") -> np.ndarray:
    """Return multi-label probabilities as a floating (n, m) NumPy array with entries in [0, 1]."""
    array: np.ndarray = to_numpy(check_matrix(proba, name))
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        slack = 4 * np.finfo(array.dtype).eps  # what rounding may add to 1 or take from 0
        outside = np.argwhere(~((array >= -slack) & (array <= 1 + slack)))
        if not outside.size:
            return np.clip(array, 0, 1)
        row, column = map(int, outside[0])
        value = float(array[row, column])
        raise InputError(
            f"`{name}` must lie in [0, 1]",
            f"{len(outside)} of {array.size} entries do not",
            "If these are logits, pass input='logits' or apply the logistic function.",
            value=value,
            code="outside_unit",
            place=Place(row, column, f"{value:.6g}"),
        )
    return array


def check_indicator(values: Any, name: str) -> Any:
    """Return a 0/1 matrix as a Boolean array, or as a Boolean CSR array if it is sparse."""
    check_unmasked(values, name)
    if issparse(values):
        array = csr_array(values)
        entries = array.data
    else:
        array = entries = to_numpy(values) if is_array_api_obj(values) else np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"`{name}` must be a 0/1 matrix, one column per label",
            f"it has shape {array.shape} and dtype {array.dtype}",
            "Encode label sets with scikit-learn's MultiLabelBinarizer.",
            value=array.shape,
            code="label_matrix",
        )
    wrong = entries[(entries != 0) & (entries != 1)] if array.dtype.kind != "b" else entries[:0]
    if wrong.size:
        raise InputError(
            f"`{name}` must hold only 0 and 1",
            f"{wrong.size} of {entries.size} entries do not, the first is {wrong[0]}",
            "If these are probabilities, compare them with a threshold first.",
            value=wrong[0],
            code="label_matrix",
        )
    return array.astype(bool)


def check_targets(labels: np.ndarray) -> np.ndarray:
    """Return class labels; raise where they are numbers that are no classes.

    scikit-learn also wonders whether many classes in few rows are a regression. Here the columns
    of the predictions say that they are classes, so it is shown each of them twice.
    """
    # Integers beside which there might have been gaps, as from an object column of a data frame.
    if labels.dtype.kind == "O" and all(isinstance(label, Integral) for label in labels):
        labels = np.array(labels.tolist())
    try:
        present = np.unique(labels)
    except TypeError:  # kinds that cannot be compared, which it knows how to refuse
        present = labels
    check_classification_targets(np.repeat(present, 2))
    return labels


def class_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the column index of each label."""
    order = np.argsort(classes)  # columns of a file may come in any order
    position = np.searchsorted(classes, labels, sorter=order)
    codes = order[np.minimum(position, classes.size - 1)]
    unknown = np.flatnonzero(classes[codes] != labels)
    if unknown.size:
        raise InputError(
            "Each label must be one of the classes",
            f"{unknown.size} of {labels.size} are not",
            f"Map the labels to {shown(classes.tolist(), 300)}.",
            value=labels[unknown[0]],
            code="unknown_class",
            place=f"{shown(repr(labels[unknown[0]]))} in row {unknown[0]}",
        )
    return codes
