"""What every estimator on class probabilities shares: checking input, class labels, decisions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.metrics import accuracy_score, f1_score

from altnorm._base import arrays
from altnorm._base.arrays import Array, GivenArray
from altnorm._base.errors import InputError
from altnorm._base.fitted import Fields, is_array
from altnorm._base.persistence import Saved
from altnorm._base.validation import check_choice
from altnorm.estimator import reading
from altnorm.estimator.correction import Correction, Rule, Stage, run
from altnorm.estimator.drift import Drift, Usage, count_usage, measure_drift
from altnorm.estimator.explanation import Explanation
from altnorm.estimator.kinds import FittedModel, kind_of
from altnorm.estimator.reading import Input, Training

_CORRECTIONS, _PLACED = arrays.KeptResults(), arrays.KeptResults()

Normalizer = TypeVar("Normalizer", bound=FittedModel)
Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Let a refused or failed `fit` leave the estimator as it was: a copy is fitted."""

    @wraps(fit)
    def fit_copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        twin = copy(self)
        fit(twin, *args, **kwargs)
        self.__dict__ = vars(twin)
        return self

    return cast(Fit, fit_copy)


class ProbabilityTransformer(Saved, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers that turn class probabilities into class probabilities.

    A subclass writes `fit`, with `read_training` and `_keep`, and `stage`.
    """

    input: str = "proba"
    multilabel: str | None = None
    any_library = False  # whether it works on arrays of other libraries than NumPy

    @overload
    def transform(self, proba: GivenArray) -> GivenArray: ...

    @overload
    def transform(self, proba: Any) -> np.ndarray: ...

    def transform(self, proba: Any) -> Any:
        """Return the adjusted class probabilities.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Columns as in `fit`. Those of a data frame (pandas, Polars, also lazy, PyArrow, DuckDB)
            are found by their names, in any order and among others.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In new memory: a NumPy array or, for an array of PyTorch, CuPy or JAX, one of the same
            kind on the same device.
        """
        return arrays.move(self._transform(reading.read_input(self, proba)), proba)

    if TYPE_CHECKING:  # scikit-learn says nothing about types

        @overload
        def fit_transform(self, X: GivenArray, y: Any = ..., **params: Any) -> GivenArray: ...

        @overload
        def fit_transform(self, X: Any, y: Any = ..., **params: Any) -> np.ndarray: ...

        def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
            """Fit, and return the adjusted rows."""

    def stage(self) -> Stage:
        """Return what it does to a row, for :mod:`altnorm.estimator.correction` to run."""
        raise NotImplementedError

    def correction(self) -> Correction:
        """Return all that the fitted model does to a row; made once for each fit."""
        state = vars(self)
        return _CORRECTIONS.get(self, tuple(state.values()), len(state), self._make_correction)

    def _make_correction(self) -> Correction:
        with arrays.quiet(np):
            return Correction(self.input, kind_of(self).is_multilabel, self.stage(), self._rule())

    def _rule(self) -> Rule:
        """How it decides: for the most probable class, or labels more probable than not."""
        if kind_of(self).is_multilabel:
            return Rule("thresholds", np.full(len(self.classes_), 0.5))
        return Rule("weights")

    @overload
    def predict(self, proba: np.ndarray) -> np.ndarray: ...

    @overload
    def predict(self, proba: GivenArray) -> GivenArray | np.ndarray: ...

    @overload
    def predict(self, proba: Any) -> np.ndarray: ...

    def predict(self, proba: Any) -> Any:
        """Return the decision on each row: the most probable class, or what the purpose asks for.

        It takes what `transform` takes.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            Class labels, out of `classes_`, None where costs, or a target accuracy, say to leave a
            row to a person; for multi-label problems the 0/1 matrix of decisions. Of the kind that
            `transform` returns; labels that are not numbers as a NumPy array.
        """
        clean, rule = reading.read_input(self, proba), self.correction().rule
        labels = rule.names(self._codes(clean, rule), self.classes_)
        return arrays.move(labels, proba) if labels.dtype.kind in "biuf" else labels

    def score(self, proba: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that `predict` gets right; with several labels, micro-F1.

        Parameters
        ----------
        proba, y, sample_weight
            As for :meth:`fit`; labels out of `classes_`.

        Returns
        -------
        float
            The score, from 0 to 1.
        """
        reading.check_order(proba, y, "score")
        clean = reading.read_input(self, proba)
        labels = clean.encode(y, self.classes_)
        weight = reading.read_weight(sample_weight, len(labels))
        codes = self._codes(clean, self.correction().rule)
        if clean.kind.is_multilabel:
            options = {"average": "micro", "zero_division": 0.0, "sample_weight": weight}
            return float(f1_score(labels, codes, **options))
        return float(accuracy_score(labels, codes, sample_weight=weight))

    def explain(self, proba: Any) -> Explanation:
        """Say why the decision on each changed row changed; takes what `transform` takes.

        Returns
        -------
        Explanation
            One entry for each row for which `predict` differs from the most probable class of
            `proba`; in multi-label problems for each changed label.
        """
        clean, rule = reading.read_on_host(self, proba), self.correction().rule
        before, after = clean.proba, np.asarray(self._transform(clean))
        ambiguity = clean.kind.ambiguity(before, k_max=getattr(self, "k_max", 10))
        decided = clean.kind.decide(before), rule.codes(before if rule.on_input else after)
        return Explanation.from_decisions((before, after), decided, ambiguity, self.classes_)

    def drift(self, proba: Any) -> Drift:
        """Say whether incoming predictions still look like those at `fit`; no labels needed.

        It takes what `transform` takes, a few hundred rows at least.

        Returns
        -------
        Drift
            `drifted`, the numbers behind it, `advice` on what follows, and one line as `str`.

        Examples
        --------
        >>> import numpy as np
        >>> from altnorm import AlternatingNormalizer
        >>> rng = np.random.default_rng(0)
        >>> normalizer = AlternatingNormalizer().fit(rng.dirichlet([0.3, 0.3, 0.3], size=2000))
        >>> normalizer.drift(rng.dirichlet([0.9, 0.1, 0.1], size=1000)).drifted
        True
        """
        rows = reading.read_on_host(self, proba).proba
        return self._advise(measure_drift(self.usage_, count_usage(self, rows)), rows)

    def _advise(self, drift: Drift, rows: np.ndarray) -> Drift:
        """Say what follows from a drift of clean rows, where more is known than the rows say."""
        return drift

    def _check_params(self) -> None:
        """Raise on bad settings, before any data are read."""
        check_choice(self.input, "input", ("proba", "logits"))
        kind_of(self)

    def _check_fitted(self, fields: Fields) -> None:
        """Raise unless settings and fitted attributes are such as `fit` leaves them."""
        try:
            self._check_params()
        except InputError as error:
            rule = f"{fields.name}: {error.rule}"
            raise error.replace(rule=rule, code="model_file") from error
        classes = fields.get("classes_")
        names = classes.tolist() if is_array(classes) and classes.ndim == 1 else [None]
        holds = all(isinstance(name, (str, int, float)) for name in names)
        holds = holds and len(set(map(str, names))) == len(names)
        fields.require("classes_", holds, "different class labels: text, numbers or booleans")
        fields.n_classes, n = classes.size, fields.get("n_features_in_")
        holds = type(n) is int and n == classes.size >= (1 if kind_of(self).is_multilabel else 2)
        must = "the number of classes, 2 or more unless rows have several labels"
        fields.require("n_features_in_", holds, must)
        if fields.has("feature_names_in_"):
            columns = fields.get("feature_names_in_")
            holds = is_array(columns) and columns.shape == (n,)
            holds = holds and all(isinstance(name, str) for name in columns.tolist())
            fields.require("feature_names_in_", holds, "the name of each column")
        fields.record("usage_", Usage)

    def _codes(self, clean: Input, rule: Rule) -> np.ndarray:
        # From what `transform` returns, so that rounding cannot set the two apart.
        return rule.codes(clean.proba if rule.on_input else self._transform(clean))

    def _score_by(self, score: Any, proba: Any, y: Any, sample_weight: Any) -> float:
        """Score decisions on all rows, or probabilities, by a score that says what it needs."""
        reading.check_order(proba, y, "score")
        clean = reading.read_input(self, proba)
        labels = clean.encode(y, self.classes_)
        if score.needs == "proba":
            predicted = arrays.to_numpy(self._transform(clean))
        else:
            predicted = self._codes(clean, self.correction().rule._replace(least=None))
        return float(score(labels, predicted, reading.read_weight(sample_weight, len(labels))))

    def _transform(self, clean: Input) -> Array:
        """Adjusted probabilities of clean rows, in new memory."""
        return run(self._correction_beside(clean.values), clean.values)

    def adjusted(self, proba: Array) -> Array:
        """Return adjusted probabilities of clean ones, whatever `input` says."""
        return run(self._correction_beside(proba)._replace(input="proba"), proba)

    def _correction_beside(self, rows: Array) -> Correction:
        """The correction, its constants where the rows are."""
        correction = self.correction()
        if not arrays.is_foreign(rows):
            return correction
        # As precise as can be there, whatever the rows are.
        like = arrays.wide(rows[:0, :])
        place = arrays.array_namespace(like), like.dtype, arrays.device(like)
        return _PLACED.get(self, (correction,), place, lambda: arrays.beside(correction, like))

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


def correction_of(model: FittedModel) -> Correction:
    """Return what a fitted model does to a row; raise unless altnorm knows."""
    if isinstance(model, ProbabilityTransformer) and hasattr(model, "classes_"):
        return model.correction()
    rule = "The model must be a fitted Adjuster, AlternatingNormalizer, "
    rule += "AlternatingNormalizerCV, or one of altnorm.peers"
    offender, remedy = f"it is {model!r}", "Fit one first."
    raise InputError(rule, offender, remedy, value=model, code="not_supported")


def unnamed(estimator: Normalizer) -> Normalizer:
    """Return a copy that takes plain arrays without a warning: names are matched elsewhere."""
    twin = copy(estimator)
    vars(twin).pop("feature_names_in_", None)
    return twin
