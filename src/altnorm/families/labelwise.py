"""Several labels per row: a line, or a bent one, on the log-odds of each label."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from altnorm._base.arrays import Array, array_namespace, block_slices, sigmoid
from altnorm._base.fitted import TINY, Fields
from altnorm._base.persistence import storable
from altnorm.families.base import PenalisedPeer
from altnorm.families.likelihood import SLOPE_SHRINKAGE, Likelihood, fit_slope

QUARTILES = (0.25, 0.5, 0.75)
"""Where the log-odds of a label, or a class's own log-probability, may bend."""

# The loss of all labels together has a unique optimum even where every label is absent.
_COMMON_STRENGTH = 1.0
_MOST_STEPS = 50
# What one more step may still gain, per unit of weight; it converges quadratically.
_LAST_GAIN, _ROUGH_GAIN = 1e-9, 1e-6


class OddsTempering(NamedTuple):
    """Probabilities of labels at a temperature, none of them 0 or 1.

    ``(1 - uniform) expit(slope * clip(logits, -limit, limit)) + uniform / 2``
    """

    slope: float
    limit: float
    uniform: float
    n_outcomes: int = 2  # yes and no

    def proba(self, logits: Array) -> Array:
        """Probability of each label, from rows of log-odds."""
        xp = array_namespace(logits)
        p = sigmoid(self.slope * xp.maximum(xp.minimum(logits, self.limit), -self.limit))
        return (1 - self.uniform) * p + self.uniform / self.n_outcomes

    def label_log_p(self, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Log-probability of all the labels of a row together, those it has and those it lacks."""
        yes = self.proba(logits)
        return np.asarray(np.log(np.where(labels, yes, 1 - yes)).sum(axis=1))


class Labelwise(NamedTuple):
    """Log-odds ``slope * z + bias + sum(weights * max(z - edges, 0))``, z clipped to the limit."""

    slope: Any  # (m,), or one for all
    bias: Array  # (m,)
    limit: Any
    edges: tuple[Array, ...] = ()  # (m,) each: where lines bend
    weights: tuple[Array, ...] = ()  # (m,) each: and by how much

    def scores(self, logits: Array) -> Array:
        """Log-odds of rows of log-odds; infinite ones will do."""
        xp = array_namespace(logits)
        within = xp.maximum(xp.minimum(logits, self.limit), -self.limit)
        scores = within * self.slope + self.bias
        for edge, weight in zip(self.edges, self.weights, strict=True):
            beyond = within - edge
            scores = scores + weight * xp.maximum(beyond, xp.zeros_like(beyond))
        return scores

    def proba(self, logits: np.ndarray) -> np.ndarray:
        """Probability of each label, whatever the others are."""
        return np.asarray(expit(self.scores(logits)))

    def label_log_p(self, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Log-probability of all the labels of a row together, those it has and those it lacks."""
        scores = self.scores(logits)
        return np.asarray(log_expit(np.where(labels, scores, -scores)).sum(axis=1))


@storable
class LabelwiseScaling(PenalisedPeer):
    r"""A slope and an intercept on the log-odds of each label, shrunk to those of all labels.

    .. math:: \operatorname{logit} p'_{ij} = (a + a_j) \, \bar z_{ij} + b + b_j

    with :math:`\bar z` the log-odds of the labels minus their mean, divided by their spread (over
    all rows and labels). First :math:`a` and :math:`b` are fitted to all labels together, then
    :math:`a_j` and :math:`b_j` minimise the log loss of label j plus
    :math:`\frac{\lambda}{2} (a_j^2 + b_j^2)`. For one label this is Platt's scaling (1999). A label
    that is rare, or has no positive row at all, stays close to what holds for all of them. With
    `bends`, the line of a label may bend at the quartiles of its log-odds, `edges_`, by `weights_`,
    held by the same penalty. Log-odds beyond `limit_`, of either sign, count as this far from 0.
    """

    multilabel = "labelwise"

    def __init__(
        self,
        strength: float | str = "cv",
        *,
        bends: bool = False,
        cv: int = 5,
        input: str = "proba",
    ) -> None:
        super().__init__(strength, cv=cv, input=input)
        self.bends = bends

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        fields.array("slope_", "f", (fields.n_classes,), -1e9, 1e9)
        fields.array("bias_", "f", (fields.n_classes,), -1e9, 1e9)
        shape = None, fields.n_classes
        edges = fields.array("edges_", "f", shape, -1e9, 1e9, empty=True)
        fields.array("weights_", "f", edges.shape, -1e9, 1e9, empty=True)
        fields.number("limit_", 0, 1e3)
        fields.number("strength_", TINY, 1e300)
        if fields.has("multilabel"):  # an Adjuster's, where it is set
            fields.choice("multilabel", ("pairs", "labelwise"))

    def _fit(self, logits: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        path = partial(labelwise_path, bends=bool(self.bends))
        self._choose_strength(path, logits, y, weight)
        (fitted,) = path(logits, y, weight, [self.strength_])
        self.slope_, self.bias_, self.limit_, edges, weights = fitted
        shape = len(edges), logits.shape[1]
        self.edges_, self.weights_ = np.reshape(edges, shape), np.reshape(weights, shape)

    def _fitted_scores(self) -> Labelwise:
        slope, bias = (np.asarray(each, dtype=np.float64) for each in (self.slope_, self.bias_))
        return Labelwise(slope, bias, float(self.limit_), tuple(self.edges_), tuple(self.weights_))


def odds_limit(logits: np.ndarray) -> float:
    """Where log-odds are cut off: 0 counts as half of the smallest probability seen, 1 likewise."""
    # Beyond what the dtype resolves next to 1 there is only noise; and see `scores.log_floor`.
    largest = -float(np.log(np.finfo(logits.dtype).eps))
    seen = np.abs(logits[np.isfinite(logits)])
    return min(largest, float(seen.max()) + float(np.log(2))) if seen.size else largest


def fit_odds_tempering(
    logits: np.ndarray, y: np.ndarray, weight: np.ndarray, *, rough: bool = False
) -> OddsTempering:
    """Fit one slope to all labels of rows of positive weight."""
    used = np.flatnonzero(weight > 0)
    limit, n_labels = odds_limit(logits[used]), logits.shape[1]
    flat = np.clip(logits[used], -limit, limit).ravel()
    # Every label of a row is a row of two classes.
    pairs = np.stack([log_expit(-flat), log_expit(flat)], axis=1)
    each = np.repeat(weight[used], n_labels)
    loss = Likelihood.build(pairs, y[used].ravel().astype(int), each, rough=rough)
    slope = fit_slope(loss, shrink=SLOPE_SHRINKAGE, rough=rough)
    return OddsTempering(slope, limit, 1 / (used.size + 1))


def labelwise_path(
    logits: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    strengths: Sequence[float],
    *,
    bends: bool = False,
    rough: bool = False,
) -> Generator[Labelwise, None, None]:
    """Yield the fit of `LabelwiseScaling` at each of the `strengths`, each from the one before."""
    limit, used = odds_limit(logits), weight > 0
    rows = np.clip(logits[used], -limit, limit, dtype=np.float64)
    center = float(np.average(rows.mean(axis=1), weights=weight[used]))
    rows -= center
    scale = float(np.sqrt(np.average((rows**2).mean(axis=1), weights=weight[used]))) or 1.0
    rows /= scale
    edges = np.quantile(rows, QUARTILES if bends else (), axis=0)
    loss = _Loss.build(rows, y[used], weight[used], edges, np.float32 if rough else np.float64)
    n_labels, rows = rows.shape[1], np.empty(0)  # the loss has a copy
    unchanged = np.array([[scale], [center]])
    gain = _ROUGH_GAIN if rough else _LAST_GAIN
    common = _newton(loss.pooled(), unchanged, unchanged, _COMMON_STRENGTH, gain)
    straight = np.repeat(common, n_labels, axis=1)
    theta = start = np.concatenate([straight, np.zeros(edges.shape)])
    for strength in strengths:
        theta = _newton(loss, theta, start, strength, gain)
        slope, bias, bent = theta[0] / scale, theta[1], theta[2:] / scale
        places = center + scale * edges
        yield Labelwise(slope, bias - slope * center, limit, tuple(places), tuple(bent))


class _Loss(NamedTuple):
    """Weighted log loss of each label as a function of its coefficients of `_features`, (f, m)."""

    rows: np.ndarray  # (n, m)
    weight: np.ndarray  # (n,)
    edges: np.ndarray  # (f - 2, m)
    labelled: np.ndarray  # (f, m) sums over the entries that have the label: all that labels say
    together: bool = False

    @classmethod
    def build(
        cls,
        rows: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        edges: np.ndarray,
        dtype: type[np.floating],
    ) -> _Loss:
        """Prepare clean data; sums over rows are computed in `dtype`."""
        features = _features(rows, edges)
        labelled = [np.einsum("i,ij,ij->j", weight, y, feature) for feature in features]
        kinds = rows.astype(dtype, copy=False), weight.astype(dtype), edges.astype(dtype)
        return cls(*kinds, np.stack(labelled))

    def pooled(self) -> _Loss:
        """The loss of one slope and one intercept for all labels."""
        labelled = self.labelled[:2].sum(axis=1, keepdims=True)
        return self._replace(edges=self.edges[:0], labelled=labelled, together=True)

    def __call__(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return value (m,), gradient (f, m), and second derivatives (m, f, f)."""
        (n, m), f = self.rows.shape, len(theta)
        sums = np.zeros((1 + f + f * f, m))
        for block in block_slices(n, (24 + 8 * f) * m, self.rows, cached=True):
            sums += _block_sums(self.rows[block], self.weight[block], self.edges, theta)
        if self.together:
            sums = sums.sum(axis=1, keepdims=True)
        value = sums[0] - (self.labelled * theta).sum(axis=0)
        bend = sums[1 + f :].reshape(f, f, -1).transpose(2, 0, 1)
        return value, sums[1 : 1 + f] - self.labelled, bend


def _features(rows: np.ndarray, edges: np.ndarray) -> list[np.ndarray]:
    """What coefficients are of: log-odds, 1, and bends."""
    return [rows, np.ones_like(rows), *(np.maximum(rows - edge, 0) for edge in edges)]


def _block_sums(
    rows: np.ndarray, weight: np.ndarray, edges: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Sums over rows (1 + f + f f, m): softplus; p x; v x x with v = p (1 - p)."""
    features, theta = _features(rows, edges), theta.astype(rows.dtype, copy=False)
    scores = sum(feature * each for feature, each in zip(features, theta, strict=True))
    small = np.exp(-np.abs(scores))
    softplus = np.log1p(small) + np.maximum(scores, 0)
    p = np.where(scores >= 0, rows.dtype.type(1), small) / (1 + small)
    v, f = p * (1 - p), len(features)
    sums = np.empty((1 + f + f * f, rows.shape[1]))
    sums[0] = weight @ softplus
    for i, feature in enumerate(features):
        sums[1 + i] = weight @ (p * feature)
        curved = v * feature
        for j in range(i + 1):
            second = weight @ (curved * features[j])
            sums[1 + f + i * f + j] = sums[1 + f + j * f + i] = second
    return sums


def _newton(
    loss: _Loss, theta: np.ndarray, target: np.ndarray, strength: float, last_gain: float
) -> np.ndarray:
    """Minimise ``loss + strength / 2 * (theta - target)**2``, which is convex, for each label."""
    enough = last_gain * float(loss.weight.sum())
    rounding = 16 * np.finfo(loss.rows.dtype).eps
    value, gradient, bend = _penalised(loss, theta, target, strength)
    step = _newton_step(gradient, bend)
    for _ in range(_MOST_STEPS):
        open_ = -(gradient * step).sum(axis=0) > enough
        if not open_.any():
            break
        step = np.where(open_, step, 0.0)
        after = _penalised(loss, theta + step, target, strength)
        worse = open_ & ~(after[0] <= value + rounding * np.abs(value))
        theta = np.where(worse, theta, theta + step)
        value, gradient = (
            np.where(worse, old, new) for old, new in zip((value, gradient), after[:2], strict=True)
        )
        bend = np.where(worse[:, None, None], bend, after[2])
        step = np.where(worse, step / 4, _newton_step(gradient, bend))
    return theta


def _penalised(
    loss: _Loss, theta: np.ndarray, target: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    value, gradient, bend = loss(theta)
    off = theta - target
    value += 0.5 * strength * (off**2).sum(axis=0)
    return value, gradient + strength * off, bend + strength * np.eye(len(theta))


def _newton_step(gradient: np.ndarray, bend: np.ndarray) -> np.ndarray:
    return -np.linalg.solve(bend, gradient.T[:, :, None])[:, :, 0].T
