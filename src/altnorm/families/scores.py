r"""Scores that are linear in their unknowns: fitted by penalised likelihood along a path.

A row begins as :math:`x`, its log-probabilities at the temperature that suits the labels, mixed
with a little of the uniform distribution, so that nobody meets a zero. The score of class j is

.. math:: x_j + \sum_l D_{jl} x_l + b_j + \sum_k W_{jk} \max(a_k \cdot x - t_k, 0),

a straight line in all log-probabilities and, with directions :math:`a_k` and edges :math:`t_k`
fixed beforehand, bent ones. The log loss is convex in :math:`D`, :math:`b` and :math:`W`; with a
ridge there is one optimum, wherever a descent starts, and with the penalty on pairs of classes it
is the one that stronger penalties lead to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.special import softmax as host_softmax

from altnorm._base import arrays
from altnorm._base.arrays import Array, array_namespace
from altnorm.families.descent import Operator, Penalised, Point
from altnorm.families.likelihood import SLOPE_SHRINKAGE, Likelihood, fit_slope, label_log_p

LOWEST = -25.0
"""exp(-25) is as good as impossible; below it there is only noise."""

# What one more step may still gain, per unit of weight.
_LAST_GAIN, _ROUGH_GAIN = 1e-9, 2e-5

_N_STEPS = 20  # of a descent that are remembered: ten take a tenth more evaluations
_MOMENT_ROWS = 4096  # rows that show how the loss curves: more would say the same


class Tempering(NamedTuple):
    """Log-probabilities at a temperature, none of them minus infinity.

    ``log((1 - uniform) softmax(slope * max(log_p, floor)) + uniform / m)``
    """

    slope: float
    floor: float
    uniform: float
    n_outcomes: int  # classes

    def proba(self, log_p: Array) -> Array:
        """Probabilities of rows of log-probabilities."""
        p = arrays.softmax(self.slope * array_namespace(log_p).maximum(log_p, self.floor))
        return (1 - self.uniform) * p + self.uniform / self.n_outcomes

    def logs(self, log_p: Array) -> Array:
        """Logarithms of these."""
        return array_namespace(log_p).log(self.proba(log_p))

    def label_log_p(self, log_p: Array, codes: np.ndarray) -> np.ndarray:
        """Log-probability of each row's label."""
        return label_log_p(self.logs, log_p, codes)


def log_floor(log_p: Array) -> float:
    """What stands in for the log of smaller probabilities: half the smallest one seen.

    A forest's smallest positive share is 1 / trees, and a zero means "less than that".
    """
    xp, lowest = array_namespace(log_p), 0.0
    for rows in arrays.block_slices(log_p.shape[0], 24 * log_p.shape[1], log_p, cached=True):
        block = log_p[rows, :]
        positive = xp.where(block > -math.inf, block, xp.zeros_like(block))
        lowest = min(lowest, float(xp.min(positive)))
    return max(LOWEST, lowest - math.log(2))


def fit_tempering(
    log_p: Array, codes: np.ndarray, weight: np.ndarray, *, rough: bool = False
) -> Tempering:
    """Fit the slope to rows of positive weight."""
    used = np.flatnonzero(weight > 0)
    floor = log_floor(log_p if used.size == weight.size else arrays.take_rows(log_p, used))
    rows = array_namespace(log_p).maximum(log_p, floor)
    loss = Likelihood.build(rows, codes, weight, rough=rough)
    slope = fit_slope(loss, shrink=SLOPE_SHRINKAGE, rough=rough)
    return Tempering(slope, floor, 1 / (used.size + 1), log_p.shape[1])


class Bends(NamedTuple):
    """Where scores may bend: features ``max(x @ axes.T - edges, 0)``."""

    axes: np.ndarray  # (h, m)
    edges: np.ndarray  # (h,)

    def features(self, x: Array) -> Array:
        """Value of each bend, (n, h)."""
        along = x @ self.axes.T - self.edges
        return array_namespace(x).maximum(along, array_namespace(x).zeros_like(along))


def features_of(x: np.ndarray, bends: Bends | None) -> np.ndarray:
    """Log-probabilities, then the bends, (n, m + h)."""
    return x if bends is None else np.concatenate([x, bends.features(x)], axis=1)


