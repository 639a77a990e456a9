"""The one door: from what a user passes to clean arrays, or to one error.

Library, device, kind of labels and classes are resolved here, once. Nothing is set on an estimator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from altnorm._base import validation
from altnorm._base.arrays import Array, is_foreign, on_host, take_rows, to_numpy
from altnorm._base.errors import InputError, InputTypeError, shown
from altnorm._base.frames import collected, column_names, named_columns
from altnorm._base.labels import check_class_type, has_label
from altnorm._base.persistence import Saved
from altnorm.estimator.kinds import FittedModel, LabelKind, kind_of

_DTYPES = [np.float64, np.float32]


class Input(NamedTuple):
    """Clean predictions, columns in the order of the classes."""

    values: Array  # (n, m) probabilities that are sound; or logits, finite
    kind: LabelKind
    is_logits: bool = False

    @property
    def proba(self) -> Array:
        """The probabilities that the values are or, as logits, stand for."""
        return self.kind.from_logits(self.values) if self.is_logits else self.values

    def encode(self, y: Any, classes: np.ndarray) -> np.ndarray:
        """Class codes, or a boolean matrix, of the labels of these rows."""
        labels = self.kind.check_labels(y, tuple(self.values.shape))
        return self.kind.encode(labels, classes)


class Training(NamedTuple):
    """Clean validation data, without the rows of weight 0."""

    input: Input  # n rows
    labels: np.ndarray | None  # of the rows that have one: class codes (l,), or booleans (l, m)
    has_label: np.ndarray  # (n,) booleans
    weight: np.ndarray | None  # (n,) positive; None counts each row once
    used: np.ndarray  # booleans: which of the rows as they were passed are here
    classes: np.ndarray  # (m,) the class that each column stands for
    names: np.ndarray | None  # (m,) of the columns of a data frame, where they are text


def read_input(model: FittedModel, proba: Any) -> Input:
    """Read what a fitted model is to adjust; on its device if the method works there."""
    if isinstance(model, Saved):
        if not hasattr(model, "classes_"):
            check_is_fitted(model)  # it takes as long as a row
        values = _read_columns(model, proba)
    else:  # of another making: columns count by their position
        values = np.asarray(on_host(proba))
    return _check_values(model, values)


def read_on_host(model: FittedModel, proba: Any) -> Input:
    """Read the same into the memory of the host."""
    return read_input(model, on_host(proba))


def read_training(
    estimator: Any,
    proba: Any,
    y: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    *,
    gaps: bool = False,
) -> Training:
    """Read what an estimator is to be fitted on; with `gaps`, labels may be missing."""
    named = None if classes is None else np.atleast_1d(on_host(classes))
    check_order(proba, y)
    values, names = _read_new_columns(estimator, proba, named)
    try:
        input = _check_values(estimator, values)
    except InputError as error:
        raise likelier_mistake(error, to_numpy(values), names, y) from None
    kind, shape = input.kind, (int(values.shape[0]), int(values.shape[1]))
    columns = names if named is None else _check_classes(named, shape[1])
    has_label, labels = _read_labels(kind, y, shape, columns, gaps=gaps)
    if named is None:
        naming = None if kind.is_multilabel else labels  # a 0/1 matrix names no classes
        columns = resolve_classes(naming, shape[1], names)
    weight = read_weight(sample_weight, shape[0])
    read = Training(
        input=input,
        labels=None if labels is None else kind.encode(labels, np.asarray(columns)),
        has_label=has_label,
        weight=weight,
        used=np.ones(shape[0], dtype=bool),
        classes=np.asarray(columns),
        names=None if names is None or names.dtype != object else names,
    )
    return read if weight is None else _without_zeros(read, weight)


def _check_values(model: object, values: Array) -> Input:
    kind, input = kind_of(model), getattr(model, "input", "proba")
    validation.check_choice(input, "input", ("proba", "logits"))
    if input == "proba":
        return Input(kind.check(values), kind)
    if not kind.is_multilabel:
        values = validation.check_two_columns(values)
    return Input(values, kind, is_logits=True)


def _read_labels(
    kind: LabelKind, y: Any, shape: tuple[int, int], columns: np.ndarray | None, *, gaps: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Which rows have labels, and these, as they are called; None if there are none at all."""
    labelled = np.ones(shape[0], dtype=bool)
    if y is None:
        return labelled, None
    if gaps:
        labelled, y = has_label(on_host(y), shape, columns)
    return labelled, kind.check_labels(y, (int(labelled.sum()), shape[1]))


