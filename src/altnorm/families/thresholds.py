"""A tuned decision threshold for each of several labels per row.

Thresholds maximise F1 exactly instead of on a grid. With row weights w, labels y and probabilities
p, deciding ``p > t`` gives

    F1(t) = 2 tp(t) / (predicted(t) + actual),    tp = sum w y [p > t],  predicted = sum w [p > t].

Between two probabilities of entries that do have the label, lowering `t` only adds wrong
decisions. So the best `t` lies just below one of these probabilities, here called levels.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.validation import check_positive
from altnorm.estimator.reading import Input
from altnorm.families.base import Peer
from altnorm.families.labelwise import Labelwise

SHRINKAGE = 10.0
"""Rows with a label at which its own threshold and the common one count equally."""


@storable
class LabelThresholds(Peer):
    r"""A decision threshold for each label, shrunk towards a common one where labels are rare.

    .. math::

        \operatorname{logit} t_j = \lambda_j \operatorname{logit} \hat t_j
        + (1 - \lambda_j) \operatorname{logit} t, \qquad \lambda_j = \frac{n_j}{n_j + \kappa}

    where :math:`\hat t_j` maximises the F1 of label j on the validation set (exactly: all values
    that F1 can take are looked at [1]_), :math:`t` maximises micro-F1 over all labels, :math:`n_j`
    is the number (weight) of validation rows that have label j, and :math:`\kappa` is `shrinkage`.
    For rare labels, maximisers of their own are erratic.

    `predict` gives the labels above their thresholds; `transform` moves the probabilities so that a
    decision at 0.5 gives the same answer,

    .. math:: \operatorname{logit} p'_{ij} = \operatorname{logit} p_{ij} - \operatorname{logit} t_j

    Parameters
    ----------
    shrinkage : float, default=10.0
        Number of positive rows at which a label's own threshold and the common one count equally.
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
    >>> from altnorm.peers import LabelThresholds
    >>> proba = [[0.5, 0.9], [0.1, 0.7], [0.3, 0.2]]
    >>> method = LabelThresholds(shrinkage=0).fit(proba, [[1, 1], [0, 0], [1, 0]])
    >>> method.thresholds_
    array([0.2, 0.8])
    """

    multilabel = "labelwise"

    def __init__(self, shrinkage: float = SHRINKAGE, *, input: str = "proba") -> None:
        self.shrinkage = shrinkage
        self.input = input

    def _check_params(self) -> None:
        super()._check_params()
        check_positive(self.shrinkage, "shrinkage", zero=True)

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        fields.number("global_threshold_", 0, 1)
        fields.array("thresholds_", "f", (fields.n_classes,), 0, 1)

    def _rows(self, clean: Input) -> np.ndarray:
        return clean.proba

    def _fit(self, proba: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        self.global_threshold_ = common_threshold(proba, y, weight)
        self.thresholds_ = shrunk_thresholds(
            proba, y, weight, self.global_threshold_, shrinkage=float(self.shrinkage)
        )

    def _transform(self, clean: Input) -> np.ndarray:
        # Not by way of log-odds: next to a threshold rounding would change decisions.
        dtype = clean.proba.dtype
        # Fitted in double precision, a threshold next to 0 or 1 may round to it in single.
        below_one = np.nextafter(dtype.type(1), dtype.type(0))
        fitted = np.asarray(self.thresholds_, dtype=dtype)
        return shift_threshold(clean.proba, np.clip(fitted, np.finfo(dtype).tiny, below_one))

    def _fitted_scores(self) -> Labelwise:
        return Labelwise(1.0, -logit(np.asarray(self.thresholds_, dtype=np.float64)), np.inf)


def shift_threshold(p: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """Shift log-odds so that `threshold`, in (0, 1), lands on 0.5; decisions stay exactly."""
    raised = p * (1 - threshold)
    shifted = raised / (raised + (1 - p) * threshold)
    half = p.dtype.type(0.5)
    above = np.maximum(shifted, np.nextafter(half, p.dtype.type(1)))
    return np.where(p > threshold, above, np.minimum(shifted, half))


def common_threshold(p: np.ndarray, y: np.ndarray, weight: np.ndarray, beta: float = 1.0) -> float:
    """Return the threshold of best micro-F for all labels together."""
    every = np.repeat(weight, p.shape[1])
    return label_threshold(p.ravel(), y.ravel(), every, beta)


def shrunk_thresholds(
    p: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    common: float,
    *,
    beta: float = 1.0,
    shrinkage: float = SHRINKAGE,
) -> np.ndarray:
    """Return a threshold for each label, shrunk towards the common one where it is rare."""
    columns, n = zip(p.T, y.T, strict=True), weight @ y
    best = np.array([label_threshold(*column, weight, beta) for column in columns])
    trust = np.divide(n, n + shrinkage, out=np.zeros(best.size), where=n > 0)
    blended = expit(trust * logit(best) + (1 - trust) * logit(common))
    # The two ends are returned as they are: logit and back would round them.
    return np.select([trust == 1, trust == 0], [best, common], blended)


def label_threshold(p: np.ndarray, y: np.ndarray, weight: np.ndarray, beta: float) -> float:
    """Return the threshold of best F for one label, or for entries taken as one."""
    level = levels(p, y)
    true, predicted = sum_from(p[y], level, weight[y]), sum_from(p, level, weight)
    score = (1 + beta**2) * true / (predicted + beta**2 * weight[y].sum())
    return best_threshold(p, level, score)


def rows_threshold(p: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the common threshold of best F1 of a row, on average."""
    gains = np.stack([f1_gains(*row) for row in zip(p, y, strict=True)]) * weight[:, None]
    level = levels(p, y)
    return best_threshold(p, level, sum_from(p.ravel(), level, gains.ravel()))


def levels(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the distinct positive probabilities of the entries that have the label, rising."""
    return np.unique(p[y & (p > 0)])


def sum_from(p: np.ndarray, level: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Return, for each level, the sum of `amount` over the entries with ``p >= level``."""
    sums = np.bincount(np.searchsorted(level, p, side="right"), amount, minlength=level.size + 1)
    return np.cumsum(sums[:0:-1])[::-1]


def f1_gains(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return what the F1 of a row gains (or loses) by each entry as the threshold falls past it."""
    order = np.argsort(-p)  # of entries of equal probability only the sum means something
    f1 = 2 * np.cumsum(y[order]) / (np.arange(1, p.size + 1) + y.sum())
    gains = np.empty_like(f1)
    gains[order] = np.diff(f1, prepend=0.0)
    return gains


def best_threshold(p: np.ndarray, level: np.ndarray, score: np.ndarray) -> float:
    """Return the threshold midway between the level of highest score and the next entry below.

    Of equally good levels it is the nearest to 0.5; without any level the threshold is 0.5.
    """
    if not level.size:
        return 0.5
    best = level[score >= score.max() * (1 - 1e-10)]
    high = best[np.argmin(np.abs(best - 0.5))]
    low = np.max(p, initial=0, where=p < high)
    middle = low + (high - low) / 2
    # Between neighbouring floats the middle may round up to `high`, which must stay above.
    return float(max(middle if middle < high else low, np.finfo(p.dtype).tiny))
