"""What every estimator on class probabilities shares: checking input, class labels, decisions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.metrics import accuracy_score, f1_score
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from altnorm._base.arrays import Array, array_namespace, is_foreign, move, on_host, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.fitted import Fields, is_array
from altnorm._base.frames import collected, column_names, named_columns
from altnorm._base.persistence import Saved
from altnorm._base.validation import (
    check_choice,
    check_device_array,
    check_finite,
    check_matrix,
    check_scale,
    check_unmasked,
    check_weight,
)
from altnorm.estimator.drift import Drift, Usage, count_usage, measure_drift
from altnorm.estimator.explanation import Explanation
from altnorm.estimator.kinds import FittedModel, kind_of

_DTYPES = [np.float64, np.float32]

Normalizer = TypeVar("Normalizer", bound=FittedModel)


class ProbabilityTransformer(Saved, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers that turn class probabilities into class probabilities.

    A subclass writes `fit` with `_check_fit`, and `_transform`, which maps a clean (n, m) array
    of probabilities to another one.
    """

    input: str = "proba"
    multilabel: str | None = None
    any_library = False  # whether `_transform` works on arrays of other libraries than NumPy

    def transform(self, proba: Any) -> Any:
        """Return the adjusted class probabilities.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Class probabilities, columns as in `fit`. Columns of a data frame (pandas, Polars,
            PyArrow, also a Polars LazyFrame or a DuckDB relation) are found by their names: they
            may come in any order and among others.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Adjusted class probabilities, in new memory: a NumPy array or, for an array of PyTorch,
            CuPy or JAX, one of the same kind on the same device.
        """
        checked = self._check_transform(proba)
        new = self._transform(checked)
        if new is checked:  # it may be the caller's own array
            new = array_namespace(new).asarray(new, copy=True)
        return move(new, proba)

    def transform_clean(self, proba: Array) -> Array:
        """Adjust probabilities that were checked already, as an array, whatever `input` says."""
        return self._transform(self._from_proba(proba))

    def predict(self, proba: Any) -> Any:
        """Return the decision on each row.

        That is the most probable class after the adjustment or, of an :class:`~altnorm.Adjuster`,
        the decision for its purpose.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Class probabilities, columns as in `fit`.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Class labels, out of `classes_` (column numbers where `fit` knew no names), None where
            costs say to leave a row to a person; for multi-label problems the 0/1 matrix of
            decisions. Of the kind that `transform` returns; labels that are not numbers as a NumPy
            array.
        """
        labels = self._named(self._codes(self._check_transform(proba)))
        return move(labels, proba) if labels.dtype.kind in "biuf" else labels

    def score(self, proba: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that `predict` gets right; with several labels, micro-F1.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions, columns as in `fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, out of `classes_`; a 0/1 matrix for multi-label problems.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        float
            The score, from 0 to 1.
        """
        checked, kind = self._check_transform(proba), kind_of(self)
        labels = kind.encode(kind.check_labels(y, tuple(checked.shape)), self.classes_)
        weight = read_weight(sample_weight, len(labels))
        if kind.is_multilabel:
            options = {"average": "micro", "zero_division": 0.0, "sample_weight": weight}
            return float(f1_score(labels, self._codes(checked), **options))
        return float(accuracy_score(labels, self._codes(checked), sample_weight=weight))

    def explain(self, proba: Any) -> Explanation:
        """Say why the decision on each changed row changed.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions, columns as in `fit`.

        Returns
        -------
        Explanation
            One entry for each row for which `predict` differs from the most probable class of
            `proba` (for each changed label of a row in multi-label problems): its ambiguity, the
            class before and after, and the factor by which each class was multiplied.
        """
        before, checked = self._read_once(read_input(self, on_host(proba)))
        kind, after = kind_of(self), np.asarray(self._transform(checked))
        ambiguity = kind.ambiguity(before, k_max=getattr(self, "k_max", 10))
        decided = kind.decide(before), self._codes(checked)
        return Explanation.from_decisions((before, after), decided, ambiguity, self.classes_)

    def drift(self, proba: Any) -> Drift:
        """Say whether incoming predictions still look like those at `fit`.

        Compares how confident predictions use the classes, and the share of doubtful ones, with
        what was seen at `fit`. No labels needed.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Incoming predictions, columns as in `fit`; a few hundred rows at least.

        Returns
        -------
        Drift
            `drifted`, the numbers behind it, `advice` on what follows, and one line as `str`.

        Examples
        --------
        >>> import numpy as np
        >>> from altnorm import AlternatingNormalizer
        >>> rng = np.random.default_rng(0)
        >>> validation = rng.dirichlet([0.3, 0.3, 0.3], size=2000)
        >>> normalizer = AlternatingNormalizer().fit(validation)
        >>> normalizer.drift(rng.dirichlet([0.3, 0.3, 0.3], size=1000)).drifted
        False
        >>> normalizer.drift(rng.dirichlet([0.9, 0.1, 0.1], size=1000)).drifted
        True
        """
        rows = read_before(self, proba)
        return self._advise(measure_drift(self.usage_, count_usage(self, rows)), rows)

    def _advise(self, drift: Drift, rows: np.ndarray) -> Drift:
        """Say what follows from a drift of clean rows, where more is known than the rows say."""
        return drift

    def _check_params(self) -> None:
        """Raise on bad settings, before any data are read."""
        check_choice(self.input, "input", ("proba", "logits"))
        kind_of(self)

    def _check_fitted(self, fields: Fields) -> None:
        classes = fields.get("classes_")
        names = classes.tolist() if is_array(classes) and classes.ndim == 1 else [None]
        holds = all(isinstance(name, (str, int, float)) for name in names)
        holds = holds and len(set(map(str, names))) == len(names)
        fields.require("classes_", holds, "different class labels: text, numbers or booleans")
        fields.n_classes, n = classes.size, fields.get("n_features_in_")
        holds = type(n) is int and n == classes.size >= kind_of(self).min_columns
        must = "the number of classes, 2 or more unless rows have several labels"
        fields.require("n_features_in_", holds, must)
        if fields.has("feature_names_in_"):
            columns = fields.get("feature_names_in_")
            holds = is_array(columns) and columns.shape == (n,)
            holds = holds and all(isinstance(name, str) for name in columns.tolist())
            fields.require("feature_names_in_", holds, "the name of each column")
        fields.record("usage_", Usage)

    def _codes(self, proba: Array) -> np.ndarray:
        """Decisions on what `_transform` works on: columns (n,), or the 0/1 matrix of labels."""
        return kind_of(self).decide(self._transform(proba))

    def _named(self, codes: np.ndarray) -> np.ndarray:
        """What decisions are called: classes, or the 0/1 matrix of labels."""
        return kind_of(self).decode(codes, self.classes_)

    def _transform(self, proba: Array) -> Array:
        raise NotImplementedError

    def _check_fit(self, proba: Any, y: Any = None) -> tuple[Array, np.ndarray | None]:
        """Set `classes_`; return clean probabilities and, if `y` is given, class codes.

        For multi-label problems the 0/1 matrix of labels, as booleans, stands for class codes.
        """
        if is_foreign(proba):
            values = _read_foreign(self, proba, reset=True)
        else:
            with _own_words(proba):
                values = validate_data(self, collected(proba), dtype=_DTYPES)
        names = _keep_names(self, column_names(proba))
        read, checked = self._read_once(values)
        kind = kind_of(self)
        # What `drift` compares with, whatever the method itself remembers.
        self.usage_ = count_usage(self, read)
        labels = None if y is None else kind.check_labels(y, checked.shape)
        naming = None if kind.is_multilabel else labels  # a 0/1 matrix names no classes
        self.classes_ = resolve_classes(naming, checked.shape[1], names)
        return checked, None if labels is None else kind.encode(labels, self.classes_)

    def _check_transform(self, proba: Any) -> Array:
        return self._read(read_input(self, proba))

    def _read(self, values: Array) -> Array:
        """What `_transform` works on, from what the user gave."""
        return self._from_proba(kind_of(self).read(values, self.input))

    def _from_proba(self, proba: Array) -> Array:
        """What `_transform` works on: probabilities, unless a subclass wants another form."""
        return proba

    def _read_once(self, values: Array) -> tuple[Array, Array]:
        """Probabilities, and what `_transform` works on, with one warning if they are rounded."""
        proba = kind_of(self).read(values, self.input)
        return proba, self._from_proba(proba) if self.input == "proba" else self._read(values)


def read_before(normalizer: FittedModel, proba: Any) -> np.ndarray:
    """Probabilities as a fitted transformer is given them, columns in the order of its classes."""
    input = getattr(normalizer, "input", "proba")
    return kind_of(normalizer).read(read_values(normalizer, proba), input)


def read_values(normalizer: FittedModel, proba: Any) -> np.ndarray:
    """Probabilities or logits, in host memory, columns in the order of the classes."""
    values = on_host(proba)
    if isinstance(normalizer, ProbabilityTransformer):
        values = read_input(normalizer, values)
    return np.asarray(values)


def read_input(estimator: ProbabilityTransformer, proba: Any) -> Array:
    """What `transform` is given as a finite (n, m) array, columns in the order of the classes."""
    check_is_fitted(estimator)
    if is_foreign(proba):
        return _read_foreign(estimator, proba, reset=False)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and _is_plain(proba, estimator.n_features_in_):
        return np.asarray(proba)
    wanted = list(estimator.classes_ if names is None else names)
    columns = named_columns(proba, wanted, by_position=names is None)
    if columns is not None:
        with _own_words(columns):
            return np.asarray(check_array(columns, dtype=_DTYPES))
    with _own_words(proba, estimator.n_features_in_):
        return np.asarray(validate_data(estimator, proba, dtype=_DTYPES, reset=False))


@contextmanager
def _own_words(values: Any, n_classes: int | None = None) -> Iterator[None]:
    """Tell of a wrong shape, NaN and masks as everywhere; scikit-learn speaks of features."""
    check_unmasked(values, "proba")
    try:
        yield
    except ValueError as error:
        array = np.asarray(values)
        if array.dtype.kind in "fiu":
            array = array.astype(np.float64)
        if array.size and array.dtype.kind in "fUS":
            check_finite(check_matrix(array, "proba"), "proba")
        if n_classes is None or array.ndim != 2 or array.shape[1] == n_classes:
            raise
        raise InputError(
            f"`proba` must have one column per class, {n_classes}",
            # The words that scikit-learn's own checks look for.
            f"it has {array.shape[1]} ({str(error).rstrip('.')})",
            "Pass the probabilities of all classes, in the order of `classes_`.",
            value=array.shape[1],
            code="n_columns",
        ) from error


def _read_foreign(estimator: ProbabilityTransformer, proba: Any, *, reset: bool) -> Array:
    """As scikit-learn reads NumPy arrays; they stay on their device if the method works there."""
    values = check_device_array(proba)
    validate_data(estimator, values, skip_check_array=True, reset=reset)
    stays = estimator.any_library and not kind_of(estimator).is_multilabel
    return values if stays else to_numpy(values)


def read_weight(sample_weight: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return one weight per row in host memory; None where none are given."""
    weight = check_weight(sample_weight, np.empty((n_rows, 0)), "sample_weight", "row")
    if weight is not None:
        check_scale(weight, "sample_weight")
    return weight


def require_labels(
    estimator: object, y: object, remedy: str = "Call fit(proba, y) with validation labels."
) -> None:
    """Raise if there are no labels, in words that scikit-learn's checks look for."""
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None",
            remedy=remedy,
            code="no_labels",
        )


def chosen_model(fitted: FittedModel) -> Any:
    """Return the estimator that adjusts: what a search chose, or the model itself."""
    return getattr(fitted, "model_", getattr(fitted, "best_normalizer_", fitted))


def unnamed(estimator: Normalizer) -> Normalizer:
    """Return a copy that takes plain arrays without a warning: names are matched elsewhere."""
    twin = copy(estimator)
    vars(twin).pop("feature_names_in_", None)
    return twin


def _is_plain(values: object, n_columns: int) -> bool:
    """Whether scikit-learn's checks, which cost more than a row, would find nothing to do."""
    if type(values) is not np.ndarray or values.dtype not in _DTYPES:
        return False
    if values.ndim != 2 or values.shape[1] != n_columns or not values.shape[0]:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def _keep_names(estimator: ProbabilityTransformer, names: list[Any] | None) -> np.ndarray | None:
    """Return the column names of a frame; remember them where scikit-learn could not read it.

    It drops the names unless all are strings; class names may be numbers.
    """
    if names is None or hasattr(estimator, "feature_names_in_"):
        return getattr(estimator, "feature_names_in_", None)
    if all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return np.array(names)


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
        # Labels False and True can name two columns; of more, they are the numbers 0 and 1.
        keep = present.dtype.kind != "b" or n_classes == 2
        return np.arange(n_classes).astype(present.dtype if keep else int)
    raise InputError(
        f"The labels in `y` must match the {n_classes} columns of `proba`",
        f"there are {present.size} different labels, the first is {str(present[0])!r}",
        f"Use the class indices 0 to {n_classes - 1}, or a data frame whose column names are the "
        "class names.",
        value=present[0],
        code="unknown_class",
    )
