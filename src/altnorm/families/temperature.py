"""One temperature and one bias per class: ``softmax(log p / temperature + bias)``, or neither."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from altnorm._base.arrays import Array, array_namespace, move, softmax
from altnorm._base.fitted import TINY, Fields
from altnorm._base.persistence import storable
from altnorm._base.validation import check_positive
from altnorm.estimator.correction import Rule, Untouched
from altnorm.estimator.reading import Input
from altnorm.families.base import Peer, PenalisedPeer, positive
from altnorm.families.descent import Operator, Penalised, Point
from altnorm.families.likelihood import BIASES, SLOPES, Likelihood, fit_slope, label_log_p

# What one more step may still gain, per unit of weight.
_LAST_GAIN, _ROUGH_GAIN = 1e-12, 2e-5


@storable
class Identity(Peer):
    """Change nothing: the baseline of every comparison.

    Parameters
    ----------
    input : {"proba", "logits"}, default="proba"
        What the columns hold. Probabilities come back bit for bit, logits as their softmax.
    multilabel : None, "pairs" or "labelwise", default=None
        Rows sum to 1 with None; otherwise entries are independent probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.

    Examples
    --------
    >>> from altnorm.peers import Identity
    >>> Identity().fit([[0.7, 0.3]]).transform([[0.6, 0.4]])
    array([[0.6, 0.4]])
    """

    any_library = True
    needs_labels = False

    def __init__(self, *, input: str = "proba", multilabel: str | None = None) -> None:
        self.input = input
        self.multilabel = multilabel

    def _rows(self, clean: Input) -> Array:
        return clean.values

    def _fit(self, rows: Array, labels: np.ndarray, weight: np.ndarray) -> None:
        """Nothing is fitted: labels only name the classes."""

    def stage(self) -> Untouched:
        """Return the rows as they came."""
        return Untouched()


@storable
class TemperatureScaling(Peer):
    r"""Temperature scaling: sharpen or flatten every row by the same exponent.

    .. math:: p'_{ij} \propto p_{ij}^{1/T}

    with the temperature :math:`T` of least log loss on the validation labels [1]_, between 0.001
    and 1000. The order of the classes in a row, and so every prediction, stays.

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
    A probability of zero stays zero. In the loss, and there only, that of a label counts as the
    machine epsilon of the input's dtype.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> from altnorm.peers import TemperatureScaling
    >>> proba = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]
    >>> scaling = TemperatureScaling().fit(proba, [0, 0, 1, 1])
    >>> round(scaling.temperature_, 3)  # 3 of 4 are right: 0.9 becomes 0.75
    2.0
    >>> scaling.transform([[0.9, 0.1]]).round(3)
    array([[0.75, 0.25]])
    """

    def __init__(self, *, input: str = "proba") -> None:
        self.input = input

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        fields.number("temperature_", 1e-9, 1e9)

    def _fit(self, log_p: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> None:
        self.temperature_ = 1 / fit_slope(Likelihood.build(log_p, codes, weight))

    def _rule(self) -> Rule:
        # Not of the adjusted rows: rounding there may turn a narrow lead into a tie.
        return Rule("weights", on_input=True)

    def _fitted_scores(self) -> Tilt:
        return Tilt(1 / self.temperature_, np.zeros(len(self.classes_)))


@storable
class BiasCorrectedTemperature(PenalisedPeer):
    r"""Bias-corrected temperature scaling, BCTS: one temperature and a bias for each class.

    .. math:: p'_{ij} \propto p_{ij}^{1/T} \exp(b_j)

    as in [1]_, with :math:`T` and :math:`b` of least log loss on the validation labels plus
    :math:`\frac{\lambda}{2} \sum_j b_j^2`. The penalty is ours: many classes have few validation
    rows, and unpenalised biases follow their noise. A class without any gets a negative bias.

    Parameters
    ----------
    strength : float or "cv", default="cv"
        The strength :math:`\lambda`. With "cv" it is the one of least cross-validated log loss
        among 256, 64, 16, 4, 1 and 0.25; of equally good ones the strongest. Weaker ones are left
        out once the loss has clearly risen. With 0 biases are held within [-30, 30].
    cv : int, default=5
        Number of folds for ``strength="cv"``, to which the rows of each class go in turn.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    temperature_, strength_ : float
        The temperature, and the strength used.
    bias_ : ndarray of shape (n_classes,)
        The biases; their sum is 0.

    References
    ----------
    .. [1] Alexandari, Kundaje, Shrikumar, "Maximum likelihood with bias-corrected calibration is
       hard-to-beat at label shift adaptation", ICML 2020.

    Examples
    --------
    >>> from altnorm.peers import BiasCorrectedTemperature
    >>> proba = [[0.8, 0.2], [0.8, 0.2], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]]
    >>> bcts = BiasCorrectedTemperature(strength=0.1).fit(proba, [0, 0, 1, 1, 0, 1])
    >>> bcts.bias_.round(2)
    array([-1.11,  1.11])
    >>> bcts.predict([[0.6, 0.4]])
    array([1])
    """

    may_be_zero = True

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        fields.number("temperature_", 1e-9, 1e9)
        fields.array("bias_", "f", (fields.n_classes,), -1e9, 1e9)
        fields.number("strength_", 0)

    def _fit(self, log_p: Array, codes: np.ndarray, weight: np.ndarray) -> None:
        strengths = self._choose_strength(bias_path, log_p, codes, weight)
        # Only the last steps need be exact, and the way there is shorter by stronger penalties.
        *_, near = bias_path(log_p, codes, weight, strengths, rough=True)
        loss = Likelihood.build(log_p, codes, weight)
        ((slope, self.bias_),) = _walk_biases(loss, near, [self.strength_], _LAST_GAIN)
        self.temperature_ = 1 / slope

    def _fitted_scores(self) -> Tilt:
        return Tilt(1 / float(self.temperature_), np.asarray(self.bias_, dtype=np.float64))


@storable
class BatchCalibration(Peer):
    r"""Divide by the contextual prior, the mean prediction of a batch.

    .. math:: p'_{ij} \propto p_{ij} / \bar p_j^{\,\gamma}, \qquad
              \bar p_j = \frac{1}{n} \sum_i p_{ij}

    For language models whose prompt favours some answers [1]_. It takes the classes to be equally
    frequent, and needs no labels. The mean is that of the rows given to `fit`; as in the paper, it
    is that of the rows to be adjusted with `fit_transform`.

    Parameters
    ----------
    gamma : float, default=1.0
        Strength: 0 changes nothing, 1 is the paper's default.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    contextual_prior_ : ndarray of shape (n_classes,)
        Mean prediction; a class never predicted counts half as much as the least predicted.

    References
    ----------
    .. [1] Zhou, Wan, Proleev, Mincu, Chen, Heller, Roy, "Batch calibration: rethinking calibration
       for in-context learning and prompt engineering", ICLR 2024.

    Examples
    --------
    >>> from altnorm.peers import BatchCalibration
    >>> method = BatchCalibration().fit([[0.9, 0.1], [0.7, 0.3]])
    >>> method.transform([[0.8, 0.2], [0.7, 0.3]]).round(3)
    array([[0.5  , 0.5  ],
           [0.368, 0.632]])
    """

    needs_labels = False

    def __init__(self, *, gamma: float = 1.0, input: str = "proba") -> None:
        self.gamma = gamma
        self.input = input

    def _check_params(self) -> None:
        super()._check_params()
        check_positive(self.gamma, "gamma", zero=True)

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        fields.array("contextual_prior_", "f", (fields.n_classes,), TINY, 1, total=1)

    def _fit(self, log_p: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> None:
        proba = np.exp(log_p.astype(np.float64))
        self.contextual_prior_ = positive(np.average(proba, axis=0, weights=weight))

    def _fitted_scores(self) -> Tilt:
        return Tilt(1.0, -self.gamma * np.log(self.contextual_prior_))


class Tilt(NamedTuple):
    """Scores ``slope * log_p + bias``."""

    slope: float
    bias: np.ndarray  # (m,)

    def scores(self, log_p: Array) -> Array:
        """Scores of rows of log-probabilities; their softmax is the prediction."""
        return self.slope * log_p + self.bias

    def beside(self, log_p: Array) -> Tilt:
        """The same, its constants where the rows are."""
        return self._replace(bias=move(self.bias, log_p))

    def proba(self, log_p: Array) -> Array:
        """Probabilities of rows of log-probabilities."""
        return softmax(self.beside(log_p).scores(log_p))

    def label_log_p(self, log_p: Array, codes: np.ndarray) -> np.ndarray:
        """Log-probability of each row's label; one of probability 0 counts as one of epsilon."""
        eps = float(array_namespace(log_p).finfo(log_p.dtype).eps)
        return np.maximum(label_log_p(self.beside(log_p).scores, log_p, codes), np.log(eps))


