r"""Fits to labels that are held back by a penalty: class biases, and a whole matrix.

Bias-corrected temperature scaling (BCTS) fits ``softmax(s log p + b)`` to labels. For a given slope
`s` the labels enter the fit of the biases only through the class counts :math:`n_j`: at the optimum

.. math:: n_j - \sum_i p'_{ij} = \lambda b_j .

Alternating normalization with alpha 1 and all rows as reference, iterated to convergence, solves
the same equation with :math:`\lambda = 0` and the counts replaced by :math:`n q_j`, the prior's.
So the two are ends of one family, and `ShrunkBias` has a member for each. `MatrixScaling` goes
further and lets the score of a class depend on the probabilities of all others, which repairs
confusions of pairs of classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.utils import Tags

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    is_foreign,
    move,
    softmax,
    to_numpy,
)
from altnorm._base.persistence import storable
from altnorm._base.specs import array, declare, number
from altnorm._base.validation import check_choice, check_integer, check_positive
from altnorm.families.base import FitData, SingleLabelPeer, labels_required, positive, tilt
from altnorm.families.device import DeviceLikelihood
from altnorm.families.likelihood import Likelihood, fit_bias, fit_slope, stratified_folds
from altnorm.families.matrix import PENALTIES, Affine, matrix_path
from altnorm.method.reference import class_prior

MEMBERS = ("labels", "prior")
RIDGE_PATH = (256.0, 64.0, 16.0, 4.0, 1.0, 0.25)
"""Penalties to try, strongest first."""


class Tilt(NamedTuple):
    """Scores ``slope * log_p + bias``."""

    slope: float
    bias: np.ndarray

    def scores(self, log_p: Array) -> Array:
        """Scores of rows of log-probabilities; their softmax is the prediction."""
        return self.slope * log_p + move(self.bias, log_p)


@storable
class ShrunkBias(SingleLabelPeer):
    r"""Temperature and class biases, shrunk towards zero or towards what the prior suggests.

    .. math:: p'_{ij} \propto p_{ij}^{1/T} \exp(b_j),

    fitted to labels with the penalty :math:`\frac{\lambda}{2} \sum_j (b_j - w_j / T)^2`. With the
    member "labels" :math:`w = 0` and this is BCTS. With "prior", :math:`w_j` is the log-weight
    of one alternating normalization, the log of the prior over the mean prediction, and labels
    move the biases away from it only as far as they support it.

    Parameters
    ----------
    member : {"labels", "prior"}, default="prior"
        What the biases are shrunk towards.
    ridge : float, default=16.0
        Strength :math:`\lambda` of the penalty; infinity leaves only what needs no labels.
    prior : None, "counted", "uniform", "shrunk" or array of shape (n_classes,), default="shrunk"
        Class prior, as for :class:`~altnorm.AlternatingNormalizer`.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    temperature_ : float
        The temperature.
    bias_ : ndarray of shape (n_classes,)
        The biases; their sum is 0.
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.

    See Also
    --------
    BiasCorrectedTemperature : BCTS, with its reference; chooses its penalty by cross-validation.

    Examples
    --------
    >>> from altnorm.families import ShrunkBias
    >>> proba = [[0.8, 0.2], [0.8, 0.2], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]]
    >>> ShrunkBias().fit(proba, [0, 0, 1, 1, 0, 1]).predict([[0.55, 0.45]])
    array([1])
    """

    any_library = True

    _fitted = declare(temperature_=number(1e-9, 1e9), bias_=array("f", ("m",), -1e9, 1e9))

    def __init__(
        self,
        member: str = "prior",
        ridge: float = 16.0,
        *,
        prior: Any = "shrunk",
        input: str = "proba",
    ) -> None:
        self.member = member
        self.ridge = ridge
        self.prior = prior
        self.input = input

    def _check_params(self) -> None:
        check_choice(self.member, "member", MEMBERS)
        if self.ridge != np.inf:
            check_positive(self.ridge, "ridge")

    def _fit(self, data: FitData) -> None:
        n_classes = data.log_p.shape[1]
        prior = class_prior(data.labels, n_classes, self.prior, sample_weight=data.weight)
        ridges = path_down_to(self.ridge)
        *_, last = bias_path(self.member, ridges, data.log_p, data.labels, data.weight, prior)
        self.temperature_, self.bias_ = 1 / last.slope, last.bias

    def _transform(self, log_p: Array) -> Array:
        return tilt(log_p, slope=1 / self.temperature_, bias=self.bias_)

    def __sklearn_tags__(self) -> Tags:
        return labels_required(super().__sklearn_tags__())


@storable
class MatrixScaling(SingleLabelPeer):
    r"""Matrix scaling: the score of each class is a penalised sum over all log-probabilities.

    .. math:: p'_{i\cdot} = \operatorname{softmax}(s \log p_i + D \bar x_i + b),

    as in [1]_, with :math:`\bar x_i` the log-probabilities, centred and divided by their overall
    spread. Slope, matrix and biases minimise the log-loss on the validation labels plus
    :math:`\frac{\lambda}{2} (\sum_{jl} D_{jl}^2 + \sum_j b_j^2)`. It repairs confusions of pairs of
    classes, which no factor for each class can. Without the penalty it would learn the noise of
    :math:`m^2` entries.

    That penalty expects all entries to be of one size. Often a few pairs of classes are confused,
    and the others are not; ``penalty="cauchy"`` expects that, and finds them with fewer labels. It
    replaces :math:`\frac{\lambda}{2} \sum_{jl} D_{jl}^2` by

    .. math:: \sum_{jl} \log\Bigl(1 + \frac{\lambda}{2} \delta_{jl}^2\Bigr),

    with :math:`\delta_{jl} = D_{jl}` off the diagonal and :math:`\delta_{jj}` the sum of row
    :math:`j`: the same for small entries, and little more for large ones than for medium ones.

    Parameters
    ----------
    ridge : float or "cv", default="cv"
        Strength :math:`\lambda` of the penalty. With "cv" it is the one of least cross-validated
        log-loss among 256, 64, 16, 4, 1 and 0.25; of equally good ones the strongest.
    penalty : {"ridge", "cauchy"}, default="ridge"
        Whether many entries of the matrix are expected to matter, or few.
    cv : int, default=5
        Number of folds for ``ridge="cv"``, dealt as by `BiasCorrectedTemperature`.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_classes, n_classes)
        Weight of each log-probability (columns) in the score of each class (rows), slope included.
    bias_ : ndarray of shape (n_classes,)
        Constants of the scores.
    ridge_ : float
        The strength used.
    floor_ : float
        Smaller log-probabilities count as this one. So a class of probability 0 can get a positive
        one.
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017; with
       a ridge penalty: Kull et al., "Beyond temperature scaling", NeurIPS 2019.

    Examples
    --------
    Class 2 is mistaken for class 1 whenever class 0 is improbable:

    >>> import numpy as np
    >>> from altnorm.families import MatrixScaling
    >>> proba = np.array([[0.4, 0.5, 0.1], [0.1, 0.5, 0.4]] * 20)
    >>> scaling = MatrixScaling(ridge=1.0).fit(proba, [1, 2] * 20)
    >>> scaling.predict(proba[:2])
    array([1, 2])
    """

    any_library = True

    _fitted = declare(
        matrix_=array("f", ("m", "m"), -1e9, 1e9),
        bias_=array("f", ("m",), -1e9, 1e9),
        ridge_=number(0, 1e300, above=True),
        floor_=number(-1e3, 0),
    )

    def __init__(
        self,
        ridge: float | str = "cv",
        *,
        penalty: str = "ridge",
        cv: int = 5,
        input: str = "proba",
    ) -> None:
        self.ridge = ridge
        self.penalty = penalty
        self.cv = cv
        self.input = input

    def _check_params(self) -> None:
        if isinstance(self.ridge, str):
            check_choice(self.ridge, "ridge", ("cv",))
        else:
            check_positive(self.ridge, "ridge")
        check_choice(self.penalty, "penalty", tuple(PENALTIES))
        check_integer(self.cv, "cv", low=2)

    def _fit(self, data: FitData) -> None:
        data = data._replace(log_p=to_numpy(data.log_p))
        self.ridge_ = self._best_ridge(data) if isinstance(self.ridge, str) else self.ridge
        ridges = path_down_to(self.ridge_)
        *_, last = matrix_path(data.log_p, data.labels, data.weight, ridges, self.penalty)
        self.matrix_, self.bias_, self.floor_ = last

    def _best_ridge(self, data: FitData) -> float:
        folds = stratified_folds(data.labels, min(self.cv, data.labels.size))
        loss = np.zeros(len(RIDGE_PATH))
        for k in range(folds.max() + 1):
            test = folds == k
            known = data.log_p[~test], data.labels[~test], data.weight[~test]
            for i, fit in enumerate(matrix_path(*known, RIDGE_PATH, self.penalty)):
                log_p = log_softmax(fit.scores(data.log_p[test]), axis=1)
                # Sums, not means: folds differ in size, and every row is to count once.
                loss[i] -= data.weight[test] @ log_p[np.arange(test.sum()), data.labels[test]]
        return float(RIDGE_PATH[int(loss.argmin())])

    def _transform(self, log_p: Array) -> Array:
        scores = Affine(self.matrix_, self.bias_, self.floor_).scores(log_p)
        return array_namespace(log_p).astype(softmax(scores), log_p.dtype, copy=False)

    def __sklearn_tags__(self) -> Tags:
        return labels_required(super().__sklearn_tags__())


def path_down_to(ridge: float) -> list[float]:
    """Penalties on the way to `ridge`, strongest first: each fit starts from the one before."""
    return [strength for strength in RIDGE_PATH if strength > ridge] + [ridge]


def bias_path(
    member: str,
    ridges: Sequence[float],
    log_p: Array,
    codes: np.ndarray,
    weight: np.ndarray,
    prior: np.ndarray,
) -> Iterator[Tilt]:
    """Yield the fit of one member at each of the `ridges`, strongest first, warm-started.

    The memory of `log_p` is used: where classes are many, a copy is large.
    """
    shift = np.zeros(log_p.shape[1])
    if member == "prior":
        seen = np.bincount(codes, weight, minlength=shift.size) > 0
        # A class without labels stands in the mean with a sure row of its own, as it does in the
        # reference of alternating normalization: not seen is no reason to favour it.
        mean = _sum_rows(log_p, weight)
        mean += np.where(seen, 0.0, prior * weight.sum())
        shift = np.log(positive(prior)) - np.log(positive(mean))
    loss = _likelihood(log_p, codes, weight, shift)
    state = fit_slope(loss), np.zeros(shift.size)
    for ridge in ridges:
        # An infinite penalty allows no biases: the slope alone is the fit.
        if np.isfinite(ridge):
            state = fit_bias(loss, ridge, state, tol=1e-3)
        slope, bias = state
        total = slope * shift + bias
        yield Tilt(slope, total - total.mean())


def _sum_rows(log_p: Array, weight: np.ndarray) -> np.ndarray:
    """Weighted sum of the probabilities of each class."""
    xp, total = array_namespace(log_p), np.zeros(log_p.shape[1])
    for rows in block_slices(weight.size, 16 * total.size, log_p, cached=True):
        p, some = xp.exp(log_p[rows, :]), weight[rows]
        total += to_numpy(as_array(some, p) @ p) if is_foreign(p) else some @ p
    return total


def _likelihood(
    log_p: Array, codes: np.ndarray, weight: np.ndarray, shift: np.ndarray
) -> Likelihood | DeviceLikelihood:
    """Likelihood of rows to which `shift` is added, in their own memory if they are NumPy's."""
    eps = float(array_namespace(log_p).finfo(log_p.dtype).eps)
    if is_foreign(log_p):
        return DeviceLikelihood.build(log_p, codes, weight, eps, shift=shift)
    return Likelihood.build(log_p, codes, weight, eps, shift=shift, overwrite=True)
