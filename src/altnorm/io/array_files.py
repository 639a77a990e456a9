"""NumPy files -> what predictions are made of: a matrix, class names and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.files import file_error
from altnorm._base.words import plural
from altnorm.io.columns import Layout, check_zero_one, listed, names_of, read_labels
from altnorm.io.formats import Source
from altnorm.io.npy import ArrayFile, Header, open_arrays
from altnorm.method.topk import from_topk

_MOST_CLASSES = 10**6
_MOST_VALUES = 2**30  # 8 GB in double precision


class Arrays(NamedTuple):
    """What a file of arrays holds."""

    values: np.ndarray  # (n, m)
    classes: np.ndarray  # (m,)
    labels: np.ndarray | None
    input: str  # "proba" or "logits"


def read_arrays(source: Source, layout: Layout, wanted: Any) -> Arrays:
    """Read what is needed, after the sizes that the arrays announce are known to fit together.

    Parameters
    ----------
    source : Source
        An .npz or .npy file.
    layout : Layout
        Name of the array of labels, and whether to read logits.
    wanted : array-like or None
        The classes expected, if they are known.

    Returns
    -------
    Arrays
        Values, class names, labels.
    """
    path = source.path
    with open_arrays(source) as file:
        name = "" if source.format == "npy" else _matrix_name(file.names, layout, path)
        key = name or ("logits" if layout.logits else "proba")
        shape = _full_shape(file, name, key, path)
        _check_size(shape, path, is_dense="indices" not in file.names)
        label = layout.label or "labels"
        if layout.label and label not in file.names:
            offender = f"it has {listed(file.names)}"
            raise file_error(f"'{path}' has no `{label}`", offender, value=label)
        has_labels, has_classes = label in file.names, "classes" in file.names
        if has_labels:
            _check_label_shape(file.header(label).shape, shape)
        if has_classes:
            _check_class_shape(file.header("classes").shape, shape, path)
        elif wanted is not None:
            _check_unnamed(names_of(wanted), shape[1], path)
        values = _as_floats(file.read(name))
        if "indices" in file.names:
            values, key = from_topk(file.read("indices"), values, shape[1], input=key), "proba"
        classes = file.read("classes") if has_classes else np.arange(shape[1])
        labels = file.read(label) if has_labels else None
    _check_distinct(classes, path)
    return Arrays(values, classes, _resolve(labels, classes, layout), key)


def _matrix_name(names: list[str], layout: Layout, path: Path) -> str:
    """Which array holds the predictions."""
    choices = ["logits"] if layout.logits else ["proba", "logits"]
    if "indices" in names:
        choices = ["proba", "log_proba"]
    found = next((name for name in choices if name in names), None)
    if found is None:
        must = " or ".join(f"`{name}`" for name in choices)
        raise file_error(
            f"'{path}' must hold {must}",
            f"it holds {listed(names)}",
            "Save the predictions under that name: np.savez(path, proba=..., labels=...).",
            value=listed(names),
        )
    return found


def _full_shape(file: ArrayFile, name: str, key: str, path: Path) -> tuple[int, ...]:
    """Rows and classes; those of truncated scores are not the shape of the array."""
    shape = _check_matrix(file.header(name), key, path)
    if "indices" not in file.names:
        return shape
    if "classes" in file.names:
        return (shape[0], *file.header("classes").shape)
    if "n_classes" not in file.names or file.header("n_classes").shape != ():
        raise file_error(
            f"`indices` in '{path}' needs the number of classes",
            "there is neither `classes` nor `n_classes`",
            "Add an array `classes` with their names, or the number `n_classes`.",
        )
    return (shape[0], int(file.read("n_classes")))


def _check_size(shape: tuple[int, ...], source: Path, *, is_dense: bool) -> None:
    """Raise before anything is made that is larger than the file by orders of magnitude."""
    rows, classes = shape
    if not rows:
        raise file_error("The file must have at least one row", "it has none", "Write predictions.")
    if classes > _MOST_CLASSES or (rows * classes > _MOST_VALUES and not is_dense):
        raise file_error(
            f"Predictions may have at most {_MOST_CLASSES:,} classes and, where `indices` leave "
            f"some out, {_MOST_VALUES:,} numbers",
            f"'{source}' has {plural(rows, 'row')} and says that there are {classes:,} classes",
            "Correct `n_classes`, or split the file.",
            value=classes,
        )


def _check_matrix(header: Header, key: str, source: Path) -> tuple[int, ...]:
    if len(header.shape) != 2 or header.dtype.kind != "f":
        raise file_error(
            f"`{key}` in '{source}' must be a floating-point array with one row per example and "
            "one column per class",
            f"it is {header.dtype} of shape {header.shape}",
            "Save the probability of every class, not only of one; with two classes, [1 - p, p]."
            if len(header.shape) == 1
            else "Convert it, for example with astype(float), if it holds predictions.",
        )
    return header.shape


def _check_class_shape(found: tuple[int, ...], shape: tuple[int, ...], source: Path) -> None:
    if found != shape[1:]:
        raise file_error(
            f"`classes` in '{source}' must name each of the {shape[1]} columns once",
            f"it has shape {found}",
            value=found,
        )


def _check_unnamed(wanted: list[str], n_columns: int, source: Path) -> None:
    """Raise if columns without names would have to be matched to named classes by position."""
    if len(wanted) != n_columns or set(wanted) != set(names_of(np.arange(n_columns))):
        raise file_error(
            "Columns are matched by class name, never by position alone",
            f"'{source}' has {n_columns} columns without names, the model knows {listed(wanted)}",
            "Write an .npz file with an array `classes`, one name per column in the file's order.",
        )


def _check_distinct(classes: np.ndarray, source: Path) -> None:
    n_names = len(set(names_of(classes)))
    if n_names != classes.size:
        raise file_error(
            f"`classes` in '{source}' must name each of the {classes.size} columns once",
            f"it has {n_names} different names",
            value=n_names,
        )


def _as_floats(values: np.ndarray) -> np.ndarray:
    """Single, double or half precision, which are what the library computes with or widens."""
    return values if values.dtype.itemsize <= 8 else values.astype(np.float64)


def _check_label_shape(found: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if found not in (shape, shape[:1]):
        raise file_error(
            f"`labels` must have one entry per row, shape {shape[:1]}, or be a 0/1 matrix of "
            f"shape {shape}",
            f"it has shape {found}",
            value=found,
        )


def _resolve(labels: np.ndarray | None, classes: np.ndarray, layout: Layout) -> np.ndarray | None:
    if labels is None:
        return None
    if labels.ndim == 2:
        return check_zero_one(labels, names_of(classes))
    return read_labels(labels.tolist(), classes, layout)
