"""Maximum likelihood for a temperature and class biases: softmax(slope * log p + bias)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.optimize import minimize, root_scalar

from altnorm._base.arrays import Array, block_slices

SLOPES = (1e-3, 1e3)
"""Range of the slope, the inverse of the temperature."""

MAX_BIAS = 30.0
"""Largest bias, so that a class without rows and without a penalty still gets a finite one."""

RIDGES = np.logspace(4, -2, 13)
"""Strengths tried by cross-validation, strongest first."""

# Newton's method converges quadratically: after a step this small, rounding is what is left.
_LAST_STEP = 1e-6
_MOST_STEPS = 20

# Stands in for log 0: even at the smallest slope and the largest bias its exponential is exactly 0.
_LOG_ZERO = -1e6


class Loss(Protocol):
    """What an optimiser asks of a loss, wherever its rows are."""

    @property
    def log_p(self) -> Array:
        """Log-probabilities, (n, m)."""

    def value_and_grad(self, slope: float, bias: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return the loss and its derivatives by slope and by bias."""

    def curvature(self, slope: float, bias: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the second derivatives by slope and by each bias."""

    def slope_derivatives(self, slope: float) -> tuple[float, float]:
        """Return the first and second derivative by the slope, without biases."""


@dataclass(frozen=True)
class Likelihood:
    """The weighted log-loss of ``softmax(slope * log_p + bias)`` as a function of both."""

    log_p: np.ndarray  # shifted so that each row's maximum is 0
    codes: np.ndarray
    weight: np.ndarray
    target: np.ndarray | None = None  # class weights the biases aim at; None: those of the labels

    @classmethod
    def build(
        cls,
        log_p: np.ndarray,
        codes: np.ndarray,
        weight: np.ndarray,
        eps: float,
        *,
        shift: np.ndarray | None = None,
        overwrite: bool = False,
    ) -> Likelihood:
        """Prepare clean data; a label of probability 0 counts as one of probability `eps`.

        A `shift` is added to every row first. With `overwrite`, the memory of `log_p` is used.
        """
        used = weight > 0
        kept = slice(None) if overwrite and used.all() else used
        log_p, codes = log_p[kept].astype(np.float64, copy=False), codes[kept]
        if shift is not None:
            log_p += shift
        rows = np.arange(codes.size)
        label = log_p[rows, codes]
        log_p[rows, codes] = np.where(np.isneginf(label), np.log(eps), label)
        log_p -= log_p.max(axis=1, keepdims=True)
        return cls(np.maximum(log_p, _LOG_ZERO, out=log_p), codes, weight[kept])

    def take(self, rows: np.ndarray | slice) -> Likelihood:
        """Restrict the loss to some of the rows; a slice of them shares the memory."""
        return replace(
            self, log_p=self.log_p[rows], codes=self.codes[rows], weight=self.weight[rows]
        )

    @cached_property
    def label_log_p(self) -> np.ndarray:
        """Log-probability of each row's label, up to the row's shift."""
        return self.log_p[np.arange(self.codes.size), self.codes]

    def class_weight(self) -> np.ndarray:
        """Total weight of the rows of each class, or what stands in for it."""
        if self.target is not None:
            return self.target
        return np.bincount(self.codes, self.weight, minlength=self.log_p.shape[1])

    def value_and_grad(self, slope: float, bias: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return the loss and its derivatives by slope and by bias."""
        counts, tilt = self.class_weight(), np.exp(bias)
        label = self.weight @ self.label_log_p
        value, by_slope, seen = -slope * label - counts @ bias, -label, np.zeros(bias.size)
        for rows, power in self._powers(slope):
            weight, total = self.weight[rows], power @ tilt
            share = weight / total
            value += weight @ np.log(total)
            seen += share @ power
            power *= self.log_p[rows]
            by_slope += share @ (power @ tilt)
        return float(value), float(by_slope), tilt * seen - counts

    def curvature(self, slope: float, bias: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the second derivatives by slope and by each bias (the Hessian's diagonal)."""
        tilt, by_slope, by_bias = np.exp(bias), 0.0, np.zeros(bias.size)
        for rows, power in self._powers(slope):
            log_p, weight = self.log_p[rows], self.weight[rows]
            power *= tilt
            p = power / power.sum(axis=1, keepdims=True)
            by_bias += weight @ (p * (1 - p))
            p *= log_p
            mean, second = p.sum(axis=1), np.einsum("ij,ij->i", p, log_p)
            by_slope += weight @ (second - mean**2)
        return float(by_slope), by_bias

    def slope_derivatives(self, slope: float) -> tuple[float, float]:
        """Return the first and second derivative by the slope, without biases."""
        first, second = -float(self.weight @ self.label_log_p), 0.0
        ones = np.ones(self.log_p.shape[1])
        for rows, power in self._powers(slope):
            weight, total = self.weight[rows], power @ ones
            power *= self.log_p[rows]
            mean = power @ ones / total
            power *= self.log_p[rows]
            first += float(weight @ mean)
            second += float(weight @ (power @ ones / total - mean**2))
        return first, second

    def _powers(self, slope: float) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ``exp(slope * log_p)``, whose rows' maximum is 1, in blocks of rows.

        An optimiser asks for them again and again. In blocks they never leave the cache, and arrays
        as large as the data are neither allocated nor filled.
        """
        n, m = self.log_p.shape
        buffer = np.empty((0, m))
        for rows in block_slices(n, 24 * m, self.log_p, cached=True):
            size = rows.stop - rows.start
            buffer = np.empty((size, m)) if size > len(buffer) else buffer
            power = np.multiply(self.log_p[rows], slope, out=buffer[:size])
            yield rows, np.exp(power, out=power)


def fit_slope(loss: Loss, *, shrink: float = 0.0) -> float:
    """Return the slope of least loss without biases: the root of a rising derivative.

    With `shrink`, the loss includes ``shrink / 2 * log(slope)**2``: where every label is the most
    probable class, the slope would be infinite without it.
    """
    known = loss, shrink
    found = _newton_slope(*known)
    if found is not None:
        return found
    low, high = np.log(SLOPES)
    if _slope_derivatives(low, *known)[0] >= 0:
        return SLOPES[0]
    if _slope_derivatives(high, *known)[0] <= 0:
        return SLOPES[1]
    # Passed as arguments: SciPy keeps the function itself alive until the garbage is collected,
    # and with it whatever the function closed over.
    at = root_scalar(_slope_derivative, args=known, bracket=(low, high), xtol=1e-10).root
    return float(np.exp(at))


def _newton_slope(loss: Loss, shrink: float) -> float | None:
    """Newton's method for the logarithm of the slope; None where it goes astray."""
    at, (low, high) = 0.0, np.log(SLOPES)
    for _ in range(_MOST_STEPS):
        rise, bend = _slope_derivatives(at, loss, shrink)
        step = rise / bend if bend > 0 else np.inf
        at -= step
        if not low < at < high:
            return None
        if abs(step) < _LAST_STEP:
            return float(np.exp(at))
    return None


def _slope_derivatives(log_slope: float, loss: Loss, shrink: float) -> tuple[float, float]:
    """First and second derivative of the loss by the logarithm of the slope."""
    slope = float(np.exp(log_slope))
    first, second = loss.slope_derivatives(slope)
    return slope * first + shrink * log_slope, slope * first + slope**2 * second + shrink


def _slope_derivative(log_slope: float, loss: Loss, shrink: float) -> float:
    return _slope_derivatives(log_slope, loss, shrink)[0]


def fit_bias(
    loss: Loss, ridge: float, start: tuple[float, np.ndarray], *, tol: float = 1e-7
) -> tuple[float, np.ndarray]:
    """Minimise ``loss + ridge / 2 * sum(bias**2)`` over slope and bias by L-BFGS-B.

    Each unknown is measured in units of its standard error at `start`, so that the problem is
    well conditioned and `tol`, the largest derivative at the end, means the same at any size.
    """
    by_slope, by_bias = loss.curvature(*start)
    tiny = np.finfo(np.float64).eps * max(1.0, by_slope)
    unit = 1 / np.sqrt(np.maximum(np.append(by_bias + ridge, by_slope), tiny))

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        bias, slope = (theta * unit)[:-1], float(theta[-1] * unit[-1])
        value, d_slope, d_bias = loss.value_and_grad(slope, bias)
        penalty = 0.5 * ridge * (bias @ bias)
        return value + penalty, np.append(d_bias + ridge * bias, d_slope) * unit

    limits = [(-MAX_BIAS, MAX_BIAS)] * by_bias.size + [SLOPES]
    found = minimize(
        objective,
        np.append(start[1], start[0]) / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=np.asarray(limits) / unit[:, None],
        options={"gtol": tol, "ftol": 1e-15, "maxiter": 1000, "maxcor": 20},
    )
    theta = found.x * unit
    return float(theta[-1]), theta[:-1]


def ridge_path(loss: Likelihood, n_folds: int, ridges: np.ndarray = RIDGES) -> np.ndarray:
    """Return the cross-validated log-loss of each of the `ridges`, which are strongest first."""
    folds = stratified_folds(loss.codes, n_folds)
    total = np.zeros(len(ridges))
    for fold in range(n_folds):
        train, test = loss.take(folds != fold), loss.take(folds == fold)
        state = fit_slope(train), np.zeros(loss.log_p.shape[1])
        for i, ridge in enumerate(ridges):
            state = fit_bias(train, ridge, state, tol=1e-3)
            total[i] += test.value_and_grad(*state)[0]
    return total / loss.weight.sum()


def stratified_folds(codes: np.ndarray, n_folds: int) -> np.ndarray:
    """Deal the rows of each class in turn to the folds; a class may have any number of rows.

    Classes are taken in the order of their first row, so that renaming them changes nothing.
    """
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first[inverse], kind="stable")
    folds = np.empty(codes.size, dtype=np.intp)
    folds[order] = np.arange(codes.size) % n_folds
    return folds
