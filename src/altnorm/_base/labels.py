"""Labels: which rows have one, class names, 0/1 matrices, the probabilities of their entries."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from altnorm._base.arrays import on_host, to_numpy
from altnorm._base.errors import InputError, InputTypeError, shape_error, shown
from altnorm._base.validation import check_matrix, check_unmasked, refuse


def check_label_proba(proba: Any) -> np.ndarray:
    """Return multi-label probabilities, (n, m) in [0, 1], as NumPy."""
    array: np.ndarray = to_numpy(check_matrix(proba, "proba"))
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        slack = 4 * np.finfo(array.dtype).eps  # what rounding may add to 1 or take from 0
        wrong = ~((array >= -slack) & (array <= 1 + slack))
        rule = "`proba` must lie in [0, 1]"
        remedy = "If these are logits, pass input='logits' or apply the logistic function."
        refuse(wrong, array, rule, "entries do not", remedy, code="outside_unit")
        return np.clip(array, 0, 1)
    return array


def check_indicator(y: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a 0/1 matrix, dense or sparse, as booleans."""
    check_unmasked(y, "y")
    array: Any = csr_array(y) if issparse(y) else np.asarray(on_host(y))
    remedy = "Use scikit-learn's MultiLabelBinarizer to make one."
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        rule = "`y` must be a 0/1 matrix, one column per label"
        offender = f"it has shape {array.shape} and dtype {array.dtype}"
        raise InputError(rule, offender, remedy, value=array.shape, code="label_matrix")
    entries = array.data if issparse(y) else array
    wrong = entries[(entries != 0) & (entries != 1)]
    if wrong.size:
        rule = "`y` must hold only 0 and 1"
        offender = f"{wrong.size} of {entries.size} entries do not, the first is {wrong[0]}"
        remedy = "If these are probabilities, compare them with a threshold first."
        raise InputError(rule, offender, remedy, value=wrong[0], code="label_matrix")
    if array.shape != shape:
        rule = f"`y` must be a 0/1 matrix of the shape of `proba`, {shape}"
        raise shape_error(rule, array, remedy, "label_matrix")
    labels = array.astype(bool)
    return np.asarray(labels.toarray() if issparse(y) else labels)


def check_targets(labels: np.ndarray) -> np.ndarray:
    """Return class labels; raise where one is missing or cannot be a class."""
    if labels.dtype.kind in "fO":
        missing = np.array([is_missing(label) for label in labels], dtype=bool)
        rule = "`y` must hold a label for every row"
        remedy = "Drop those rows, or fit an Adjuster, which can do without some."
        refuse(missing, missing, rule, "rows have none", remedy, code="no_labels", note="")
    # Integers in an object array, as a data frame keeps them where there were gaps.
    if labels.dtype.kind == "O" and all(isinstance(label, Integral) for label in labels):
        labels = np.array(labels.tolist())
    try:
        present = np.unique(labels)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels})
        rule, offender = "`y` must hold labels of one kind", f"it holds {', '.join(kinds)}"
        remedy = "Pass all of them as text, for example."
        raise InputError(rule, offender, remedy, value=kinds, code="one_kind") from error
    check_class_type(present, "y")
    return labels


def check_class_type(classes: np.ndarray, name: str) -> None:
    """Raise where something cannot be a class; `name` is the argument that holds it."""
    wrong = classes[~_are_classes(classes)]
    if wrong.size:
        # As scikit-learn begins, whose checks ask for it.
        rule = "Unknown label type: classes must be text, whole numbers or booleans"
        offender = f"`{name}` holds {shown(wrong[0])} ({type(wrong[0]).__name__})"
        remedy = "Convert the labels to text."
        raise InputTypeError(rule, offender, remedy, value=wrong[0], code="class_type")


def _are_classes(present: np.ndarray) -> np.ndarray:
    if present.dtype.kind == "f":
        return np.asarray(np.isfinite(present) & (present == np.floor(present)))
    if present.dtype.kind == "O":
        return np.array([isinstance(label, str | Integral) for label in present], dtype=bool)
    return np.full(present.shape, present.dtype.kind in "biuU")


