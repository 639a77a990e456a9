"""Peers that multiply each class by a ratio of priors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from altnorm._base.errors import warn
from altnorm._base.validation import check_choice, check_integer, check_positive
from altnorm.families.base import (
    FitData,
    SingleLabelPeer,
    mean_proba,
    positive,
    source_prior,
    tilt,
)
from altnorm.families.temperature import BiasCorrectedTemperature
from altnorm.method.reference import class_prior


class PriorReweighting(SingleLabelPeer):
    r"""Replace the class prior that the classifier works with by the one that holds.

    .. math:: p'_{ij} \propto p_{ij} \, q_j / s_j

    with the target prior :math:`q` and the source prior :math:`s`. Bayes' rule makes this exact
    when the classifier is calibrated under :math:`s` and only the prior has changed [1]_.

    Parameters
    ----------
    prior : None, "counted", "uniform", "shrunk" or array-like of shape (n_classes,), default=None
        The target prior, as for :class:`~altnorm.AlternatingNormalizer`: None counts the class
        frequencies of `y`, and is uniform if there is no `y`.
    source_prior : "predictions" or as `prior`, default="predictions"
        The source prior, for example the class frequencies of the training data. "predictions"
        takes the mean predicted probability on the validation set.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    prior_, source_prior_ : ndarray of shape (n_classes,)
        The two priors; each sums to 1.

    Notes
    -----
    A class that `y` lacks, or whose source prior is 0, counts half as much as the smallest
    positive entry: not seen is not impossible. Zeros in an array passed as `prior` are taken at
    their word, and a row that would be left without any class is returned as it was, with a
    warning.

    References
    ----------
    .. [1] Elkan, "The foundations of cost-sensitive learning", IJCAI 2001, theorem 2.

    Examples
    --------
    >>> from altnorm.families import PriorReweighting
    >>> method = PriorReweighting("uniform", source_prior=[0.8, 0.2]).fit([[0.8, 0.2]])
    >>> method.transform([[0.8, 0.2], [0.5, 0.5]]).round(3)
    array([[0.5, 0.5],
           [0.2, 0.8]])
    """

    def __init__(
        self, prior: Any = None, *, source_prior: Any = "predictions", input: str = "proba"
    ) -> None:
        self.prior = prior
        self.source_prior = source_prior
        self.input = input

    def _fit(self, data: FitData) -> None:
        n_classes = self.classes_.size
        prior = class_prior(data.codes, n_classes, self.prior, sample_weight=data.weight)
        # Zeros that were passed are meant; those that were counted only say "not seen".
        given = self.prior is not None and not isinstance(self.prior, str)
        self.prior_ = prior if given else positive(prior)
        self.source_prior_ = source_prior(self.source_prior, data, n_classes)

    def _transform(self, log_p: np.ndarray) -> np.ndarray:
        return tilt(log_p, bias=_log_ratio(self.prior_, self.source_prior_))


class LabelShiftEM(SingleLabelPeer):
    r"""Estimate the class prior of the batch by expectation maximisation and adopt it.

    From :math:`\pi = s`, repeat until :math:`\pi` settles [1]_:

    .. math::

        p'_{ij} \propto p_{ij} \, \pi_j / s_j, \qquad \pi_j = \frac{1}{n} \sum_i p'_{ij} .

    This maximises the likelihood of the mixture :math:`\sum_j \pi_j \, p(x_i | j)`, which is
    concave, so there is one answer. It assumes that :math:`p` is calibrated under the source prior
    :math:`s`, so rows are calibrated first, by `BiasCorrectedTemperature` [2]_. Without that, and
    wherever the balance has not changed at all, it can do much harm; ``Adjuster.adapt`` asks first.

    **The result depends on the batch.** Unlike its companions this method looks at all rows
    passed to `transform` together: the same row in another batch gets another answer, and a batch
    of few rows, or of one, a poor estimate. No labels of the batch are used.

    Parameters
    ----------
    source_prior : None, "predictions" or as `prior` of `PriorReweighting`, default=None
        The prior that the classifier works with: class frequencies of the validation labels,
        mean (calibrated) prediction on the validation set, or numbers. None is the mean
        prediction where rows are calibrated, and class frequencies where they are not.
    calibrate : bool, default=True
        Whether to calibrate rows first; False is the method of 2002, the bare one.
    tol : float, default=1e-6
        Stop when the prior changes by less than this, summed over the classes.
    max_iter : int, default=1000
        Iterations after which to stop anyway, with a ``ConvergenceWarning``.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    source_prior_ : ndarray of shape (n_classes,)
        The source prior; a class without evidence counts as in `PriorReweighting`.
    temperature_ : float
        The temperature of the calibration; 1 without one.
    bias_ : ndarray of shape (n_classes,)
        The biases of the calibration; 0 without one.

    References
    ----------
    .. [1] Saerens, Latinne, Decaestecker, "Adjusting the outputs of a classifier to new a priori
       probabilities: a simple procedure", Neural Computation 14, 2002.
    .. [2] Alexandari, Kundaje, Shrikumar, "Maximum likelihood with bias-corrected calibration is
       hard-to-beat at label shift adaptation", ICML 2020.

    Examples
    --------
    >>> from altnorm.families import LabelShiftEM
    >>> method = LabelShiftEM(calibrate=False).fit([[0.9, 0.1], [0.1, 0.9]], [0, 1])
    >>> batch = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]
    >>> method.estimate_prior(batch).round(3)
    array([0.812, 0.188])
    """

    def __init__(
        self,
        source_prior: Any = None,
        *,
        calibrate: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        input: str = "proba",
    ) -> None:
        self.source_prior = source_prior
        self.calibrate = calibrate
        self.tol = tol
        self.max_iter = max_iter
        self.input = input

    def _check_params(self) -> None:
        check_positive(self.tol, "tol", zero=True)
        check_integer(self.max_iter, "max_iter", low=1)

    def _fit(self, data: FitData) -> None:
        self.temperature_, self.bias_ = 1.0, np.zeros(self.classes_.size)
        if self.calibrate:
            bcts = BiasCorrectedTemperature(input="logits")
            # It refuses infinite logits; the smallest positive number is as good as zero.
            bcts.fit(
                data.log_p.clip(np.log(np.finfo(data.log_p.dtype).tiny)), data.labels, data.weight
            )
            self.temperature_, self.bias_ = bcts.temperature_, bcts.bias_
        prior = self.source_prior
        if prior is None:
            prior = "predictions" if self.calibrate else "counted"
        calibrated = data._replace(log_p=self._calibrated(data.log_p))
        self.source_prior_ = source_prior(prior, calibrated, self.classes_.size)

    def _calibrated(self, log_p: np.ndarray) -> np.ndarray:
        if not self.calibrate:
            return log_p
        scores = log_p / self.temperature_ + self.bias_
        return np.asarray(log_softmax(scores, axis=1), dtype=log_p.dtype)

    def estimate_prior(self, proba: Any) -> np.ndarray:
        """Return the class prior of a batch, the maximum-likelihood estimate.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            A batch, as `transform` takes it.

        Returns
        -------
        ndarray of shape (n_classes,)
            The prior; it sums to 1.
        """
        return self._estimate(self._calibrated(self._check_transform(proba)))

    def _estimate(self, log_p: np.ndarray) -> np.ndarray:
        return mixture_weights(
            log_p.astype(np.float64) - np.log(self.source_prior_),
            start=self.source_prior_,
            tol=self.tol,
            max_iter=self.max_iter,
        )

    def _transform(self, log_p: np.ndarray) -> np.ndarray:
        log_p = self._calibrated(log_p)
        return tilt(log_p, bias=_log_ratio(self._estimate(log_p), self.source_prior_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        counted = self.source_prior is None or (
            isinstance(self.source_prior, str) and self.source_prior == "counted"
        )
        tags.target_tags.required = self.calibrate or counted
        return tags


class BatchCalibration(SingleLabelPeer):
    r"""Divide by the contextual prior, the mean prediction of a batch.

    .. math:: p'_{ij} \propto p_{ij} / \bar p_j^{\,\gamma}, \qquad
              \bar p_j = \frac{1}{n} \sum_i p_{ij}

    Made for language models whose prompt favours some answers [1]_; it takes the classes to be
    equally frequent and needs no labels.

    Parameters
    ----------
    batch : {"fit", "transform"}, default="fit"
        Whose mean: that of the validation set, or of the rows passed to `transform`. In the
        second case, the paper's, **the result depends on the batch**.
    gamma : float, default=1.0
        Strength, 0 or greater: 0 changes nothing, 1 is the paper's default.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    contextual_prior_ : ndarray of shape (n_classes,)
        Mean prediction on the validation set; a class never predicted there counts as in
        `PriorReweighting`.

    References
    ----------
    .. [1] Zhou, Wan, Proleev, Mincu, Chen, Heller, Roy, "Batch calibration: rethinking calibration
       for in-context learning and prompt engineering", ICLR 2024.

    Examples
    --------
    >>> from altnorm.families import BatchCalibration
    >>> method = BatchCalibration().fit([[0.9, 0.1], [0.7, 0.3]])
    >>> method.transform([[0.8, 0.2], [0.7, 0.3]]).round(3)
    array([[0.5  , 0.5  ],
           [0.368, 0.632]])
    """

    def __init__(self, batch: str = "fit", *, gamma: float = 1.0, input: str = "proba") -> None:
        self.batch = batch
        self.gamma = gamma
        self.input = input

    def _check_params(self) -> None:
        check_choice(self.batch, "batch", ("fit", "transform"))
        check_positive(self.gamma, "gamma", zero=True)

    def _fit(self, data: FitData) -> None:
        self.contextual_prior_ = mean_proba(data.log_p, data.weight)

    def _transform(self, log_p: np.ndarray) -> np.ndarray:
        prior = self.contextual_prior_ if self.batch == "fit" else mean_proba(log_p)
        return tilt(log_p, bias=-self.gamma * np.log(prior))


def mixture_weights(
    log_density: np.ndarray, *, start: np.ndarray, tol: float, max_iter: int
) -> np.ndarray:
    """Return the proportions under which a mixture of known densities is most likely, by EM."""
    # EM needs densities up to a factor per row: the largest is made 1, so that none overflows.
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    weights = start
    for _ in range(max_iter):
        previous, weights = weights, _em_step(density, weights)
        change = np.abs(weights - previous).sum()
        if change <= tol:
            return weights
    message = (
        f"EM has not settled after {max_iter} iterations: the prior still changes by "
        f"{change:.3g}, more than tol={tol:g}. Raise max_iter or tol."
    )
    warn(ConvergenceWarning(message))
    return weights


def _em_step(density: np.ndarray, weights: np.ndarray) -> np.ndarray:
    per_row = 1 / (density @ weights)
    updated = weights * (per_row @ density)
    # They sum to 1 but for rounding, which would build up over the steps.
    return updated / updated.sum()


def _log_ratio(prior: np.ndarray, source: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(prior) - np.log(source)
