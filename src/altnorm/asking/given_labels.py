"""Labels of asked rows as a person gives them: in order, with gaps, checked against the pool."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from altnorm._base.errors import InputError
from altnorm._base.labels import class_codes, is_missing
from altnorm._base.validation import check_unmasked


def find_positions(changed: np.ndarray, asked: Any) -> np.ndarray:
    """Where among the changed rows, in ascending order, the asked ones are."""
    check_unmasked(asked, "asked")
    rows = np.asarray(asked)
    remedy = "Pass what `ask` returned for these models and this pool."
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError(
            "`asked` must hold row numbers",
            f"it has shape {rows.shape} and dtype {rows.dtype}",
            remedy,
            code="asked_rows",
        )
    unchanged = rows[~np.isin(rows, changed)]
    if unchanged.size:
        raise InputError(
            "`asked` must hold rows whose decision changes",
            f"{unchanged.size} of {rows.size} do not, the first is row {unchanged[0]}",
            remedy,
            value=int(unchanged[0]),
            code="asked_rows",
        )
    values, times = np.unique(rows, return_counts=True)
    if (times > 1).any():
        twice = values[times.argmax()]
        raise InputError(
            "`asked` must hold each row once",
            f"row {twice} is there {times.max()} times",
            remedy,
            value=int(twice),
            code="asked_rows",
        )
    return np.searchsorted(changed, rows).astype(int)


def read_truth(y: Any, classes: np.ndarray, changed: np.ndarray, *, multilabel: bool) -> np.ndarray:
    """Truth of the labelled rows, NaN where it is missing: class codes, or a 0/1 matrix.

    Parameters
    ----------
    y : array-like of shape (n_labelled,) or (n_labelled, n_labels)
        Labels of the first of the asked rows.
    classes : ndarray of shape (n_classes,)
        The classes, in the order of their codes.
    changed : ndarray of shape (n_asked, 1) or (n_asked, n_labels)
        Which decisions of the asked rows change; no others are looked at.
    multilabel : bool
        Whether `y` is a 0/1 matrix.

    Returns
    -------
    ndarray of shape (n_labelled, 1) or (n_labelled, n_labels)
        Floating-point numbers.
    """
    check_unmasked(y, "y")
    if multilabel:
        return _label_truth(y, changed)
    return _class_truth(y, np.asarray(classes), changed)


def _class_truth(y: Any, classes: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """Class code of each label, NaN where it is missing, in one column."""
    labels = np.asarray(y, dtype=object)
    if labels.ndim != 1 or labels.size > len(changed):
        raise InputError(
            f"`y` must hold one class label for each of the {len(changed)} asked rows, or for the "
            "first of them",
            f"it has shape {labels.shape}",
            "Pass the labels in the order of `asked`.",
            value=labels.shape,
            code="shape",
        )
    given = np.array([not _is_missing(label) for label in labels], dtype=bool)
    truth = np.full((labels.size, 1), np.nan)
    if given.any():
        truth[given, 0] = class_codes(np.asarray(labels[given].tolist()), classes)
    return truth


def _label_truth(y: Any, changed: np.ndarray) -> np.ndarray:
    """The 0/1 matrix with NaN where a changed label is missing, and 0 where nothing changed."""
    labels = np.asarray(y.toarray() if issparse(y) else y, dtype=np.float64)
    if labels.size == 0:
        return np.empty((0, changed.shape[1]))
    if labels.ndim != 2 or labels.shape[1] != changed.shape[1] or len(labels) > len(changed):
        raise InputError(
            f"`y` must be a 0/1 matrix with {changed.shape[1]} columns and a row for each of the "
            f"{len(changed)} asked rows, or for the first of them",
            f"it has shape {labels.shape}",
            "Pass the labels in the order of `asked`.",
            value=labels.shape,
            code="shape",
        )
    truth = np.where(changed[: len(labels)], labels, 0)
    wrong = truth[~np.isin(truth, (0, 1)) & ~np.isnan(truth)]
    if wrong.size:
        raise InputError(
            "`y` must hold only 0 and 1, and NaN where a label is missing",
            f"{wrong.size} entries do not, the first is {wrong[0]:g}",
            "Write 1 where the label applies.",
            value=float(wrong[0]),
            code="asked_rows",
        )
    return truth


def _is_missing(label: object) -> bool:
    """Whether a label is None, NaN, pandas' NA or empty text."""
    return is_missing(label) or label == ""