def class_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    order = np.argsort(classes)  # columns of a file may come in any order
    try:
        position = np.searchsorted(classes, labels, sorter=order)
    except TypeError:  # numbers among names: none of them is a class
        position = np.zeros(labels.size, dtype=int)
    codes = order[np.minimum(position, classes.size - 1)]
    unknown = np.flatnonzero(classes[codes] != labels)
    if unknown.size:
        (first,) = labels[unknown[:1]].tolist()
        remedy = f"Map the labels to {shown(classes.tolist(), 300)}."
        if labels.dtype.kind not in "biuf" and np.array_equal(classes, np.arange(classes.size)):
            remedy = f"The classes are the column numbers, 0 to {classes.size - 1}; to name them, "
            remedy += "pass `classes` to `fit`."
        raise InputError(
            "Each label must be one of the classes",
            f"{unknown.size} of {labels.size} are not",
            remedy,
            value=first,
            code="unknown_class",
            place=f"{shown(repr(first))} in row {unknown[0]}",
        )
    return codes


def has_label(
    y: Any, shape: tuple[int, int], names: np.ndarray | None = None
) -> tuple[np.ndarray, Any]:
    """Say which rows have a label, (n,) booleans, and return the labels of these.

    A label is missing where it is None, NaN, or -1 among integers, as in scikit-learn's
    semi-supervised estimators; unless -1 names a column or, without names, has to be a class.
    """
    check_unmasked(y, "y")
    if issparse(y):
        return np.ones(y.shape[0], dtype=bool), y
    labels = np.asarray(y)
    if labels.ndim == 0 or labels.shape[0] != shape[0]:
        return np.ones(shape[0], dtype=bool), y  # validated later
    missing = np.asarray(_missing(labels, shape[1], names).reshape(shape[0], -1).any(axis=1))
    if not missing.any():
        return ~missing, y
    if missing.all():
        rule, offender = "Some rows must have a label", f"none of {missing.size} has one"
        remedy = "Pass labels for some rows, or use AlternatingNormalizer, which needs none."
        raise InputError(rule, offender, remedy, value=0, code="no_labels")
    present = labels[~missing]
    if present.dtype.kind == "O":
        present = np.array(present.tolist())
    # Whole numbers become floats where NaN stands among them.
    if present.dtype.kind == "f" and labels.ndim == 1 and _are_classes(present).all():
        present = present.astype(np.int64)
    return ~missing, present


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN or pandas' NA, of which no comparison is true or false."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _missing(labels: np.ndarray, n_classes: int, names: np.ndarray | None) -> np.ndarray:
    if labels.dtype.kind == "O":
        flat = [is_missing(value) for value in labels.ravel()]
        return np.array(flat, dtype=bool).reshape(labels.shape)
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind == "i":
        missing = labels == -1
        is_class = labels.ndim == 1 and missing.any() and _is_class(labels, n_classes, names)
        return np.zeros_like(missing) if is_class else missing
    return np.zeros(labels.shape, dtype=bool)


def _is_class(labels: np.ndarray, n_classes: int, names: np.ndarray | None) -> bool:
    """Whether -1 is a class, rather than a missing label."""
    if names is not None:
        return "-1" in map(str, names)
    present = np.unique(labels)
    if present.size != n_classes:
        return False
    others = present[present != -1]
    # Two classes are often called -1 and 1, and labels of a single class would be useless.
    if n_classes > 2 and others.min() >= 0 and others.max() < n_classes:
        raise InputError(
            "Among integers it must be clear whether -1 is a class or a missing label",
            f"these {n_classes} columns could be the {n_classes} classes that the labels show, -1 "
            f"among them, or 0 to {n_classes - 1}, of which the labels show all but one",
            "Write None or NaN where a label is missing, or pass labels as text if -1 is a class.",
            value=-1,
            code="ambiguous_labels",
        )
    return True
