"""Files <-> predictions: probabilities (or logits), labels and class names.

Columns are matched to classes by name, never by position alone, and logits are never guessed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from altnorm._files import check_input, file_error, replacing
from altnorm._kinds import resolve_kind
from altnorm._labels import class_codes
from altnorm._validation import InputError, check_proba
from altnorm.array_files import Header, open_arrays
from altnorm.columns import (
    Layout,
    check_labelled,
    check_no_spare,
    check_same_names,
    check_text,
    check_whole_columns,
    check_zero_one,
    class_columns,
    column_labels,
    column_matrix,
    listed,
    names_of,
    resolve_labels,
    spare_columns,
    with_spare_hint,
)
from altnorm.tables import SUFFIXES, is_table, is_text, read_table, write_table

__all__ = ["Layout", "Predictions", "read_predictions", "read_texts", "write_predictions"]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a classifier said about some rows, and the truth where it is known.

    Attributes
    ----------
    proba : ndarray of shape (n_samples, n_classes)
        Probabilities, or logits if `input` says so.
    classes : ndarray of shape (n_classes,)
        The class each column stands for; 0 .. m-1 where the file has no names.
    labels : ndarray of shape (n_samples,) or (n_samples, n_classes), optional
        A class for each row, or a 0/1 matrix for multi-label problems.
    input : {"proba", "logits"}
        What `proba` holds.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.predictions import Predictions
    >>> predictions = Predictions(
    ...     np.array([[0.9, 0.1], [0.3, 0.7]]), np.array(["cat", "dog"]), np.array(["cat", "dog"])
    ... )
    >>> predictions.codes
    array([0, 1])
    >>> predictions.select(["dog", "cat"]).proba
    array([[0.1, 0.9],
           [0.7, 0.3]])
    """

    proba: np.ndarray
    classes: np.ndarray
    labels: np.ndarray | None = None
    input: str = "proba"

    @property
    def multilabel(self) -> bool:
        """Whether the labels are a 0/1 matrix."""
        return self.labels is not None and self.labels.ndim == 2

    @property
    def codes(self) -> np.ndarray:
        """Labels as column indices; the 0/1 matrix for multi-label problems."""
        if self.labels is None:
            raise file_error(
                "Labels are needed here and the file has none",
                remedy="Name the label column with --label (--label-prefix for one 0/1 column per "
                "label), or add `labels` to the .npz file.",
            )
        return self.labels if self.multilabel else class_codes(self.labels, self.classes)

    def probabilities(self) -> np.ndarray:
        """Return probabilities, whatever the file held."""
        if self.input == "proba":
            return self.proba
        return resolve_kind("labelwise" if self.multilabel else None).from_logits(self.proba)

    def select(self, classes: Any) -> Predictions:
        """Return the same predictions with one column for each of `classes`, in their order.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            The classes wanted, matched by name: the text of the class.

        Returns
        -------
        Predictions
            Columns in the order of `classes`.
        """
        wanted, found = names_of(classes), names_of(self.classes)
        check_same_names(wanted, found)
        position = {name: j for j, name in enumerate(found)}
        order = [position[name] for name in wanted]
        labels = self.labels
        if labels is not None and self.multilabel:
            labels = labels[:, order]
        elif labels is not None:
            labels = np.asarray(classes)[np.argsort(order)[self.codes]]
        proba = self.proba if wanted == found else self.proba[:, order]
        return replace(self, proba=proba, classes=np.asarray(classes), labels=labels)


def read_predictions(
    path: str | os.PathLike[str],
    layout: Layout | None = None,
    *,
    classes: Any = None,
) -> Predictions:
    """Read predictions from a file; no pickle, whatever the format.

    Parameters
    ----------
    path : str or path-like
        .npz (`proba` or `logits`, optional `labels` and `classes`), .npy, .csv, .parquet, .arrow or
        .feather.
    layout : Layout, optional
        Which columns hold what.
    classes : array-like of shape (n_classes,), optional
        The classes expected. Columns are put into this order; a missing, extra or renamed class
        is an error.

    Returns
    -------
    Predictions
        Probabilities or logits, class names, and labels where the file has them.
    """
    layout = Layout() if layout is None else layout
    source = check_input(path)
    if is_table(source):
        return _check_values(_read_columns(source, layout, classes))
    if source.suffix.lower() not in (".npz", ".npy"):
        known = ", ".join([".npz", ".npy", *SUFFIXES])
        raise file_error(
            f"Predictions must be in one of {known}", f"'{source.name}' is not", value=source.name
        )
    predictions = _check_values(_read_arrays(source, layout, classes))
    return predictions if classes is None else predictions.select(classes)


