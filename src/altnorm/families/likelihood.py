"""Maximum likelihood for a temperature and class biases: softmax(slope * log p + bias)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import root_scalar

from altnorm._base import arrays
from altnorm._base.arrays import Array, array_namespace

SLOPES = (1e-3, 1e3)
"""Range of the slope, the inverse of the temperature."""

BIASES = (-30.0, 30.0)
"""Range of a bias, so that a class without rows and without a penalty still gets a finite one."""

SLOPE_SHRINKAGE = 4.0
"""Pulls the logarithm of a slope to 0: before labels speak, temperatures are expected to lie within
a factor of 1.65 of 1. Where all predictions are right, the slope would be infinite without it."""

# Newton's method converges quadratically: after a step this small, its square is what is left. The
# loss is flat at its optimum, so its value tolerates the larger step.
_LAST_STEP, _LAST_ROUGH_STEP = 1e-4, 1e-2
_MOST_STEPS = 20

# Stands in for log 0: even at the smallest slope and the largest bias its exponential is exactly 0.
_LOG_ZERO = -1e6


@dataclass(frozen=True)
class Likelihood:
    """The weighted log-loss of ``softmax(slope * log_p + bias)`` as a function of both, in NumPy.

    Rows stay in their library and on their device.
    """

    log_p: Array  # (n, m) shifted so that each row's maximum is 0
    codes: np.ndarray
    weight: np.ndarray

    @classmethod
    def build(
        cls, log_p: Array, codes: np.ndarray, weight: np.ndarray, *, rough: bool = False
    ) -> Likelihood:
        """Prepare clean data; a label of probability 0 counts as one of the dtype's epsilon.

        With `rough`, rows are held, and sums over them computed, in single precision.
        """
        used, xp, m = np.flatnonzero(weight > 0), array_namespace(log_p), log_p.shape[1]
        dtype, eps = xp.float32 if rough else arrays.widest_float(log_p), xp.finfo(log_p.dtype).eps
        rows = xp.empty((used.size, m), dtype=dtype, device=arrays.device(log_p))
        codes, weight = codes[used], weight[used]
        # In blocks, so that there is only one copy of the rows, in the precision it has to have.
        for block in arrays.block_slices(used.size, 24 * m, rows, cached=True):
            taken = xp.astype(arrays.take_rows(log_p, used[block]), dtype, copy=False)
            taken = _shifted(taken, codes[block], float(eps))
            rows = arrays.scatter(rows, (block, slice(None)), taken)
        return cls(rows, codes, weight)

    @cached_property
    def label(self) -> float:
        """Weighted sum of the log-probabilities of the labels, up to the rows' shifts."""
        return float(self.weight @ arrays.entries_at(self.log_p, self.codes).astype(np.float64))

    @cached_property
    def counts(self) -> np.ndarray:
        """Total weight of the rows of each class."""
        return np.bincount(self.codes, self.weight, minlength=self.log_p.shape[1])

    @cached_property
    def _weight(self) -> Array:
        return arrays.as_array(self.weight, self.log_p)

    @cached_property
    def _blocks(self) -> list[slice]:
        n, m = self.log_p.shape
        return list(arrays.block_slices(n, 24 * m, self.log_p, cached=True))

    def value_and_grad(self, slope: float, bias: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return the loss and its derivatives by slope and by bias."""
        tilt = arrays.as_array(np.exp(bias), self.log_p)
        value, by_slope = -slope * self.label - self.counts @ bias, -self.label
        seen = np.zeros(bias.size)
        for log_p, weight, power in self._powers(slope):
            xp, total = array_namespace(power), power @ tilt
            share = weight / total
            value += float(xp.sum(weight * xp.log(total)))
            seen += arrays.to_numpy(share @ power)
            power *= log_p
            by_slope += float(xp.sum(share * (power @ tilt)))
        return float(value), float(by_slope), np.exp(bias) * seen - self.counts

    def curvature(self, slope: float, bias: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the second derivatives by slope and by each bias (the Hessian's diagonal)."""
        tilt = arrays.as_array(np.exp(bias), self.log_p)
        ones = arrays.as_array(np.ones(bias.size), self.log_p)
        by_slope, by_bias = 0.0, np.zeros(bias.size)
        for log_p, weight, power in self._powers(slope):
            xp = array_namespace(power)
            total = power @ tilt
            p = power * tilt / total[:, None]
            by_bias += arrays.to_numpy(weight @ (p * (1 - p)))
            p *= log_p
            mean, second = p @ ones, (p * log_p) @ ones
            by_slope += float(xp.sum(weight * (second - mean**2)))
        return by_slope, by_bias

    def slope_derivatives(self, slope: float) -> tuple[float, float]:
        """Return the first and second derivative by the slope, without biases."""
        first, second = -self.label, 0.0
        ones = arrays.as_array(np.ones(self.log_p.shape[1]), self.log_p)
        for log_p, weight, power in self._powers(slope):
            xp, total = array_namespace(power), power @ ones
            power *= log_p
            mean = power @ ones / total
            power *= log_p
            first += float(xp.sum(weight * mean))
            second += float(xp.sum(weight * (power @ ones / total - mean**2)))
        return first, second

    def _powers(self, slope: float) -> Iterator[tuple[Array, Array, Array]]:
        """Yield blocks of rows, their weights, and ``exp(slope * log_p)``, whose maximum is 1."""
        for rows in self._blocks:  # which never leave the cache
            log_p = self.log_p[rows, :]
            yield log_p, self._weight[rows], arrays.exp_in_place(log_p * slope)


def _shifted(log_p: Array, codes: np.ndarray, eps: float) -> Array:
    """Shift each row so that its maximum is 0, without infinities."""
    xp = array_namespace(log_p)
    if np.isneginf(arrays.entries_at(log_p, codes)).any():
        columns = xp.arange(log_p.shape[1], device=arrays.device(log_p))[None, :]
        impossible = (columns == arrays.move(codes, log_p)[:, None]) & (log_p == -math.inf)
        log_p = xp.where(impossible, xp.full_like(log_p, math.log(eps)), log_p)
    return xp.maximum(log_p - xp.max(log_p, axis=1, keepdims=True), _LOG_ZERO)


def label_log_p(scores: Callable[[Array], Array], rows: Array, codes: np.ndarray) -> np.ndarray:
    """Log of the softmax of each row's scores at its label, (n,)."""
    out = np.empty(codes.size)
    for block in arrays.block_slices(codes.size, 32 * rows.shape[1], rows, cached=True):
        of_block = scores(rows[block, :])
        xp = array_namespace(of_block)
        top = xp.max(of_block, axis=1, keepdims=True)
        total = xp.sum(arrays.exp_in_place(of_block - top), axis=1)
        log_total = arrays.to_numpy(xp.log(total) + top[:, 0])
        out[block] = arrays.entries_at(of_block, codes[block]) - log_total
    return out


def fit_slope(loss: Likelihood, *, shrink: float = 0.0, rough: bool = False) -> float:
    """Return the slope of least loss without biases: the root of a rising derivative.

    With `shrink`, the loss includes ``shrink / 2 * log(slope)**2``. With `rough`, as exactly as the
    loss at the optimum needs it.
    """
    slope = _newton_slope(loss, shrink, _LAST_ROUGH_STEP if rough else _LAST_STEP)
    if slope is not None:
        return slope
    low, high = np.log(SLOPES)
    if _slope_derivatives(low, loss, shrink)[0] >= 0:
        return SLOPES[0]
    if _slope_derivatives(high, loss, shrink)[0] <= 0:
        return SLOPES[1]
    # With `args`: SciPy would keep what a closure holds alive until the garbage is collected.
    options = {"bracket": (low, high), "fprime": True, "method": "brentq", "xtol": 1e-10}
    return float(np.exp(root_scalar(_slope_derivatives, args=(loss, shrink), **options).root))


def _newton_slope(loss: Likelihood, shrink: float, enough: float) -> float | None:
    """Newton's method for the logarithm of the slope; None where it leaves the range."""
    at, (low, high) = 0.0, np.log(SLOPES)
    for _ in range(_MOST_STEPS):
        rise, bend = _slope_derivatives(at, loss, shrink)
        if not rise:  # also where rows of 0 and 1 are all right, and every slope is as good
            return float(np.exp(at))
        # By no more than a factor of e: far from the optimum the curvature says little.
        step = min(max(rise / bend, -1.0), 1.0) if bend > 0 else math.copysign(1.0, rise)
        at -= step
        if not low < at < high:
            return None
        if abs(step) < enough:
            return float(np.exp(at))
    return None


def _slope_derivatives(log_slope: float, loss: Likelihood, shrink: float) -> tuple[float, float]:
    """First and second derivative of the loss by the logarithm of the slope."""
    slope = float(np.exp(log_slope))
    first, second = loss.slope_derivatives(slope)
    return slope * first + shrink * log_slope, slope * first + slope**2 * second + shrink


def stratified_folds(codes: np.ndarray, n_folds: int) -> np.ndarray:
    """Deal the rows of each class in turn to the folds; a class may have any number of rows."""
    # Classes in the order of their first row, so that renaming them changes nothing.
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first[inverse], kind="stable")
    folds = np.empty(codes.size, dtype=np.intp)
    folds[order] = np.arange(codes.size) % n_folds
    return folds