def _without_zeros(read: Training, weight: np.ndarray) -> Training:
    """Leave out rows of weight 0, which are no rows."""
    used = weight > 0
    if used.all():
        return read
    return read._replace(
        input=read.input._replace(values=take_rows(read.input.values, used)),
        labels=None if read.labels is None else read.labels[used[read.has_label]],
        has_label=read.has_label[used],
        weight=weight[used],
        used=used,
    )


def mean_one(weight: np.ndarray | None, n_rows: int) -> np.ndarray:
    """Divide positive weights by their mean, as their scale is anybody's choice; None is all 1."""
    if weight is None:
        return np.ones(n_rows)
    relative = weight / weight.max()  # equal weights become exactly 1
    return np.asarray(relative / relative.mean())


def _read_columns(estimator: Any, proba: Any) -> Array:
    if is_foreign(proba):
        values = validation.check_device_array(proba)
        validate_data(estimator, values, skip_check_array=True, reset=False)
        return _where_it_works(estimator, values)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and _is_plain(proba, estimator.n_features_in_):
        return np.asarray(proba)
    wanted = list(estimator.classes_ if names is None else names)
    columns = named_columns(proba, wanted, by_position=names is None)
    if columns is not None:
        with _rephrased(columns):
            return np.asarray(check_array(columns, dtype=_DTYPES))
    with _rephrased(proba, estimator.n_features_in_):
        return np.asarray(validate_data(estimator, proba, dtype=_DTYPES, reset=False))


def _read_new_columns(
    estimator: Any, proba: Any, classes: np.ndarray | None
) -> tuple[Array, np.ndarray | None]:
    """Return finite numbers and, of a data frame, the names of the columns: text as objects."""
    if is_foreign(proba):
        return _where_it_works(estimator, validation.check_device_array(proba)), None
    names = column_names(proba)
    if classes is not None:
        columns = named_columns(proba, classes.ravel().tolist(), by_position=True)
        if columns is not None:
            proba, names = columns, [str(name) for name in classes]
    with _rephrased(proba):
        options = {"dtype": _DTYPES, "estimator": estimator, "input_name": "X"}
        values = np.asarray(check_array(collected(proba), **options))
    if names is None or names == list(range(len(names))):  # as pandas numbers those of an array
        return values, None
    is_text = all(isinstance(name, str) for name in names)
    return values, np.array(names, dtype=object if is_text else None)


def _where_it_works(estimator: Any, values: Array) -> Array:
    """Return an array of another library on its device, if the method works there."""
    stays = estimator.any_library and not kind_of(estimator).is_multilabel
    return values if stays else to_numpy(values)


@contextmanager
def _rephrased(values: Any, n_classes: int | None = None) -> Iterator[None]:
    """Tell of a wrong shape, NaN and masks as everywhere; scikit-learn speaks of features."""
    _check_no_classifier(values)
    validation.check_unmasked(values, "proba")
    try:
        yield
    except ValueError as error:
        check_numbers(values)
        array = np.asarray(values)
        if array.dtype.kind in "fiu":
            array = array.astype(np.float64)
        if array.size and array.dtype.kind in "fUS":
            validation.check_finite(validation.check_matrix(array, "proba"), "proba")
        if n_classes is None or array.ndim != 2 or array.shape[1] == n_classes:
            raise
        if n_classes == 2:
            validation.check_two_columns(array)
        n, rule = array.shape[1], f"`proba` must have one column per class, {n_classes}"
        # The words that scikit-learn's own checks look for.
        offender = f"it has {n} ({str(error).rstrip('.')})"
        remedy = "Pass the probabilities of all classes, in the order of `classes_`."
        raise InputError(rule, offender, remedy, value=n, code="n_columns") from error


