"""AdjustedClassifier: a classifier and its adjuster as one estimator."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedGroupKFold, check_cv, cross_val_predict
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from altnorm._base.errors import InputError
from altnorm._base.labels import check_targets
from altnorm._base.validation import check_unmasked
from altnorm.adjuster import Adjuster
from altnorm.estimator.base import ProbabilityTransformer, all_or_nothing
from altnorm.estimator.reading import require_labels
from altnorm.evidence.verdict import Verdict


class AdjustedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities and decisions are adjusted to labels, on evidence.

    The adjuster must see predictions for rows that the classifier was not trained on. With a
    :class:`~sklearn.frozen.FrozenEstimator`, or ``cv="prefit"``, the data given to `fit` are
    validation data and the classifier stays as it is. Otherwise such predictions come from
    :func:`~sklearn.model_selection.cross_val_predict`, and the classifier is then fitted on all
    data.

    Decisions as they came are the most probable classes. A classifier whose own `predict` decides
    otherwise, as that of ``SVC(probability=True)`` may, is judged by its probabilities.

    Parameters
    ----------
    estimator : classifier
        Any classifier with ``predict_proba``.
    adjuster : Adjuster, AlternatingNormalizerCV or AlternatingNormalizer, optional
        What adjusts the predictions; None is ``Adjuster()``. Its parameters can be searched either
        way, as ``adjuster__significance``.
    scoring, costs, target_accuracy
        The purpose, as for :class:`Adjuster`, if the adjuster itself has none.
    cv : int, splitter or "prefit", optional
        How to get predictions for the training data; as in `cross_val_predict`. The parts that are
        left out must hold several classes. Not used with a `FrozenEstimator`.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    adjuster_ : Adjuster, AlternatingNormalizerCV or AlternatingNormalizer
        The fitted adjuster; its `verdict_` says whether the adjustment helps.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of features the classifier was fitted on, if it counts them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from altnorm import AdjustedClassifier
    >>> X, y = make_classification(500, 10, n_informative=4, n_classes=3, random_state=0)
    >>> model = AdjustedClassifier(GaussianNB()).fit(X, y)
    >>> model.predict_proba(X).shape
    (500, 3)
    """

    adjuster_: ProbabilityTransformer
    classes_: np.ndarray

    def __init__(
        self,
        estimator: Any,
        adjuster: Any = None,
        *,
        scoring: Any = None,
        costs: Any = None,
        target_accuracy: float | None = None,
        cv: Any = None,
    ) -> None:
        self.estimator = estimator
        self.adjuster = adjuster
        self.scoring = scoring
        self.costs = costs
        self.target_accuracy = target_accuracy
        self.cv = cv

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of the adjuster that None stands for."""
        of_adjuster = any(name.startswith("adjuster__") for name in params)
        if of_adjuster and self.adjuster is None and "adjuster" not in params:
            self.adjuster = _default_adjuster()
        return super().set_params(**params)

    @all_or_nothing
    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the classifier, unless it is frozen, and the adjuster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data, or validation data for a frozen classifier.
        y : array-like of shape (n_samples,)
            Class labels.
        **params : dict
            Metadata such as `sample_weight` and `groups`, routed to the classifier, the adjuster
            and the splitter if metadata routing is enabled (a default adjuster asks for both),
            else passed to each that accepts it. With `groups` whole groups go into a fold,
            by :class:`~sklearn.model_selection.StratifiedGroupKFold` unless `cv` is a splitter.
        """
        require_labels(self, y, "Pass class labels.")
        check_unmasked(y, "y")
        y = check_targets(column_or_1d(y, warn=True))
        fit_params, adjuster_params, split_params = self._route(params)
        _check_has_proba(self.estimator)
        adjuster = self._unfitted_adjuster()
        _check_takes_proba(adjuster)
        if self._is_prefit:
            self.estimator_ = self.estimator
            proba = _predict_proba(self.estimator_, X)
        else:
            # Splits, not the splitter: groups reach it with and without metadata routing.
            splits = list(self._splitter(y, **split_params).split(X, y, **split_params))
            _check_parts(y, [held_out for _, held_out in splits])
            proba = cross_val_predict(
                self.estimator, X, y, cv=splits, method="predict_proba", params=fit_params
            )
            self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.adjuster_ = adjuster.fit(proba, y, classes=self.classes_, **adjuster_params)
        return self

    @property
    def verdict_(self) -> Verdict:
        """The adjuster's verdict: whether decisions are better, and how sure that is."""
        verdict: Verdict = self.adjuster_.verdict_
        return verdict

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the adjusted class probabilities, (n_samples, n_classes)."""
        check_is_fitted(self)
        return np.asarray(self.adjuster_.transform(_predict_proba(self.estimator_, X)))

    def predict(self, X: Any) -> np.ndarray:
        """Return the decision for the adjuster's purpose, None where a row is left to a person."""
        check_is_fitted(self)
        return np.asarray(self.adjuster_.predict(_predict_proba(self.estimator_, X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the adjuster, as :meth:`Adjuster.score`: accuracy by default."""
        check_is_fitted(self)
        proba = _predict_proba(self.estimator_, X)
        return float(self.adjuster_.score(proba, y, sample_weight=sample_weight))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata is routed to the classifier and the adjuster."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=to_fit)
            .add(adjuster=self._unfitted_adjuster(), method_mapping=to_fit)
        )
        if self._is_prefit:
            return router
        to_split = MethodMapping().add(caller="fit", callee="split")
        return router.add(splitter=self._splitter(None, groups=True), method_mapping=to_split)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    @property
    def _is_prefit(self) -> bool:
        """Whether the classifier stays as it is, and the data are validation data."""
        named = isinstance(self.cv, str) and self.cv == "prefit"
        return named or isinstance(self.estimator, FrozenEstimator)

    def _unfitted_adjuster(self) -> Any:
        """Return what adjusts, for the purpose that is stated here if one is."""
        adjuster = _default_adjuster() if self.adjuster is None else clone(self.adjuster)
        purpose, of_adjuster = stated_purpose(self), stated_purpose(adjuster)
        if purpose and of_adjuster:
            here, there = next(iter(purpose)), next(iter(of_adjuster))
            raise InputError(
                "The goal must be given once",
                f"`{here}` is given, and so is `{there}` of the adjuster",
                "Leave one of them out.",
                value=there,
                code="parameter",
            )
        lacking = purpose.keys() - adjuster.get_params(deep=False).keys()
        if lacking:
            raise InputError(
                f"`{min(lacking)}` is for an adjuster that has it as a parameter",
                f"{type(adjuster).__name__} has none",
                "Pass an Adjuster, or leave it out.",
                value=type(adjuster).__name__,
                code="parameter",
            )
        return adjuster.set_params(**purpose)

    def _splitter(self, y: Any, groups: Any = None) -> Any:
        """What deals the rows into folds for `cross_val_predict`, groups whole."""
        if groups is None or not (self.cv is None or isinstance(self.cv, Integral)):
            return check_cv(self.cv, y, classifier=True)
        return StratifiedGroupKFold(5 if self.cv is None else self.cv)

    def _route(self, params: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Metadata for the classifier, the adjuster and the splitter."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)
            split = {} if self._is_prefit else routed.splitter.split
            return routed.estimator.fit, routed.adjuster.fit, split
        # Without routing each gets what the signature of its `fit` names.
        to_estimator, to_adjuster = (
            {name: value for name, value in params.items() if has_fit_parameter(taker, name)}
            for taker in (self.estimator, self._unfitted_adjuster())
        )
        to_adjuster.pop("classes", None)  # the classifier's
        to_splitter = {} if self._is_prefit else {"groups": params.get("groups")}
        unknown = sorted(params.keys() - {*to_estimator, *to_adjuster, *to_splitter})
        if unknown:
            raise InputError(
                "`fit` takes metadata that the classifier or the adjuster accepts",
                f"neither accepts {', '.join(unknown)}",
                "Leave it out.",
                value=", ".join(unknown),
                code="parameter",
            )
        return to_estimator, to_adjuster, to_splitter


def _predict_proba(estimator: Any, X: Any) -> np.ndarray:
    return np.asarray(estimator.predict_proba(X))


def stated_purpose(estimator: Any) -> dict[str, Any]:
    """Return the parameters that state a purpose, where they do."""
    names = "scoring", "costs", "target_accuracy"
    values = {name: getattr(estimator, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _default_adjuster() -> Adjuster:
    if not get_config()["enable_metadata_routing"]:
        return Adjuster()
    # Nobody could ask on its behalf, and it makes use of both.
    asking: Adjuster = Adjuster().set_fit_request(sample_weight=True, groups=True)
    return asking


def _check_parts(y: np.ndarray, parts: list[np.ndarray]) -> None:
    """Raise where most rows are left out without rows of other classes.

    A classifier that is trained without them takes their class for rarer than it is, so that its
    predictions give the label away.
    """
    alone = sum(len(part) for part in parts if np.unique(y[part]).size == 1)
    if alone > len(y) / 2 and np.unique(y).size > 1:
        raise InputError(
            "`cv` must leave out parts of several classes, not single rows or groups of one class",
            f"{alone} of {len(y)} rows are left out with rows of their own class only, which gives "
            "their labels away",
            "Pass a number of folds, such as cv=5.",
            value=alone,
            code="cv",
        )


def _check_has_proba(estimator: Any) -> None:
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            "`estimator` must have predict_proba",
            f"{type(estimator).__name__} has none",
            "Pass a classifier, or wrap it in scikit-learn's CalibratedClassifierCV.",
            value=type(estimator).__name__,
            code="parameter",
        )


def _check_takes_proba(adjuster: Any) -> None:
    if getattr(adjuster, "input", "proba") != "proba":
        raise InputError(
            "`adjuster` must take probabilities, which is what predict_proba gives",
            f"its input is {adjuster.input!r}",
            "Pass an adjuster with input='proba'.",
            value=adjuster.input,
            code="parameter",
        )
