"""What every estimator on class probabilities shares: checking input, class labels, decisions."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from altnorm._kinds import kind_of
from altnorm._labels import class_codes
from altnorm._validation import InputError
from altnorm.drift import Drift, count_usage, fitted_usage, measure_drift
from altnorm.explanation import Explanation

__all__ = ["ProbabilityTransformer", "class_codes", "resolve_classes", "unnamed"]


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
        kind = kind_of(self)
        decided = kind.decide(adjusted)
        return decided if kind.is_multilabel else self.classes_[decided]

    def explain(self, proba: Any) -> Explanation:
        """Say why the class of each changed row changed.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions, columns as in `fit`.

        Returns
        -------
        Explanation
            One entry for each row whose class changes (for each changed label of a row in
            multi-label problems): its ambiguity, the class before and after, and the factor by
            which each class was multiplied.
        """
        kind = kind_of(self)
        before = kind.read(self._validated(proba), self.input)
        ambiguity = kind.ambiguity(before, k_max=getattr(self, "k_max", 10))
        after = np.asarray(self.transform(proba))
        return Explanation.from_predictions(before, after, ambiguity, self.classes_, kind.decide)

    def check(self, proba: Any) -> Drift:
        """Say whether incoming predictions still look like those at `fit`.

        Compares how confident predictions use the classes, and the share of doubtful ones, with
        what was seen at `fit`. No labels needed.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Incoming predictions, columns as in `fit`; some hundred rows at least.

        Returns
        -------
        Drift
            `drifted`, the numbers behind it, and one line as `str`.

        Examples
        --------
        >>> import numpy as np
        >>> from altnorm import AlternatingNormalizer
        >>> rng = np.random.default_rng(0)
        >>> validation = rng.dirichlet([0.3, 0.3, 0.3], size=2000)
        >>> normalizer = AlternatingNormalizer().fit(validation)
        >>> normalizer.check(rng.dirichlet([0.3, 0.3, 0.3], size=1000)).drifted
        False
        >>> normalizer.check(rng.dirichlet([0.9, 0.1, 0.1], size=1000)).drifted
        True
        """
        before = kind_of(self).read(self._validated(proba), self.input)
        return measure_drift(fitted_usage(self), count_usage(self, before))

    def _transform(self, proba: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _check_fit(self, proba: Any, y: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Set `classes_`; return clean probabilities and, if `y` is given, class codes.

        For multi-label problems the 0/1 matrix of labels, as booleans, stands for class codes.
        """
        values = validate_data(self, proba, dtype=[np.float64, np.float32])
        checked = self._read(values)
        # scikit-learn drops the names unless all are strings; class names may be numbers.
        names = getattr(self, "feature_names_in_", _column_names(proba))
        kind = kind_of(self)
        # What `check` compares with, whatever the method itself remembers.
        self.usage_counts_, *self.usage_doubt_ = count_usage(self, kind.read(values, self.input))
        labels = None if y is None else kind.check_labels(y, checked.shape)
        known = None if kind.is_multilabel else labels
        self.classes_ = resolve_classes(known, checked.shape[1], names)
        return checked, None if labels is None else kind.encode(labels, self.classes_)

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

    def _check_transform(self, proba: Any) -> np.ndarray:
        return self._read(self._validated(proba))

    def _validated(self, proba: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, proba, dtype=[np.float64, np.float32], reset=False))

    def _read(self, values: np.ndarray) -> np.ndarray:
        return kind_of(self).read(values, self.input)


def unnamed(estimator: Any) -> Any:
    """Return a copy that takes plain arrays without a warning: names are matched elsewhere."""
    twin = copy(estimator)
    vars(twin).pop("feature_names_in_", None)
    return twin


def _column_names(proba: Any) -> np.ndarray | None:
    """Column names of a data frame that are not strings, which is all that scikit-learn keeps."""
    columns = np.asarray(getattr(proba, "columns", None))
    return columns if columns.ndim == 1 else None


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
        f"there are {present.size} different labels, the first is {present[0]!r}",
        f"Use the class indices 0 to {n_classes - 1}, or a data frame whose column names are the "
        "class names.",
        value=present[0],
        code="unknown_class",
    )
