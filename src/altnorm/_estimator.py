"""What every estimator on class probabilities shares: checking input, class labels, decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from altnorm._labels import check_label_proba
from altnorm._validation import InputError, check_choice, check_proba
from altnorm.decisions import decide
from altnorm.multilabel import check_label_matrix

__all__ = ["ProbabilityTransformer", "as_proba", "class_codes", "resolve_classes"]

_LOGITS_REMEDY = (
    "If these are logits, pass input='logits'; if they were rounded, divide each row by its sum."
)


class ProbabilityTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers that turn class probabilities into class probabilities.

    A subclass writes `fit` with `_check_fit`, and `_transform`, which maps a clean (n, m) array
    of probabilities to another one.
    """

    input: str = "proba"
    multilabel: str | None = None

    def transform(self, proba: Any) -> Any:
        """Return the adjusted class probabilities.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Class probabilities, columns as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Adjusted class probabilities.
        """
        return self._transform(self._check_transform(proba))

    def predict(self, proba: Any) -> np.ndarray:
        """Return the most probable class of each row after the adjustment.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Class probabilities, columns as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Class labels, out of `classes_`; for multi-label problems the 0/1 matrix of decisions.
        """
        adjusted = self._transform(self._check_transform(proba))
        if self.multilabel is not None:
            return self._decide(adjusted)
        return self.classes_[np.argmax(adjusted, axis=1)]

    def _transform(self, proba: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _decide(self, proba: np.ndarray) -> np.ndarray:
        """Labels of a multi-label problem."""
        return decide(proba)

    def _check_fit(self, proba: Any, y: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Set `classes_`; return clean probabilities and, if `y` is given, class codes.

        For multi-label problems the 0/1 matrix of labels, as booleans, stands for class codes.
        """
        checked = self._read(validate_data(self, proba, dtype=[np.float64, np.float32]))
        names = getattr(self, "feature_names_in_", _column_names(proba))
        if self.multilabel is not None:
            self.classes_ = resolve_classes(None, checked.shape[1], names)
            return checked, None if y is None else check_label_matrix(y, checked.shape)
        labels = None if y is None else check_labels(y, checked.shape[0])
        self.classes_ = resolve_classes(labels, checked.shape[1], names)
        return checked, None if labels is None else class_codes(labels, self.classes_)

    def _check_labelled(self, proba: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """As `_check_fit`, for methods that cannot do without labels."""
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None",
                remedy="Call fit(proba, y) with validation labels.",
                code="no_labels",
            )
        checked, labels = self._check_fit(proba, y)
        return checked, np.asarray(labels)

    def _codes(self, y: Any, n_rows: int) -> np.ndarray:
        """Column index of each label in `y`; for multi-label problems `y` itself, a 0/1 matrix."""
        if self.multilabel is not None:
            return np.asarray(y)
        return class_codes(check_labels(y, n_rows), self.classes_)

    def _check_transform(self, proba: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._read(validate_data(self, proba, dtype=[np.float64, np.float32], reset=False))

    def _read(self, values: np.ndarray) -> np.ndarray:
        check_choice(self.input, "input", ("proba", "logits"))
        several = self.multilabel is not None
        if not several and values.shape[1] < 2:
            raise InputError(
                "`proba` must have one column a class and at least 2 classes",
                f"it has {values.shape[1]} feature(s)",
                "For one probability a row, pass [1 - p, p].",
                value=values.shape[1],
                code="shape",
            )
        if self.input == "logits":
            return as_proba(values, "logits", multilabel=several)
        return check_label_proba(values) if several else check_proba(values, remedy=_LOGITS_REMEDY)


def as_proba(values: np.ndarray, input: str, *, multilabel: bool) -> np.ndarray:
    """Return probabilities: `values` themselves or, if these are logits, what they stand for."""
    if input == "proba":
        return values
    return expit(values) if multilabel else softmax(values, axis=1)


def _column_names(proba: Any) -> np.ndarray | None:
    """Column names of a data frame that are not strings, which is all that scikit-learn keeps."""
    columns = np.asarray(getattr(proba, "columns", None))
    return columns if columns.ndim == 1 else None


def check_labels(y: Any, n_rows: int) -> np.ndarray:
    """Return `y` as a one-dimensional array of `n_rows` class labels."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(
            "`y` must hold one class label a row",
            f"it has shape {labels.shape}",
            "For a 0/1 matrix of several labels a row, pass multilabel='labelwise' or 'pairs'.",
            value=labels.shape,
            code="one_label_per_row",
        )
    if labels.shape[0] != n_rows:
        raise InputError(
            "`proba` and `y` must have the same number of rows",
            f"they have {n_rows} and {labels.shape[0]}",
            "Pass one label for each row.",
            value=labels.shape[0],
            code="shape",
        )
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def resolve_classes(
    labels: np.ndarray | None, n_classes: int, names: np.ndarray | None
) -> np.ndarray:
    """Say which class each column stands for.

    Column names of a data frame win if they cover all labels; else the sorted labels, if there
    are as many as columns (scikit-learn's ``predict_proba``); else the integers 0 .. m-1.
    """
    if labels is None:
        return np.arange(n_classes) if names is None else np.asarray(names)
    present = np.unique(labels)
    if names is not None and np.isin(present, names).all():
        return np.asarray(names)
    if present.size == n_classes:
        return present
    if present.dtype.kind in "iufb" and np.isin(present, np.arange(n_classes)).all():
        keep = present.dtype.kind != "b" or n_classes == 2
        return np.arange(n_classes).astype(present.dtype if keep else int)
    raise InputError(
        f"The labels in `y` must match the {n_classes} columns of `proba`",
        f"there are {present.size} different labels, the first is {present[0]!r}",
        f"Use the class indices 0 to {n_classes - 1}, or a data frame whose column names are the "
        "class names.",
        value=present[0],
        code="unknown_class",
    )


def class_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the column index of each label."""
    order = np.argsort(classes)
    position = np.searchsorted(classes, labels, sorter=order)
    codes = order[np.minimum(position, classes.size - 1)]
    unknown = np.flatnonzero(classes[codes] != labels)
    if unknown.size:
        raise InputError(
            "Each label must be one of the classes",
            f"{unknown.size} of {labels.size} are not",
            f"Map the labels to {classes!r}.",
            value=labels[unknown[0]],
            code="unknown_class",
            place=f"{labels[unknown[0]]!r} in row {unknown[0]}",
        )
    return codes
