"""Which rows have a label."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from altnorm._validation import InputError

__all__ = ["has_label"]


def has_label(y: Any, shape: tuple[int, int]) -> tuple[np.ndarray, Any]:
    """Say which rows have a label, and return the labels of these.

    A label is missing where it is None or NaN, and where it is -1 among integers, as in
    scikit-learn's semi-supervised estimators; unless -1 is needed for there to be as many classes
    as columns.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, m), or sparse matrix
        Labels.
    shape : tuple of int
        Shape of the probabilities, (n, m).

    Returns
    -------
    known : ndarray of bool of shape (n,)
        Which rows have a label.
    labels : array
        Labels of these rows.

    Examples
    --------
    >>> from altnorm.tuning.unlabelled import has_label
    >>> known, labels = has_label([2, -1, 0], (3, 4))
    >>> known, labels
    (array([ True, False,  True]), array([2, 0]))
    """
    if issparse(y):
        return np.ones(y.shape[0], dtype=bool), y
    labels = np.asarray(y)
    if labels.ndim == 0 or labels.shape[0] != shape[0]:
        return np.ones(shape[0], dtype=bool), y  # whoever reads the labels says what is wrong
    missing = np.asarray(_missing(labels, shape[1]).reshape(shape[0], -1).any(axis=1))
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


def _missing(labels: np.ndarray, n_classes: int) -> np.ndarray:
    if labels.dtype.kind == "O":
        flat = [value is None or value != value for value in labels.ravel()]
        return np.array(flat, dtype=bool).reshape(labels.shape)
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind == "i":
        missing = labels == -1
        needed = labels.ndim == 1 and np.unique(labels).size == n_classes
        return np.zeros_like(missing) if needed else missing
    return np.zeros(labels.shape, dtype=bool)
