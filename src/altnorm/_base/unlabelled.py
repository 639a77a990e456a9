"""Which rows have a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from altnorm._base.errors import InputError
from altnorm._base.validation import check_unmasked


def has_label(
    y: Any, shape: tuple[int, int], names: np.ndarray | None = None
) -> tuple[np.ndarray, Any]:
    """Say which rows have a label, and return the labels of these.

    A label is missing where it is None or NaN, and where it is -1 among integers, as in
    scikit-learn's semi-supervised estimators; unless -1 is the name of a column, or, where columns
    have no names, is needed for there to be as many classes as columns.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, m), or sparse matrix
        Labels.
    shape : tuple of int
        Shape of the probabilities, (n, m).
    names : ndarray of shape (m,), optional
        Names of the columns.

    Returns
    -------
    known : ndarray of bool of shape (n,)
        Which rows have a label.
    labels : array
        Labels of these rows.

    Examples
    --------
    >>> from altnorm._base.unlabelled import has_label
    >>> known, labels = has_label([2, -1, 0], (3, 4))
    >>> known, labels
    (array([ True, False,  True]), array([2, 0]))
    """
    check_unmasked(y, "y")
    if issparse(y):
        return np.ones(y.shape[0], dtype=bool), y
    labels = np.asarray(y)
    if labels.ndim == 0 or labels.shape[0] != shape[0]:
        return np.ones(shape[0], dtype=bool), y  # whoever reads the labels says what is wrong
    missing = np.asarray(_missing(labels, shape[1], names).reshape(shape[0], -1).any(axis=1))
    if not missing.any():
        return ~missing, y
    if missing.all():
        raise InputError(
            "Some rows must have a label",
            f"none of {missing.size} has one",
            "Pass labels for some rows, or use AlternatingNormalizer, which needs none.",
            value=0,
            code="no_labels",
        )
    known = labels[~missing]
    return ~missing, np.array(known.tolist()) if known.dtype.kind == "O" else known


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
    """Whether -1 is a class like the others, and not the lack of one."""
    if names is not None:
        return "-1" in map(str, names)
    shown = np.unique(labels)
    if shown.size != n_classes:
        return False
    others = shown[shown != -1]
    # Two classes are often called -1 and 1, and labels of a single class would be of no use.
    if n_classes > 2 and others.min() >= 0 and others.max() < n_classes:
        raise InputError(
            "Among integers -1 must be a class or the lack of a label, not perhaps either",
            f"these {n_classes} columns could be the {n_classes} classes that the labels show, -1 "
            f"among them, or 0 to {n_classes - 1}, of which the labels show all but one",
            "Write None or NaN where a label is missing, or pass labels as text if -1 is a class.",
            value=-1,
            code="ambiguous_labels",
        )
    return True