class Scores(NamedTuple):
    """Scores ``x @ matrix.T + bias + max(x @ axes.T - edges, 0) @ weights.T``, `x` tempered."""

    tempering: Tempering
    matrix: np.ndarray  # (m, m)
    bias: np.ndarray  # (m,)
    bends: Bends | None = None
    weights: np.ndarray | None = None  # (m, h)

    def scores(self, log_p: Array) -> Array:
        """Scores of rows of log-probabilities; their softmax is the prediction."""
        x = self.tempering.logs(log_p)
        straight = x @ self.matrix.T + self.bias
        if self.bends is None or self.weights is None:
            return straight
        return straight + self.bends.features(x) @ self.weights.T

    def proba(self, log_p: Array) -> Array:
        """Probabilities of rows of log-probabilities."""
        rows = _wide(log_p)
        return arrays.softmax(arrays.beside(self, rows).scores(rows))

    def label_log_p(self, log_p: Array, codes: np.ndarray) -> np.ndarray:
        """Log-probability of each row's label."""
        rows = _wide(log_p)
        return label_log_p(arrays.beside(self, rows).scores, rows, codes)


def _wide(rows: Array) -> Array:
    """Rows as precise as the fit."""
    if not arrays.is_foreign(rows):
        return rows
    return array_namespace(rows).astype(rows, arrays.widest_float(rows), copy=False)


