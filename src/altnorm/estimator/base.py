"""What every estimator on class probabilities shares: checking input, class labels, decisions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any, TypeVar, cast, overload

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.metrics import accuracy_score, f1_score

from altnorm._base.arrays import Array, GivenArray, array_namespace, move
from altnorm._base.fitted import Fields, is_array
from altnorm._base.persistence import Saved
from altnorm._base.validation import check_choice
from altnorm.estimator.drift import Drift, Usage, count_usage, measure_drift
from altnorm.estimator.explanation import Explanation
from altnorm.estimator.kinds import FittedModel, kind_of
from altnorm.estimator.reading import Input, Training, read_input, read_on_host, read_weight

Normalizer = TypeVar("Normalizer", bound=FittedModel)
Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Let a refused or failed `fit` leave the estimator as it was.

    A copy is fitted, and the estimator takes over what the copy has learnt in one step.
    """

    @wraps(fit)
    def fit_copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        twin = copy(self)
        fit(twin, *args, **kwargs)
        self.__dict__ = vars(twin)
        return self

    return cast(Fit, fit_copy)


class ProbabilityTransformer(Saved, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers that turn class probabilities into class probabilities.

    A subclass writes `fit`, with `read_training` and `_keep`, and `_transform`, which maps a clean
    (n, m) array of probabilities, or what `_rows` makes of it, to another one.
    """

    input: str = "proba"
    multilabel: str | None = None
    any_library = False  # whether `_transform` works on arrays of other libraries than NumPy

    @overload
    def transform(self, proba: GivenArray) -> GivenArray: ...

    @overload
    def transform(self, proba: Any) -> np.ndarray: ...

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
        rows = self._rows(read_input(self, proba))
        new = self._transform(rows)
        if new is rows:  # it may be the caller's own array
            new = array_namespace(new).asarray(new, copy=True)
        return move(new, proba)

    def transform_clean(self, proba: Array) -> Array:
        """Adjust probabilities that were checked already, as an array, whatever `input` says."""
        return self._transform(self._rows(Input(proba, kind_of(self))))

    @overload
    def predict(self, proba: np.ndarray) -> np.ndarray: ...

    @overload
    def predict(self, proba: GivenArray) -> GivenArray | np.ndarray: ...

    @overload
    def predict(self, proba: Any) -> np.ndarray: ...

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
            costs, or a target accuracy, say to leave a row to a person; for multi-label problems
            the 0/1 matrix of decisions. Of the kind that `transform` returns; labels that are not
            numbers as a NumPy array.
        """
        labels = self._named(self._codes(self._rows(read_input(self, proba))))
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
        clean = read_input(self, proba)
        checked, kind = self._rows(clean), clean.kind
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
        clean = read_on_host(self, proba)
        before, rows = clean.proba, self._rows(clean)
        after = np.asarray(self._transform(rows))
        ambiguity = clean.kind.ambiguity(before, k_max=getattr(self, "k_max", 10))
        decided = clean.kind.decide(before), self._codes(rows)
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
        rows = read_on_host(self, proba).proba
        return self._advise(measure_drift(self.usage_, count_usage(self, rows)), rows)

    def _advise(self, drift: Drift, rows: np.ndarray) -> Drift:
        """Say what follows from a drift of clean rows, where more is known than the rows say."""
        return drift

    def _check_params(self) -> None:
        """Raise on bad settings, before any data are read."""
        check_choice(self.input, "input", ("proba", "logits"))
        kind_of(self)

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
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

    def _rows(self, clean: Input) -> Array:
        """What `_transform` works on: probabilities, unless a subclass wants another form."""
        return clean.proba

    def _keep(self, read: Training) -> None:
        """Remember the classes, and what `drift` compares with."""
        self.classes_, self.n_features_in_ = read.classes, read.classes.size
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if read.names is not None:
            self.feature_names_in_ = read.names
        self.usage_ = count_usage(self, read.input.proba)


def chosen_model(fitted: FittedModel) -> Any:
    """Return the estimator that adjusts: what a search chose, or the model itself."""
    return getattr(fitted, "model_", getattr(fitted, "best_normalizer_", fitted))


def unnamed(estimator: Normalizer) -> Normalizer:
    """Return a copy that takes plain arrays without a warning: names are matched elsewhere."""
    twin = copy(estimator)
    vars(twin).pop("feature_names_in_", None)
    return twin
