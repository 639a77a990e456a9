"""The base line, and a temperature for all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Tags

from altnorm._base.arrays import Array
from altnorm._base.persistence import storable
from altnorm._base.specs import declare, number
from altnorm.families.base import FitData, SingleLabelPeer, labels_required, tilt
from altnorm.families.likelihood import Likelihood, fit_slope
from altnorm.method.estimator import ProbabilityTransformer, read_input


@storable
class Identity(ProbabilityTransformer):
    """Change nothing: the base line of every comparison.

    Parameters
    ----------
    input : {"proba", "logits"}, default="proba"
        What the columns hold. Probabilities come back bit for bit, logits as their softmax.
    multilabel : None, "pairs" or "labelwise", default=None
        None: rows sum to 1. Otherwise entries are independent probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.

    Examples
    --------
    >>> from altnorm.families import Identity
    >>> Identity().fit([[0.7, 0.3]]).transform([[0.6, 0.4]])
    array([[0.6, 0.4]])
    """

    any_library = True

    def __init__(self, *, input: str = "proba", multilabel: str | None = None) -> None:
        self.input = input
        self.multilabel = multilabel

    def fit(self, proba: Any, y: Any = None, sample_weight: Any = None) -> Identity:
        """Record the classes.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Validation predictions.
        y : array-like of shape (n_samples,), optional
            Validation labels; they only name the classes.
        sample_weight : array-like of shape (n_samples,), optional
            Ignored, present for a common signature.

        Returns
        -------
        Identity
            The fitted transformer.
        """
        self._check_fit(proba, y)
        return self

    def _transform(self, proba: Array) -> Array:
        return proba


@storable
class TemperatureScaling(SingleLabelPeer):
    r"""Temperature scaling: sharpen or flatten every row by the same exponent.

    .. math:: p'_{ij} \propto p_{ij}^{1/T}

    with the temperature :math:`T` of least log-loss on the validation labels [1]_. The order of the
    classes in a row, and so every prediction, stays. The log-loss is convex in :math:`1/T`, whose
    derivative's root is bracketed, so the temperature found is the best one in [0.001, 1000].

    Parameters
    ----------
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    temperature_ : float
        The temperature; above 1 the classifier was overconfident.

    Notes
    -----
    A probability of zero stays zero. Where a label has probability zero, the log-loss would be
    infinite at any temperature; in the loss, and there only, that entry counts as the machine
    epsilon of the input's dtype.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> from altnorm.families import TemperatureScaling
    >>> proba = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]
    >>> scaling = TemperatureScaling().fit(proba, [0, 0, 1, 1])
    >>> round(scaling.temperature_, 3)  # 3 of 4 are right: 0.9 becomes 0.75
    2.0
    >>> scaling.transform([[0.9, 0.1]]).round(3)
    array([[0.75, 0.25]])
    """

    _fitted = declare(temperature_=number(1e-9, 1e9))

    def _fit(self, data: FitData) -> None:
        eps = float(np.finfo(data.log_p.dtype).eps)
        loss = Likelihood.build(data.log_p, data.labels, data.weight, eps)
        self.temperature_ = 1 / fit_slope(loss)

    def predict(self, proba: Any) -> np.ndarray:
        """Return the most probable class of each row, which no temperature changes.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            As for `transform`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels, out of `classes_`.
        """
        values = read_input(self, proba)
        self._read(values)
        # Not from the adjusted rows: rounding there may turn a narrow lead into a tie.
        return self.classes_[np.argmax(values, axis=1)]

    def _transform(self, log_p: np.ndarray) -> np.ndarray:
        return tilt(log_p, slope=1 / self.temperature_)

    def __sklearn_tags__(self) -> Tags:
        return labels_required(super().__sklearn_tags__())