def _check_no_classifier(values: object) -> None:
    """Raise where a classifier, or its method, is given in place of what it predicts."""
    if hasattr(values, "predict_proba") or callable(values):
        rule = "`proba` must be an array of probabilities"
        offender = f"it is a {type(values).__name__}"
        remedy = "Pass what `predict_proba` returns, or wrap the classifier: "
        remedy += "AdjustedClassifier(FrozenEstimator(classifier)).fit(X, y)."
        raise InputTypeError(rule, offender, remedy, value=type(values), code="classifier")


def _is_plain(values: object, n_columns: int) -> bool:
    """Whether scikit-learn's checks, which cost more than a row, would find nothing to do."""
    if type(values) is not np.ndarray or values.dtype not in _DTYPES:
        return False
    if values.ndim != 2 or values.shape[1] != n_columns or not values.shape[0]:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def read_weight(sample_weight: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return one weight per row in host memory; None where none are given."""
    return validation.check_weight(sample_weight, np.empty((n_rows, 0)), "sample_weight", "row")


def require_labels(
    estimator: object, y: object, remedy: str = "Call fit(proba, y) with validation labels."
) -> None:
    """Raise if there are no labels, in words that scikit-learn's checks look for."""
    if y is None:
        rule = f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        raise InputError(rule, remedy=remedy, code="no_labels")


def _check_classes(names: np.ndarray, n_columns: int) -> np.ndarray:
    """Return the names of the columns: as many, and each once."""
    if names.ndim != 1 or not names.size == len(set(names.tolist())) == n_columns:
        rule = f"`classes` must name each of the {n_columns} columns of `proba`, no name twice"
        remedy = "Pass for example the `classes_` of your classifier."
        offender = f"it is {shown(names.tolist())}"
        raise InputError(rule, offender, remedy, value=names.shape, code="classes")
    check_class_type(names, "classes")
    return names


def resolve_classes(
    labels: np.ndarray | None, n_classes: int, names: np.ndarray | None
) -> np.ndarray:
    """Say which class each column stands for.

    The column names of a data frame if they cover all labels, else the sorted labels if there are
    as many, else the integers 0 .. m-1.
    """
    if labels is None:
        return np.arange(n_classes) if names is None else np.asarray(names)
    present = np.unique(labels)
    if names is not None and np.isin(present, names).all():
        return np.asarray(names)
    if present.size == n_classes:
        return present
    if present.dtype.kind in "iufb" and np.isin(present, np.arange(n_classes)).all():
        # Labels False and True can name two columns; of more, they are the numbers 0 and 1.
        keep = present.dtype.kind != "b" or n_classes == 2
        return np.arange(n_classes).astype(present.dtype if keep else int)
    rule = f"The labels in `y` must match the {n_classes} columns of `proba`"
    first = repr(str(present[0]))
    others = f"there are {present.size} different labels, the first is {first}"
    offender = f"every label is {first}" if present.size == 1 else others
    remedy = "Pass the names of the columns as `classes`, such as those of your classifier."
    raise InputError(rule, offender, remedy, value=present[0], code="unknown_class")


# Mistakes that are easily made with `fit`, told by their cause rather than by what follows.


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
        parts = {"offender": offender, "remedy": remedy, "value": name, "place": None}
        return error.replace(code="extra_column", **parts)
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
    explains = np.abs(sums - values - 1) <= validation.sum_tolerance(values.dtype.name) + rounding
    columns = np.flatnonzero(explains.all(axis=0))
    return int(columns[0]) if columns.size == 1 else None
