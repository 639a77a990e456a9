"""Files <-> predictions: probabilities (or logits), labels and class names.

Columns are matched to classes by name, never by position alone, and logits are never guessed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from altnorm._base.errors import InputError, shown
from altnorm._base.files import file_error
from altnorm.estimator.kinds import LabelKind, kind_of_labels
from altnorm.io.formats import ARRAYS, PLAIN, Layout, find_source, find_target
from altnorm.io.labels import column_error, names_of


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
        A class for each row, None where it is unknown, or a 0/1 matrix for multi-label problems.
    input : {"proba", "logits"}
        What `proba` holds.
    groups : ndarray of shape (n_samples,), optional
        Which rows belong together.
    ids : ndarray of shape (n_samples,), optional
        What tells rows apart: their ids, or their numbers in the file, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.io.predictions import Predictions
    >>> names = np.array(["cat", "dog"])
    >>> Predictions(np.array([[0.9, 0.1], [0.3, 0.7]]), names, names[[0, 1]]).codes
    array([0, 1])
    """

    proba: np.ndarray
    classes: np.ndarray
    labels: np.ndarray | None = None
    input: str = "proba"
    groups: np.ndarray | None = None
    ids: np.ndarray | None = None

    @property
    def multilabel(self) -> bool:
        """Whether the labels are a 0/1 matrix."""
        return self.labels is not None and self.labels.ndim == 2

    @property
    def kind(self) -> LabelKind:
        """What kind of labels these are; one class per row where there are none."""
        return kind_of_labels(self.multilabel)

    @property
    def codes(self) -> np.ndarray:
        """Labels as column indices, None where one is missing; a 0/1 matrix for multi-label."""
        if self.labels is None:
            raise file_error(
                "Labels are needed here",
                "it is not said where they are",
                "Name their column with --label (--label-prefix for one 0/1 column per label), or "
                "a file of labels by id or row number with --labels; in an .npz file they are the "
                "array `labels`.",
            )
        if self.has_label.all():
            return self.kind.encode(self.labels, self.classes)
        codes = np.full(len(self.labels), None, dtype=object)
        codes[self.has_label] = self.labelled().codes
        return codes

    @property
    def has_label(self) -> np.ndarray:
        """Which rows have a label."""
        # Gaps, which only a column of single labels can have, make it one of objects.
        if self.labels is None or self.labels.dtype != object or self.labels.ndim > 1:
            return np.full(len(self.proba), self.labels is not None)
        return np.array([label is not None for label in self.labels], dtype=bool)

    def labelled(self) -> Predictions:
        """Return the rows that have a label."""
        labelled = self.has_label
        if self.labels is None or labelled.all():
            return self
        labels = self.labels[labelled].astype(self.classes.dtype)
        groups, ids = (None if part is None else part[labelled] for part in (self.groups, self.ids))
        return replace(self, proba=self.proba[labelled], labels=labels, groups=groups, ids=ids)

    def probabilities(self) -> np.ndarray:
        """Return probabilities, whatever the file held."""
        if self.input == "proba":
            return self.proba
        return self.kind.from_logits(self.proba)


def read_predictions(
    path: str | os.PathLike[str], layout: Layout = PLAIN, *, classes: Any = None
) -> Predictions:
    """Read predictions from a file; no pickle, whatever the format.

    Parameters
    ----------
    path : str or path-like
        .npz (`proba` or `logits`, optional `labels` and `classes`; or `indices` with `proba` or
        `log_proba`, as :func:`altnorm.from_topk` takes them), .npy, .csv, .tsv, .jsonl, .json
        (these also with .gz), .parquet, .arrow or .feather; "-" for the standard input.
    layout : Layout, optional
        Which columns hold what.
    classes : array-like of shape (n_classes,), optional
        The classes expected, by default those of the layout. Columns are put into this order; a
        missing, extra or renamed class is an error.

    Returns
    -------
    Predictions
        Probabilities or logits, class names, and labels where the file has them.
    """
    classes = np.asarray(layout.classes) if classes is None and layout.classes else classes
    source = find_source(path, layout)
    if source.format not in ARRAYS:
        return _check_values(_tables(source.path).read_columns(source, layout, classes))
    from altnorm.io.array_files import read_arrays

    useless = {"--group": layout.group, "--labels": layout.labels, "--id": layout.id}
    option = next((name for name, value in useless.items() if value is not None), None)
    if option is not None:
        raise InputError(
            f"{option} names a column of a table, or what belongs to one",
            f"'{source.path.name}' holds arrays",
            "Write the predictions as a table, such as .csv or .parquet.",
            code="option",
        )
    return _check_values(read_arrays(source, layout, classes))


def write_predictions(
    predictions: Predictions,
    path: str | os.PathLike[str],
    layout: Layout = PLAIN,
    *,
    added: Mapping[str, Any] | None = None,
    force: bool = False,
    spreadsheet_safe: bool = False,
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
    added : mapping of str to array-like of shape (n_samples,), optional
        More columns or, in an .npz file, arrays.
    force : bool, default=False
        Whether an existing file may be replaced.
    spreadsheet_safe : bool, default=False
        Whether text that a spreadsheet would run as a formula gets a single quote before it, for
        .csv and .tsv.
    """
    target = Path(path)
    if find_target(target, spreadsheet_safe=spreadsheet_safe) in ARRAYS:
        from altnorm.io.array_files import write_arrays

        write_arrays(predictions, target, added or {}, force=force)
        return
    write_columns = _tables(target).write_columns
    how = {"force": force, "spreadsheet_safe": spreadsheet_safe}
    write_columns(predictions, target, layout, added or {}, **how)


def _tables(path: Path) -> Any:
    """The module that reads and writes columns, for which PyArrow has to be there."""
    try:
        from altnorm.io import columns
    except ImportError as error:
        raise file_error(
            f"'{path.name}' needs PyArrow", remedy="Install it with: pip install 'altnorm[arrow]'"
        ) from error
    return columns


def _check_values(predictions: Predictions) -> Predictions:
    """Raise unless names can be written, and numbers are finite."""
    for name in names_of(predictions.classes):
        # Half of a surrogate pair: Python holds it, UTF-8 cannot.
        if name != name.encode(errors="ignore").decode():
            offender = f"{shown(repr(name))} is not"
            raise column_error("Class names must be valid text", offender, "Rename the class.")
    wrong = ~np.isfinite(predictions.proba)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise file_error(
            "Predictions must be finite",
            f"{int(wrong.sum())} of {wrong.size} are not, the first is row {row}, class "
            f"'{shown(predictions.classes[column])}' ({predictions.proba[row, column]})",
            "Drop or repair those rows.",
        )
    return predictions


def check_adjusted(values: np.ndarray, first_row: int = 0) -> np.ndarray:
    """Return what a model made of predictions; raise rather than let NaN or infinity be written."""
    # One pass without a temporary: the sum is finite only if every entry is.
    if not np.isfinite(values.sum()):
        row = first_row + int(np.argmax(~np.isfinite(values).all(axis=1)))
        raise column_error(
            f"The model gives probabilities that are not finite, first in row {row}",
            remedy="It is damaged or does not fit these predictions: tune it again.",
        )
    return values
