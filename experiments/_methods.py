"""Methods that a study compares with and that nobody would deploy."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from altnorm.peers import LabelThresholds

__all__ = ["GlobalThreshold", "LabelShiftEM", "reweigh"]


def reweigh(proba: np.ndarray, prior: np.ndarray, source: np.ndarray) -> np.ndarray:
    r"""Replace the class prior `source` that a classifier works with by another.

    .. math:: p'_{ij} \propto p_{ij} \, q_j / s_j

    Bayes' rule makes this exact where the classifier is calibrated under :math:`s` and only the
    prior has changed (Elkan, "The foundations of cost-sensitive learning", IJCAI 2001).
    """
    weighted = proba * (prior / source)
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


class LabelShiftEM(BaseEstimator):
    r"""Estimate the class prior of a batch by expectation maximisation, and adopt it.

    From :math:`\pi = s`, repeat until :math:`\pi` settles [1]_:

    .. math::

        p'_{ij} \propto p_{ij} \, \pi_j / s_j, \qquad \pi_j = \frac{1}{n} \sum_i p'_{ij} .

    This maximises the likelihood of the mixture :math:`\sum_j \pi_j \, p(x_i | j)`, which is
    concave, so there is one answer. It assumes that :math:`p` is calibrated under :math:`s`. The
    same row in another batch gets another answer.

    Parameters
    ----------
    source : {"counted", "predictions"} or ndarray of shape (n_classes,), default="counted"
        The prior that the classifier works with: class frequencies of the validation labels (a
        class without any counts half as much as the rarest), mean prediction, or numbers.
    tol : float, default=1e-6
        Stop when the prior changes by less than this, summed over the classes.
    max_iter : int, default=1000
        Iterations after which to stop anyway, with a ``ConvergenceWarning``.

    References
    ----------
    .. [1] Saerens, Latinne, Decaestecker, "Adjusting the outputs of a classifier to new a priori
       probabilities: a simple procedure", Neural Computation 14, 2002.
    """

    def __init__(
        self, source: str | np.ndarray = "counted", *, tol: float = 1e-6, max_iter: int = 1000
    ) -> None:
        self.source = source
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, proba: np.ndarray, y: np.ndarray | None = None) -> Self:
        """Find the source prior, from class codes or from the predictions."""
        if not isinstance(self.source, str):
            prior = np.asarray(self.source, dtype=float)
        elif self.source == "predictions":
            prior = proba.mean(axis=0, dtype=float)
        else:
            prior = np.bincount(y, minlength=proba.shape[1]).astype(float)
        filled = np.where(prior > 0, prior, prior[prior > 0].min() / 2)
        self.source_ = filled / filled.sum()
        return self

    def estimate_prior(self, proba: np.ndarray) -> np.ndarray:
        """Return the class prior under which the rows are most likely."""
        density = proba / self.source_
        density /= density.max(axis=1, keepdims=True)
        prior = self.source_
        for _ in range(self.max_iter):
            previous, prior = prior, prior * ((1 / (density @ prior)) @ density)
            prior /= prior.sum()  # it sums to 1 but for rounding, which would build up
            if np.abs(prior - previous).sum() <= self.tol:
                return prior
        warnings.warn(
            f"EM has not settled after {self.max_iter} iterations.",
            ConvergenceWarning,
            stacklevel=2,
        )
        return prior

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Adopt the prior of these rows."""
        return reweigh(proba, self.estimate_prior(proba), self.source_)


class GlobalThreshold(BaseEstimator):
    r"""One decision threshold for all labels, the one of highest micro-F1.

    It is the one that :class:`altnorm.peers.LabelThresholds` shrinks to. `transform` moves the
    probabilities so that a decision at 0.5 gives the same answer:
    :math:`\operatorname{logit} p' = \operatorname{logit} p - \operatorname{logit} t`.
    """

    def fit(self, proba: np.ndarray, y: np.ndarray) -> Self:
        """Find the threshold on validation data."""
        self.threshold_: float = LabelThresholds().fit(proba, y).global_threshold_
        return self

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Shift log-odds so that the threshold lands on 0.5."""
        raised = proba * (1 - self.threshold_)
        shifted = raised / (raised + (1 - proba) * self.threshold_)
        # Rounding must not carry a probability next to the threshold to the other side.
        above = np.maximum(shifted, np.nextafter(0.5, 1))
        return np.where(proba > self.threshold_, above, np.minimum(shifted, 0.5))