def read_texts(path: str | os.PathLike[str], name: str) -> list[str]:
    """Read one column of a table as text.

    Parameters
    ----------
    path : str or path-like
        A .csv, .parquet, .arrow or .feather file.
    name : str
        The column.

    Returns
    -------
    list of str
        One text per row; empty where the table has a gap.
    """
    table = read_table(check_input(path), text=[name])
    if name not in table.schema.names:
        remedy = f"Its columns are {listed(table.schema.names)}."
        raise file_error(f"The table has no column '{name}'", remedy=remedy, value=name)
    return ["" if value is None else str(value) for value in table.column(name).to_pylist()]


def write_predictions(
    predictions: Predictions,
    path: str | os.PathLike[str],
    layout: Layout | None = None,
    *,
    force: bool = False,
) -> None:
    """Write predictions to a file that is either complete or not there.

    Parameters
    ----------
    predictions : Predictions
        What to write.
    path : str or path-like
        .npz, .npy (probabilities only), .csv, .parquet, .arrow or .feather.
    layout : Layout, optional
        Names of the columns; the label column is "label" by default.
    force : bool, default=False
        Whether an existing file may be replaced.
    """
    layout = Layout() if layout is None else layout
    target = Path(path)
    if is_table(target):
        batch = _to_batch(predictions, layout)
        names = [layout.prefix + name for name in names_of(predictions.classes)]
        with write_table(target, batch.schema, numbers=names, force=force) as write:
            write(batch)
        return
    if target.suffix.lower() not in (".npz", ".npy"):
        known = ", ".join([".npz", ".npy", *SUFFIXES])
        raise file_error(
            f"Predictions go to one of {known}", f"'{target.name}' is not", value=target.name
        )
    with replacing(target, force=force) as temporary, temporary.open("wb") as file:
        if target.suffix.lower() == ".npy":
            np.save(file, predictions.proba, allow_pickle=False)
            return
        arrays = {predictions.input: predictions.proba, "classes": _plain(predictions.classes)}
        if predictions.labels is not None:
            arrays["labels"] = _plain(predictions.labels)
        # Older NumPy would take `allow_pickle` for an array; `_plain` has left no objects.
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _read_columns(source: Path, layout: Layout, classes: Any) -> Predictions:
    table = read_table(source, text=[layout.label] if layout.label else [])
    columns = class_columns(table.schema, layout, classes)
    guessed = classes is None and not layout.prefix
    if guessed and is_text(source):
        check_whole_columns(table, layout, columns)
    if classes is not None and (layout.logits or layout.label_prefix):
        check_no_spare(table.schema, layout, columns)
    found = np.array([name[len(layout.prefix) :] for name in columns])
    names = found if classes is None else np.asarray(classes)
    labels = None
    if layout.label_prefix is not None:
        wanted = [layout.label_prefix + name for name in found]
        given = [name for name in table.schema.names if name.startswith(layout.label_prefix)]
        check_same_names(wanted, given)
        labels = check_zero_one(column_matrix(table, wanted), wanted)
    elif layout.label is not None:
        known = set(columns)
        in_file = [name for name in table.schema.names if name in known]
        values = column_labels(table.column(layout.label), layout.label)
        labels = resolve_labels(values, names, reordered=in_file != columns)
        if guessed and layout.logits:
            check_labelled(columns, class_codes(labels, names))
    proba = column_matrix(table, columns)
    if classes is not None and not layout.logits and layout.label_prefix is None:
        _check_sums(proba, spare_columns(table.schema, layout, columns))
    return Predictions(proba, names, labels, "logits" if layout.logits else "proba")


