r"""A temperature and one bias a class, guided by labels and by the class prior.

Bias-corrected temperature scaling (BCTS) fits ``softmax(s log p + d)`` to labels. For a given
slope `s` the labels enter the fit of the biases only through the class counts :math:`n_j`: at the
optimum

.. math:: n_j - \sum_i p'_{ij} = \lambda d_j .

Alternating normalization with alpha 1 and all rows as reference, iterated to convergence, solves
the same equation with :math:`\lambda = 0` and the counts replaced by :math:`n q_j`, the prior's.
So the two are ends of one family, and where labels are few the better end is the one that counts
less. Three members are fitted along a path of ridge penalties:

- *labels*: BCTS, biases shrunk towards zero;
- *can*: ``softmax(s (log p + w) + d)``, biases shrunk towards the log-weights of one alternating
  normalization, ``w_j = log(q_j / sum_i p_ij)``, and fitted only as far as the labels support it;
- *prior*: as *labels*, with the counts replaced by those of the shrunk prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Tags

from altnorm.peers._base import LogProbabilityTransformer, positive, tilt
from altnorm.peers._likelihood import Likelihood, fit_bias, fit_slope
from altnorm.reference import class_prior

__all__ = ["RIDGES", "BiasCrossFit", "BiasSetting", "PriorGuidedBias", "best_bias"]

MEMBERS = ("labels", "can", "prior")
RIDGES = (np.inf, 512.0, 128.0, 32.0, 8.0, 2.0, 0.5, 0.1)


class BiasSetting(NamedTuple):
    """A member of the family and the strength of its penalty."""

    member: str
    ridge: float


class PriorGuidedBias(LogProbabilityTransformer):
    r"""Temperature and class biases, shrunk towards what the class prior suggests.

    .. math:: p'_{ij} \propto p_{ij}^{1/T} \exp(b_j) .

    See :mod:`altnorm.refine` for the family. ``AlternatingNormalizerCV(refine=True)`` chooses the
    member and the penalty.

    Parameters
    ----------
    member : {"labels", "can", "prior"}, default="can"
        What the biases are shrunk towards and which counts they aim at.
    ridge : float, default=8.0
        Strength of the penalty; infinity leaves only what needs no labels.
    prior : None, "counted", "uniform", "shrunk" or array of shape (n_classes,), default="shrunk"
        Class prior, as for :class:`~altnorm.AlternatingNormalizer`.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    temperature_ : float
        The temperature.
    bias_ : ndarray of shape (n_classes,)
        The biases.
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.

    Examples
    --------
    >>> from altnorm.refine import PriorGuidedBias
    >>> proba = [[0.8, 0.2], [0.8, 0.2], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]]
    >>> PriorGuidedBias().fit(proba, [0, 0, 1, 1, 0, 1]).predict([[0.55, 0.45]])
    array([1])
    """

    def __init__(
        self,
        member: str = "can",
        ridge: float = 8.0,
        *,
        prior: Any = "shrunk",
        input: str = "proba",
    ) -> None:
        self.member = member
        self.ridge = ridge
        self.prior = prior
        self.input = input

    def fit(self, proba: Any, y: Any, sample_weight: Any = None) -> PriorGuidedBias:
        """Fit temperature and biases.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Validation predictions.
        y : array-like of shape (n_samples,)
            Validation labels; classes may be missing.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        self : PriorGuidedBias
            The fitted transformer.
        """
        data = self._read_fit(proba, y, sample_weight)
        n_classes = data.log_p.shape[1]
        prior = class_prior(data.labels, n_classes, self.prior, sample_weight=data.weight)
        ridges = [ridge for ridge in RIDGES if ridge > self.ridge] + [self.ridge]
        path = bias_path(self.member, ridges, data.log_p, data.labels, data.weight, prior)
        slope, self.bias_ = path[-1]
        self.temperature_ = 1 / slope
        return self

    def _transform(self, log_p: np.ndarray) -> np.ndarray:
        return tilt(log_p, slope=1 / self.temperature_, bias=self.bias_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def bias_path(
    member: str,
    ridges: Any,
    log_p: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    prior: np.ndarray,
) -> list[tuple[float, np.ndarray]]:
    """Slope and bias of one member for each of the `ridges`, strongest first, warm-started."""
    prior = positive(np.asarray(prior, dtype=np.float64))
    shift = np.zeros(prior.size)
    if member == "can":
        shift = np.log(prior) - np.log(positive(weight @ np.exp(log_p)))
    eps = float(np.finfo(log_p.dtype).eps)
    loss = Likelihood.build(log_p + shift, codes, weight, eps)
    if member == "prior":
        loss = replace(loss, target=prior * loss.weight.sum())
    state = fit_slope(loss), np.zeros(prior.size)
    path = []
    for ridge in ridges:
        if np.isfinite(ridge):
            state = fit_bias(loss, ridge, state, tol=1e-3)
        slope, bias = state
        total = slope * shift + bias
        path.append((slope, total - total.mean()))
    return path


class BiasCrossFit:
    """Cross-fitted fits of the whole family.

    Parameters
    ----------
    log_p : ndarray of shape (n, m)
        Log-probabilities.
    codes : ndarray of shape (n,)
        Class codes.
    weight : ndarray of shape (n,)
        Weights of the rows.
    folds : ndarray of shape (n,)
        Fold of each row.
    priors : sequence of ndarray of shape (m,)
        Prior for each fold, counted outside of it.

    Attributes
    ----------
    settings : list of BiasSetting
        The family, milder penalties last.
    log_likelihood : ndarray of shape (n_settings, n_folds)
        Total log-likelihood of the labels of each fold under the fit without it.
    """

    def __init__(
        self,
        log_p: np.ndarray,
        codes: np.ndarray,
        weight: np.ndarray,
        folds: np.ndarray,
        priors: Any,
    ) -> None:
        self.log_p, self.folds = log_p, folds
        self.settings = [BiasSetting(member, ridge) for member in MEMBERS for ridge in RIDGES]
        self.fits = [
            [
                fit
                for member in MEMBERS
                for fit in bias_path(
                    member, RIDGES, log_p[folds != k], codes[folds != k], weight[folds != k], prior
                )
            ]
            for k, prior in enumerate(priors)
        ]
        self.log_likelihood = np.empty((len(self.settings), len(self.fits)))
        for k, fits in enumerate(self.fits):
            inside = folds == k
            eps = float(np.finfo(log_p.dtype).eps)
            held_out = Likelihood.build(log_p[inside], codes[inside], weight[inside], eps)
            self.log_likelihood[:, k] = [-held_out.value_and_grad(*fit)[0] for fit in fits]

    def best_without(self, fold: int) -> int:
        """Index of the setting with the largest likelihood outside a fold."""
        outside = self.log_likelihood.sum(axis=1) - self.log_likelihood[:, fold]
        return int(np.argmax(outside))

    def nested(self) -> np.ndarray:
        """Apply to each fold the fit, without it, of the setting that is best on the others."""
        after = np.empty_like(self.log_p)
        for k, fits in enumerate(self.fits):
            slope, bias = fits[self.best_without(k)]
            after[self.folds == k] = tilt(self.log_p[self.folds == k], slope=slope, bias=bias)
        return after


def best_bias(crossfits: Sequence[BiasCrossFit]) -> BiasSetting:
    """Return the setting with the largest cross-fitted likelihood over all repeats."""
    total = sum(one.log_likelihood.sum(axis=1) for one in crossfits)
    return crossfits[0].settings[int(np.argmax(total))]
