"""Peers that fit a temperature, and biases, to labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Tags

from altnorm._base.arrays import Array
from altnorm._base.errors import InputError
from altnorm._base.persistence import storable
from altnorm._base.specs import ABSENT, array, declare, number, table
from altnorm._base.validation import check_choice, check_integer, check_positive
from altnorm.families.base import FitData, SingleLabelPeer, labels_required, tilt
from altnorm.families.likelihood import RIDGES, Likelihood, fit_bias, fit_slope, ridge_path
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
        self.temperature_ = 1 / fit_slope(_likelihood(data))

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


@storable
class BiasCorrectedTemperature(SingleLabelPeer):
    r"""Bias-corrected temperature scaling, BCTS: one temperature and a bias for each class.

    .. math:: p'_{ij} \propto p_{ij}^{1/T} \exp(b_j)

    as in [1]_, with :math:`T` and :math:`b` minimising the ridge-penalised log-loss on the
    validation labels,

    .. math:: -\sum_i w_i \log p'_{i y_i} + \frac{\lambda}{2} \sum_j b_j^2 .

    The penalty is ours: many classes have few validation rows, and unpenalised biases follow
    their noise. :math:`1/\lambda` is the variance expected of the biases, so a strength keeps its
    meaning as rows are added. A class without validation rows gets a finite negative bias.

    Parameters
    ----------
    ridge : float or "cv", default="cv"
        The strength :math:`\lambda`. With "cv" it is the one of least cross-validated log-loss
        among 13 from 10,000 down to 0.01; of equally good ones the strongest. With 0 biases are
        held within [-30, 30].
    cv : int, default=5
        Number of folds for ``ridge="cv"``. The rows of each class are dealt in turn to the folds;
        no class needs a minimum number of rows.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    temperature_ : float
        The temperature.
    bias_ : ndarray of shape (n_classes,)
        The biases; their sum is 0.
    ridge_ : float
        The strength used.
    cv_results_ : dict of ndarrays
        With ``ridge="cv"`` only: each "ridge" tried and its "log_loss" (mean over held-out rows).

    See Also
    --------
    TemperatureScaling : The same without biases; it says how zeros are treated.

    References
    ----------
    .. [1] Alexandari, Kundaje, Shrikumar, "Maximum likelihood with bias-corrected calibration is
       hard-to-beat at label shift adaptation", ICML 2020.

    Examples
    --------
    >>> from altnorm.families import BiasCorrectedTemperature
    >>> proba = [[0.8, 0.2], [0.8, 0.2], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]]
    >>> bcts = BiasCorrectedTemperature(ridge=0.1).fit(proba, [0, 0, 1, 1, 0, 1])
    >>> bcts.bias_.round(2)
    array([-1.11,  1.11])
    >>> bcts.predict([[0.6, 0.4]])
    array([1])
    """

    _fitted = declare(
        temperature_=number(1e-9, 1e9),
        bias_=array("f", ("m",), -1e9, 1e9),
        ridge_=number(0),
        cv_results_=table() | ABSENT,
    )

    def __init__(self, ridge: float | str = "cv", *, cv: int = 5, input: str = "proba") -> None:
        self.ridge = ridge
        self.cv = cv
        self.input = input

    def _fit(self, data: FitData) -> None:
        loss = _likelihood(data)
        self.ridge_ = self._choose_ridge(loss)
        # The best temperature without biases: few steps are left from there.
        start = fit_slope(loss), np.zeros(self.classes_.size)
        slope, bias = fit_bias(loss, self.ridge_, start)
        # A constant in all biases cancels in the softmax; of all that fit alike, the mean is 0.
        self.temperature_, self.bias_ = 1 / slope, bias - bias.mean()

    def _choose_ridge(self, loss: Likelihood) -> float:
        if not isinstance(self.ridge, str):
            return check_positive(self.ridge, "ridge", zero=True)
        check_choice(self.ridge, "ridge", ("cv",))
        n_folds = min(check_integer(self.cv, "cv", low=2), loss.codes.size)
        if n_folds < 2:
            raise InputError(
                "ridge='cv' needs at least 2 rows of positive weight",
                "there is only n_samples=1",
                "Pass a number, for example ridge=1.0.",
                code="parameter",
            )
        log_loss = ridge_path(loss, n_folds)
        self.cv_results_ = {"ridge": RIDGES.copy(), "log_loss": log_loss}
        # Strongest first, so that of equally good ones the strongest is taken.
        return float(RIDGES[np.argmin(log_loss)])

    def _transform(self, log_p: np.ndarray) -> np.ndarray:
        return tilt(log_p, slope=1 / self.temperature_, bias=self.bias_)

    def __sklearn_tags__(self) -> Tags:
        return labels_required(super().__sklearn_tags__())


def _likelihood(data: FitData) -> Likelihood:
    eps = float(np.finfo(data.log_p.dtype).eps)
    return Likelihood.build(data.log_p, data.labels, data.weight, eps)
