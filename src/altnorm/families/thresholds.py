"""Peers for several labels per row: tuned decision thresholds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from altnorm._base.validation import check_choice, check_positive
from altnorm.families.base import MultilabelPeer
from altnorm.families.f1 import (
    best_threshold,
    f1_at,
    f1_gains,
    levels,
    shift_threshold,
    sum_from,
)


class _MultilabelData(NamedTuple):
    p: np.ndarray
    y: np.ndarray  # 0/1, one column per label
    weight: np.ndarray


class _ThresholdTransformer(MultilabelPeer[_MultilabelData]):
    """Base of the two: independent probabilities in, decisions against thresholds out."""

    def predict(self, proba: Any) -> np.ndarray:
        """Return the labels whose probability exceeds their threshold.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_labels)
            Independent label probabilities, columns as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            1 where the label is assigned, else 0.
        """
        p = self._check_transform(proba)
        return (p > self._cut(p.dtype)).astype(int)

    def _transform(self, proba: np.ndarray) -> np.ndarray:
        return shift_threshold(proba, self._cut(proba.dtype))

    def _fitted_thresholds(self) -> Any:
        raise NotImplementedError

    def _cut(self, dtype: np.dtype) -> np.ndarray:
        # Fitted in double precision, a threshold next to 0 or 1 may round to it in single.
        below_one = np.nextafter(dtype.type(1), dtype.type(0))
        fitted = np.asarray(self._fitted_thresholds(), dtype=dtype)
        return np.clip(fitted, np.finfo(dtype).tiny, below_one)

    def _read_fit(self, proba: Any, y: Any, sample_weight: Any) -> _MultilabelData:
        return _MultilabelData(*self._read_rows(proba, y, sample_weight))


class GlobalThreshold(_ThresholdTransformer):
    r"""One decision threshold for all labels, tuned for F1 on the validation set.

    A label is assigned where its probability exceeds the threshold :math:`t` of highest F1. The
    maximum is exact: all values that F1 can take are looked at. `transform` moves the
    probabilities so that a decision at 0.5 gives the same answer,

    .. math:: \operatorname{logit} p'_{ij} = \operatorname{logit} p_{ij} - \operatorname{logit} t .

    Parameters
    ----------
    scoring : {"f1_micro", "f1_macro", "f1_samples"}, default="f1_micro"
        What to maximise: F1 over all decisions, its mean over labels, or its mean over rows. As
        in scikit-learn, a label (or row) with nothing to find contributes 0.
    input : {"proba", "logits"}, default="proba"
        What the columns hold: independent probabilities, or their log-odds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The label each column stands for.
    threshold_ : float
        The threshold: midway between two validation probabilities; of equally good ones the one
        below the probability nearest to 0.5; 0.5 if the validation set has no label at all.

    See Also
    --------
    LabelThresholds : One threshold for each label.

    References
    ----------
    .. [1] Lipton, Elkan, Naryanaswamy, "Optimal thresholding of classifiers to maximize F1
       measure", ECML PKDD 2014.

    Examples
    --------
    >>> from altnorm.families import GlobalThreshold
    >>> method = GlobalThreshold().fit([[0.5, 0.3], [0.1, 0.2]], [[1, 1], [0, 0]])
    >>> method.threshold_
    0.25
    >>> method.predict([[0.4, 0.2]])
    array([[1, 0]])
    >>> method.transform([[0.4, 0.2]]).round(3)
    array([[0.667, 0.429]])
    """

    def __init__(self, scoring: str = "f1_micro", *, input: str = "proba") -> None:
        self.scoring = scoring
        self.input = input

    def _check_params(self) -> None:
        check_choice(self.scoring, "scoring", ("f1_micro", "f1_macro", "f1_samples"))

    def _fit(self, data: _MultilabelData) -> None:
        self.threshold_ = _common_threshold(data, self.scoring)

    def _fitted_thresholds(self) -> float:
        return self.threshold_


class LabelThresholds(_ThresholdTransformer):
    r"""A decision threshold for each label, shrunk towards a common one where labels are rare.

    .. math::

        \operatorname{logit} t_j = \lambda_j \operatorname{logit} \hat t_j
        + (1 - \lambda_j) \operatorname{logit} t, \qquad \lambda_j = \frac{n_j}{n_j + \kappa}

    where :math:`\hat t_j` maximises the F1 of label j on the validation set (exactly, as in
    `GlobalThreshold`), :math:`t` maximises micro-F1 over all labels, :math:`n_j` is the number
    (weight) of validation rows that have label j, and :math:`\kappa` is `shrinkage`. A label
    without validation rows takes the common threshold. Per-label maximisers are erratic for rare
    labels: one positive row alone would set the threshold just below its own probability.

    Parameters
    ----------
    shrinkage : float, default=10.0
        Number of positive rows at which a label's own threshold and the common one count equally;
        0 shrinks nothing.
    input : {"proba", "logits"}, default="proba"
        What the columns hold: independent probabilities, or their log-odds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The label each column stands for.
    thresholds_ : ndarray of shape (n_labels,)
        The threshold of each label.
    global_threshold_ : float
        The common threshold.

    See Also
    --------
    GlobalThreshold : One threshold for all labels; it gives the formula of `transform`, and the
        reference.

    Examples
    --------
    >>> from altnorm.families import LabelThresholds
    >>> proba = [[0.5, 0.9], [0.1, 0.7], [0.3, 0.2]]
    >>> method = LabelThresholds(shrinkage=0).fit(proba, [[1, 1], [0, 0], [1, 0]])
    >>> method.thresholds_
    array([0.2, 0.8])
    """

    def __init__(self, shrinkage: float = 10.0, *, input: str = "proba") -> None:
        self.shrinkage = shrinkage
        self.input = input

    def _check_params(self) -> None:
        check_positive(self.shrinkage, "shrinkage", zero=True)

    def _fit(self, data: _MultilabelData) -> None:
        self.global_threshold_ = _common_threshold(data, "f1_micro")
        columns = zip(data.p.T, data.y.T, strict=True)
        own = np.array([_label_threshold(p, y, data.weight) for p, y in columns])
        n_positive = data.weight @ data.y
        common = np.full(own.size, self.global_threshold_)
        self.thresholds_ = _shrink(own, common, n_positive, float(self.shrinkage))

    def _fitted_thresholds(self) -> np.ndarray:
        return self.thresholds_


def _shrink(own: np.ndarray, common: np.ndarray, n: np.ndarray, shrinkage: float) -> np.ndarray:
    trust = np.divide(n, n + shrinkage, out=np.zeros_like(n), where=n > 0)
    blended = expit(trust * logit(own) + (1 - trust) * logit(common))
    # The two ends are returned as they are: logit and back would round them.
    return np.select([trust == 1, trust == 0], [own, common], blended)


def _micro(data: _MultilabelData, level: np.ndarray) -> np.ndarray:
    weight = np.repeat(data.weight, data.p.shape[1])
    return f1_at(data.p.ravel(), data.y.ravel(), weight, level)


def _macro(data: _MultilabelData, level: np.ndarray) -> np.ndarray:
    columns = zip(data.p.T, data.y.T, strict=True)
    gains = np.stack([f1_gains(p, y, data.weight) for p, y in columns], axis=1)
    return sum_from(data.p.ravel(), level, gains.ravel())


def _samples(data: _MultilabelData, level: np.ndarray) -> np.ndarray:
    ones = np.ones(data.p.shape[1])
    rows = [f1_gains(p, y, ones) for p, y in zip(data.p, data.y, strict=True)]
    gains = np.stack(rows) * data.weight[:, None]
    return sum_from(data.p.ravel(), level, gains.ravel())


# Each gives the score, up to a factor, with one threshold for all labels just below each level.
_SCORES = {"f1_micro": _micro, "f1_macro": _macro, "f1_samples": _samples}


def _common_threshold(data: _MultilabelData, scoring: str) -> float:
    level = levels(data.p, data.y)
    return best_threshold(data.p, level, _SCORES[scoring](data, level))


def _label_threshold(p: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    level = levels(p, y)
    return best_threshold(p, level, f1_at(p, y, weight, level))