def _check_sums(proba: np.ndarray, spare: list[str]) -> None:
    """Raise if sums other than 1 say that a spare column is a class."""
    if spare:
        try:
            check_proba(proba)
        except InputError as error:
            raise with_spare_hint(error, spare) from error


def _read_arrays(source: Path, layout: Layout, wanted: Any) -> Predictions:
    """Read what is needed, after the sizes that the arrays announce are known to fit together."""
    with open_arrays(source) as file:
        name = "" if file.names == [""] else _array_key(file.names, layout, source)
        key = name or ("logits" if layout.logits else "proba")
        shape = _check_matrix(file.header(name), key, source)
        label = layout.label or "labels"
        if layout.label and label not in file.names:
            offender = f"it has {listed(file.names)}"
            raise file_error(f"'{source}' has no `{label}`", offender, value=label)
        has_labels, has_classes = label in file.names, "classes" in file.names
        if has_labels:
            _check_label_shape(file.header(label).shape, shape)
        if has_classes:
            _check_class_shape(file.header("classes").shape, shape, source)
        elif wanted is not None:
            _check_unnamed(names_of(wanted), shape[1], source)
        values = _as_floats(file.read(name))
        classes = file.read("classes") if has_classes else np.arange(shape[1])
        labels = file.read(label) if has_labels else None
    _check_distinct(classes, source)
    return Predictions(values, classes, _array_labels(labels, values, classes), key)


def _check_matrix(header: Header, key: str, source: Path) -> tuple[int, ...]:
    if len(header.shape) != 2 or header.dtype.kind != "f":
        raise file_error(
            f"`{key}` in '{source}' must be a floating-point array with one row per example and "
            "one column per class",
            f"it is {header.dtype} of shape {header.shape}",
            "Convert it, for example with astype(float), if it holds predictions.",
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
    if sorted(wanted) != sorted(names_of(np.arange(n_columns))):
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


def _check_values(predictions: Predictions) -> Predictions:
    """Raise unless there are rows, names that can be written, and finite numbers."""
    if not len(predictions.proba):
        raise file_error("The file must have at least one row", "it has none", "Write predictions.")
    check_text(names_of(predictions.classes))
    wrong = ~np.isfinite(predictions.proba)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise file_error(
            "Predictions must be finite",
            f"{int(wrong.sum())} of {wrong.size} are not, the first is row {row}, class "
            f"'{predictions.classes[column]}' ({predictions.proba[row, column]})",
            "Drop or repair those rows.",
        )
    return predictions


def _array_key(names: list[str], layout: Layout, source: Path) -> str:
    key = "logits" if layout.logits or "proba" not in names else "proba"
    if key not in names:
        wanted = "`logits`" if layout.logits else "`proba` or `logits`"
        raise file_error(
            f"'{source}' must hold {wanted}", f"it holds {listed(names)}", value=listed(names)
        )
    return key


def _check_label_shape(found: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if found not in (shape, shape[:1]):
        raise file_error(
            f"`labels` must have one entry per row, shape {shape[:1]}, or be a 0/1 matrix of "
            f"shape {shape}",
            f"it has shape {found}",
            value=found,
        )


def _array_labels(
    labels: np.ndarray | None, values: np.ndarray, classes: np.ndarray
) -> np.ndarray | None:
    if labels is None:
        return None
    if labels.ndim == 2:
        return check_zero_one(labels, names_of(classes))
    return resolve_labels(labels, classes)


def _to_batch(predictions: Predictions, layout: Layout) -> Any:
    import pyarrow as pa

    names = names_of(predictions.classes)
    columns = {layout.prefix + name: predictions.proba[:, j] for j, name in enumerate(names)}
    labels = predictions.labels
    if labels is not None and predictions.multilabel:
        start = "y_" if layout.label_prefix is None else layout.label_prefix
        columns |= {start + name: labels[:, j] for j, name in enumerate(names)}
    elif labels is not None:
        columns[layout.label or "label"] = np.array(names_of(labels), dtype=object)
    return pa.RecordBatch.from_pydict({name: pa.array(v) for name, v in columns.items()})


def _plain(values: np.ndarray) -> np.ndarray:
    """Objects as text: what an .npz file holds without pickle."""
    return np.array(names_of(values)) if values.dtype.kind == "O" else values
