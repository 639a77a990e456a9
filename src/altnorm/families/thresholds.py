"""A tuned decision threshold for each of several labels per row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from altnorm._base.persistence import storable
from altnorm._base.specs import array, declare, number
from altnorm._base.validation import check_positive
from altnorm.families.base import MultilabelPeer
from altnorm.families.f1 import best_threshold, f1_at, levels, shift_threshold


class _MultilabelData(NamedTuple):
    p: np.ndarray
    y: np.ndarray  # 0/1, one column per label
    weight: np.ndarray


@storable
class LabelThresholds(MultilabelPeer[_MultilabelData]):
    r"""A decision threshold for each label, shrunk towards a common one where labels are rare.

    .. math::

        \operatorname{logit} t_j = \lambda_j \operatorname{logit} \hat t_j
        + (1 - \lambda_j) \operatorname{logit} t, \qquad \lambda_j = \frac{n_j}{n_j + \kappa}

    where :math:`\hat t_j` maximises the F1 of label j on the validation set (exactly: all values
    that F1 can take are looked at [1]_), :math:`t` maximises micro-F1 over all labels, :math:`n_j`
    is the number (weight) of validation rows that have label j, and :math:`\kappa` is `shrinkage`.
    A label without validation rows takes the common threshold. Per-label maximisers are erratic for
    rare labels: one positive row alone would set the threshold just below its own probability.

    `predict` gives the labels above their thresholds; `transform` moves the probabilities so that a
    decision at 0.5 gives the same answer,

    .. math:: \operatorname{logit} p'_{ij} = \operatorname{logit} p_{ij} - \operatorname{logit} t_j

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
        The common threshold: midway between two validation probabilities; of equally good ones the
        one below the probability nearest to 0.5; 0.5 if the validation set has no label at all.

    References
    ----------
    .. [1] Lipton, Elkan, Naryanaswamy, "Optimal thresholding of classifiers to maximize F1
       measure", ECML PKDD 2014.

    Examples
    --------
    >>> from altnorm.families import LabelThresholds
    >>> proba = [[0.5, 0.9], [0.1, 0.7], [0.3, 0.2]]
    >>> method = LabelThresholds(shrinkage=0).fit(proba, [[1, 1], [0, 0], [1, 0]])
    >>> method.thresholds_
    array([0.2, 0.8])
    """

    _fitted = declare(global_threshold_=number(0, 1), thresholds_=array("f", ("m",), 0, 1))

    def __init__(self, shrinkage: float = 10.0, *, input: str = "proba") -> None:
        self.shrinkage = shrinkage
        self.input = input

    def _check_params(self) -> None:
        check_positive(self.shrinkage, "shrinkage", zero=True)

    def _fit(self, data: _MultilabelData) -> None:
        every = np.repeat(data.weight, data.p.shape[1])
        self.global_threshold_ = _best_threshold(data.p.ravel(), data.y.ravel(), every)
        columns = zip(data.p.T, data.y.T, strict=True)
        own = np.array([_best_threshold(p, y, data.weight) for p, y in columns])
        n_positive = data.weight @ data.y
        common = np.full(own.size, self.global_threshold_)
        self.thresholds_ = _shrink(own, common, n_positive, float(self.shrinkage))

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

    def _cut(self, dtype: np.dtype) -> np.ndarray:
        # Fitted in double precision, a threshold next to 0 or 1 may round to it in single.
        below_one = np.nextafter(dtype.type(1), dtype.type(0))
        fitted = np.asarray(self.thresholds_, dtype=dtype)
        return np.clip(fitted, np.finfo(dtype).tiny, below_one)

    def _read_fit(self, proba: Any, y: Any, sample_weight: Any) -> _MultilabelData:
        return _MultilabelData(*self._read_rows(proba, y, sample_weight))


def _shrink(own: np.ndarray, common: np.ndarray, n: np.ndarray, shrinkage: float) -> np.ndarray:
    trust = np.divide(n, n + shrinkage, out=np.zeros_like(n), where=n > 0)
    blended = expit(trust * logit(own) + (1 - trust) * logit(common))
    # The two ends are returned as they are: logit and back would round them.
    return np.select([trust == 1, trust == 0], [own, common], blended)


def _best_threshold(p: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    level = levels(p, y)
    return best_threshold(p, level, f1_at(p, y, weight, level))