@dataclass(frozen=True)
class ScoreLoss:
    """The weighted log loss as a function of a coefficient for each class and feature."""

    x: np.ndarray  # (n, m) where scores begin
    z: np.ndarray  # (n, w) features; the last is 1
    codes: np.ndarray
    weight: np.ndarray
    device: Array | None = None  # an array in whose memory the sums over rows are taken; None: here

    @cached_property
    def labelled(self) -> np.ndarray:
        """Sums of the features over the rows of each class (m, w): all that labels say."""
        entries = self.weight, (self.codes, np.arange(self.codes.size))
        chosen = csr_array(entries, shape=(self.x.shape[1], self.codes.size))
        # One feature after another: all in double precision are as large as the data.
        return np.column_stack([chosen @ column.astype(np.float64) for column in self.z.T])

    @cached_property
    def start(self) -> float:
        """Weighted sum of where the scores of the labels begin."""
        rows = np.arange(self.codes.size)
        return float(self.weight @ self.x[rows, self.codes].astype(np.float64))

    @cached_property
    def _blocks(self) -> list[slice]:
        n, m = self.x.shape
        return list(arrays.block_slices(n, 8 * (m + self.z.shape[1]), self.x, cached=True))

    def __call__(self, theta: np.ndarray) -> Point:
        """Loss and derivative."""
        coefficients = theta.reshape(self.x.shape[1], self.z.shape[1])
        value, seen = self._on_device(coefficients) if self._placed else self._here(coefficients)
        value -= self.start + float(np.vdot(coefficients, self.labelled))
        return Point(theta, value, (seen - self.labelled).ravel())

    @cached_property
    def _placed(self) -> tuple[Array, ...]:
        """Rows, features and weights beside the device's array; empty where there is none."""
        if self.device is None:
            return ()
        xp = array_namespace(self.device)
        exact = self.z.dtype == np.float64
        dtype = arrays.widest_float(self.device) if exact else xp.float32
        like = xp.astype(self.device[:1, :], dtype)
        return tuple(arrays.as_array(each, like) for each in (self.x, self.z, self.weight[:, None]))

    def _on_device(self, coefficients: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of the log of the rows' totals, and its derivative."""
        x, z, weight = self._placed
        xp = array_namespace(z)
        with arrays.quiet(xp):
            scores = x + z @ arrays.as_array(coefficients, z).T
            top = xp.max(scores, axis=1, keepdims=True)
            power = xp.exp(scores - top)
            total = xp.sum(power, axis=1, keepdims=True)
            value = float(xp.sum(weight * (xp.log(total) + top)))
            return value, arrays.to_numpy((power * (weight / total)).T @ z).astype(np.float64)

    def _here(self, coefficients: np.ndarray) -> tuple[float, np.ndarray]:
        """The same in host memory, in blocks that fit the cache."""
        value, seen = 0.0, np.zeros(coefficients.shape)
        coefficients = coefficients.astype(self.z.dtype)
        for rows in self._blocks:
            z, weight = self.z[rows], self.weight[rows]
            # Classes are the first axis: NumPy is slow to reduce over a short last one.
            power = coefficients @ z.T
            power += self.x[rows].T
            top = power.max(axis=0)
            power -= top
            np.exp(power, out=power)
            total = power.sum(axis=0)
            power *= (weight / total).astype(z.dtype)
            value += float(weight @ (np.log(total.astype(np.float64)) + top))
            seen += power @ z
        return value, seen


class Shape(NamedTuple):
    """What features there are, and how firmly coefficients are held at 0, per unit of strength.

    Where there are `pairs` of classes, few are expected to be confused: coefficients on
    log-probabilities of other classes have the penalty of a Cauchy distribution, a ridge near 0 and
    a logarithm beyond. A class's coefficient on its own is free, and the sum of both kinds is held
    instead, so that a pair's coefficient is what their log-odds say.
    """

    bends: Bends | None
    center: np.ndarray  # (w - 1,) all log-probabilities, then the bends
    scale: np.ndarray  # (w - 1,)
    common: np.ndarray  # (w,) how firmly each feature is held, for all classes
    pairs: float = 0.0  # of each class's sum of coefficients on all log-probabilities; 0: no pairs

    def table(self, n_classes: int) -> np.ndarray:
        """How firmly each coefficient is held on its own, (m, w)."""
        table = np.tile(self.common, (n_classes, 1))
        if self.pairs:
            np.fill_diagonal(table, 0.0)
        return table

    def form(self, n_classes: int) -> np.ndarray:
        """The same near 0 as a matrix (w, w), as if no coefficient were a class's own."""
        form = np.diag(self.common)
        form[:n_classes, :n_classes] += self.pairs
        return form


def penalised(loss: ScoreLoss, shape: Shape) -> Penalised:
    """The loss with a penalty on its coefficients, and a rough Hessian of both.

    That is the one where all coefficients are 0, taken as a product: of how the loss curves between
    classes, and of the moments of the features. Two bases make it and the penalty diagonal, for all
    strengths. Where a class holds its own coefficient otherwise, which is a change of rank one,
    classes are taken one by one.
    """
    n, m = loss.x.shape
    table = shape.table(m)
    sample = slice(None, None, max(1, n // _MOMENT_ROWS))
    p = host_softmax(loss.x[sample].astype(np.float64), axis=1)
    weight = loss.weight[sample] * (loss.weight.sum() / loss.weight[sample].sum())
    by_class, classes = _class_curvature(p, weight, together=not shape.pairs)
    spread = weight * (1 - (p**2).sum(axis=1))
    spread /= max(spread.sum(), np.finfo(np.float64).tiny)
    # A matrix times its own transpose takes half the time, and single precision a quarter.
    z = loss.z[sample] * np.sqrt(spread)[:, None].astype(loss.z.dtype)
    roots, basis = eigh((z.T @ z).astype(np.float64), shape.form(m))
    curvature = by_class[:, None] * np.maximum(roots, 0)

    def penalty(theta: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
        coefficients = theta.reshape(table.shape)
        gradient = strength * table * coefficients
        costs = 0.5 * gradient * coefficients
        if not shape.pairs:
            return float(costs.sum()), gradient.ravel()
        gradient[:, :m] /= 1 + costs[:, :m]
        costs[:, :m] = np.log1p(costs[:, :m])
        sums = coefficients[:, :m].sum(axis=1)
        gradient[:, :m] += strength * shape.pairs * sums[:, None]
        return float(costs.sum() + 0.5 * strength * shape.pairs * sums @ sums), gradient.ravel()

    def precondition(_: Point, strength: float) -> Operator:
        inverse = 1 / (curvature + strength)
        change = _own_change(shape, basis, inverse, strength) if shape.pairs else None
        return partial(_solve, basis, classes, inverse, change)

    total = float(loss.weight.sum())
    return Penalised(loss, penalty, precondition, total, not shape.pairs, _N_STEPS)


def _class_curvature(
    p: np.ndarray, weight: np.ndarray, *, together: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Curvature of the loss by the scores: its roots and basis, or its diagonal if not together."""
    if not together:
        return np.maximum(weight @ (p * (1 - p)), 1e-6 * weight.sum()), np.eye(p.shape[1])
    # Scores that rise by the same in all classes change nothing: one root is 0.
    roots, basis = np.linalg.eigh(np.diag(weight @ p) - (p * weight[:, None]).T @ p)
    return np.maximum(roots, 0), basis


def _own_change(
    shape: Shape, basis: np.ndarray, inverse: np.ndarray, strength: float
) -> np.ndarray:
    """What class j's own feature adds to a solution, (m, w), per unit of its entry there."""
    m = len(inverse)
    looser = strength * shape.common[0]
    columns = (basis[:m] * inverse) @ basis.T
    return columns * (looser / (1 - looser * columns[np.arange(m), np.arange(m)]))[:, None]


def _solve(
    basis: np.ndarray,
    classes: np.ndarray,
    inverse: np.ndarray,
    own_change: np.ndarray | None,
    gradient: np.ndarray,
) -> np.ndarray:
    """Solve with the rough Hessian in its bases, and with what is a class's own."""
    turned = classes.T @ gradient.reshape(len(inverse), -1) @ basis
    solved = classes @ (turned * inverse) @ basis.T
    if own_change is not None:
        solved += own_change * np.diagonal(solved)[:, None]
    return solved.ravel()


MakeShape = Callable[[np.ndarray, np.ndarray], Shape]  # from rows where scores begin, and weights


@dataclass(frozen=True)
class ScoreProblem:
    """Scores to be fitted: where they begin, their features, and a loss of these."""

    tempering: Tempering
    shape: Shape
    loss: ScoreLoss

    @classmethod
    def build(
        cls,
        log_p: Array,
        codes: np.ndarray,
        weight: np.ndarray,
        *,
        shape: MakeShape,
        rough: bool,
    ) -> ScoreProblem:
        """Prepare rows of positive weight, in single precision if the fit need only be `rough`."""
        used = np.flatnonzero(weight > 0)
        rows = log_p if used.size == weight.size else arrays.take_rows(log_p, used)
        codes, weight = codes[used], weight[used]
        tempering = fit_tempering(rows, codes, weight, rough=rough)
        x = arrays.to_numpy(arrays.map_blocks(tempering.logs, rows))
        features = shape(x, weight)
        bends, center = features.bends, features.center
        dtype = np.float32 if rough else np.float64
        z = np.ones((used.size, center.size + 1), dtype)
        # In blocks: there may be hundreds of features.
        for block in arrays.block_slices(used.size, 24 * center.size, x, cached=True):
            z[block, :-1] = (features_of(x[block], bends) - center) / features.scale
        # Without bends features are `x` itself, which need not be held twice.
        x = z[:, :-1] if bends is None else x.astype(dtype, copy=False)
        loss = ScoreLoss(x, z, codes, weight, rows if arrays.is_foreign(rows) else None)
        return cls(tempering, features, loss)

    def scores(self, theta: np.ndarray) -> Scores:
        """The same scores from log-probabilities as they are."""
        shape, m = self.shape, self.loss.x.shape[1]
        coefficients = theta.reshape(m, -1)
        slopes = coefficients[:, :-1] / shape.scale
        bias = coefficients[:, -1] - slopes @ shape.center
        weights = None if shape.bends is None else slopes[:, m:]
        return Scores(self.tempering, np.eye(m) + slopes[:, :m], bias, shape.bends, weights)

    def rough_loss(self) -> ScoreLoss:
        """The loss in single precision."""
        z = self.loss.z.astype(np.float32)
        x = z[:, :-1] if self.shape.bends is None else self.loss.x.astype(np.float32)
        return replace(self.loss, x=x, z=z)

    @property
    def unchanged(self) -> np.ndarray:
        """Coefficients that change nothing."""
        return np.zeros(self.loss.x.shape[1] * self.loss.z.shape[1])


def score_path(
    log_p: Array,
    codes: np.ndarray,
    weight: np.ndarray,
    strengths: Sequence[float],
    *,
    shape: MakeShape,
    rough: bool = False,
) -> Generator[Scores, None, None]:
    """Yield the fit at each of the `strengths`, each started from the one before."""
    problem = ScoreProblem.build(log_p, codes, weight, shape=shape, rough=rough)
    loss, gain = penalised(problem.loss, problem.shape), _ROUGH_GAIN if rough else _LAST_GAIN
    yield from map(problem.scores, loss.walk(problem.unchanged, strengths, gain))


def fit_scores(
    log_p: Array,
    codes: np.ndarray,
    weight: np.ndarray,
    strengths: Sequence[float],
    *,
    shape: MakeShape,
) -> Scores:
    """Return the fit at the last of the `strengths`, its last few steps in double precision."""
    problem = ScoreProblem.build(log_p, codes, weight, shape=shape, rough=False)
    rough = penalised(problem.rough_loss(), problem.shape)
    *_, near = rough.walk(problem.unchanged, strengths, _ROUGH_GAIN)
    (near,) = rough.walk(near, strengths[-1:], _LAST_GAIN)
    exact = rough._replace(loss=problem.loss)
    (last,) = exact.walk(near, strengths[-1:], _LAST_GAIN)
    return problem.scores(last)
