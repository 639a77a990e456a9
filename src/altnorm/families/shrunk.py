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
from typing import Any

import numpy as np
from sklearn.utils import Tags

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    is_foreign,
    to_numpy,
)
from altnorm._base.validation import check_choice, check_positive
from altnorm.families.base import FitData, SingleLabelPeer, labels_required, positive, tilt
from altnorm.families.bias import Tilt, fit_bias
from altnorm.families.crossfit import STRENGTHS, path_down_to
from altnorm.families.likelihood import Likelihood, fit_slope
from altnorm.method.reference import class_prior

MEMBERS = ("labels", "prior")
RIDGE_PATH = STRENGTHS


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


def bias_path(
    member: str,
    ridges: Sequence[float],
    log_p: Array,
    codes: np.ndarray,
    weight: np.ndarray,
    prior: np.ndarray,
) -> Iterator[Tilt]:
    """Yield the fit of one member at each of the `ridges`, strongest first, warm-started."""
    shift = np.zeros(log_p.shape[1])
    if member == "prior":
        seen = np.bincount(codes, weight, minlength=shift.size) > 0
        # A class without labels stands in the mean with a sure row of its own, as it does in the
        # reference of alternating normalization: not seen is no reason to favour it.
        mean = _sum_rows(log_p, weight)
        mean += np.where(seen, 0.0, prior * weight.sum())
        shift = np.log(positive(prior)) - np.log(positive(mean))
    eps = float(array_namespace(log_p).finfo(log_p.dtype).eps)
    loss = Likelihood.build(log_p + as_array(shift, log_p), codes, weight, eps)
    state = fit_slope(loss), np.zeros(shift.size)
    for ridge in ridges:
        # An infinite penalty allows no biases: the slope alone is the fit.
        if np.isfinite(ridge):
            state = fit_bias(loss, ridge, state)
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