def bias_path(
    log_p: Array,
    codes: np.ndarray,
    weight: np.ndarray,
    strengths: Sequence[float],
    *,
    rough: bool = False,
) -> Generator[Tilt, None, None]:
    """Yield the fit at each of the `strengths`, each started from the one before."""
    loss = Likelihood.build(log_p, codes, weight, rough=rough)
    start = Tilt(fit_slope(loss, rough=rough), np.zeros(log_p.shape[1]))
    yield from _walk_biases(loss, start, strengths, _ROUGH_GAIN if rough else _LAST_GAIN)


def _walk_biases(
    loss: Likelihood, start: Tilt, strengths: Sequence[float], gain: float
) -> Generator[Tilt, None, None]:
    """Minimise ``loss + strength / 2 * sum(bias**2)`` over biases and slope, in their ranges."""
    free = np.append(np.ones(start.bias.size), 0.0)
    low, high = (np.where(free, bias, slope) for bias, slope in zip(BIASES, SLOPES, strict=True))

    def evaluate(theta: np.ndarray) -> Point:
        at = np.clip(theta, low, high)
        value, d_slope, d_bias = loss.value_and_grad(float(at[-1]), at[:-1])
        gradient = np.append(d_bias, d_slope)
        outwards = ((at == low) & (gradient > 0)) | ((at == high) & (gradient < 0))
        return Point(at, value, np.where(outwards, 0.0, gradient))

    def penalise(theta: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
        gradient = strength * free * theta
        return 0.5 * float(gradient @ theta), gradient

    def precondition(begin: Point, strength: float) -> Operator:
        by_slope, by_bias = loss.curvature(float(begin.at[-1]), begin.at[:-1])
        tiny = np.finfo(np.float64).eps * max(1.0, by_slope)
        return partial(np.multiply, 1 / np.maximum(np.append(by_bias + strength, by_slope), tiny))

    problem = Penalised(evaluate, penalise, precondition, float(loss.weight.sum()))
    for theta in problem.walk(np.append(start.bias, start.slope), strengths, gain):
        bias = theta[:-1]
        # A constant in all biases cancels in the softmax; of all that fit alike, the mean is 0.
        yield Tilt(float(theta[-1]), bias - bias.mean())
