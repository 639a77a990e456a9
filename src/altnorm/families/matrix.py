r"""Maximum likelihood for a matrix on log-probabilities, with a penalty on a path.

The scores of a row are :math:`s \, x + D \bar x + b`, with :math:`x` its log-probabilities and
:math:`\bar x` the same, centred and divided by their overall spread, so that one penalty
:math:`\lambda` means the same for every entry of :math:`D` and :math:`b`. At
:math:`\lambda = \infty` only the slope :math:`s` is left: temperature scaling.

A ridge penalty expects all entries to be of one size. A Cauchy penalty expects confusions to be
few: it is a ridge near 0 and a logarithm beyond, so that entries which labels support are freed,
while the others stay small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from altnorm._base.arrays import Array, array_namespace, as_array, is_foreign, widest_float
from altnorm.families.likelihood import SLOPES, Likelihood, fit_slope

_LOWEST = -25.0  # exp(-25) is as good as impossible; below it there is only noise
_TOLERANCE = 1e-3  # of the mean derivative, each unknown in units of its standard error


class Affine(NamedTuple):
    """Scores ``max(log_p, floor) @ matrix.T + bias``."""

    matrix: np.ndarray  # (m, m)
    bias: np.ndarray  # (m,)
    floor: float

    def scores(self, log_p: Array) -> Array:
        """Scores of rows of log-probabilities; their softmax is the prediction."""
        if not is_foreign(log_p):
            return np.maximum(log_p, self.floor) @ self.matrix.T + self.bias
        xp = array_namespace(log_p)
        rows = xp.clip(xp.astype(log_p, widest_float(log_p), copy=False), min=self.floor)
        return rows @ as_array(self.matrix.T, rows) + as_array(self.bias, rows)


def log_floor(log_p: np.ndarray) -> float:
    """What stands in for the log of smaller probabilities: half the smallest one seen.

    A forest's smallest positive share is 1 / trees, and a zero means "less than that"; a network's
    reaches far below any difference that matters.
    """
    seen = log_p[np.isfinite(log_p)]
    return max(_LOWEST, float(seen.min()) - math.log(2)) if seen.size else _LOWEST


def ridge_penalty(matrix: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
    """Return half the sum of squares times the strength, and its derivative."""
    return 0.5 * strength * float(np.vdot(matrix, matrix)), strength * matrix


def cauchy_penalty(matrix: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
    r"""Return the penalty that expects few confusions, and its derivative.

    With :math:`\delta_{jl}` the entries off the diagonal and :math:`\delta_{jj}` the sums of the
    rows, :math:`D \bar x` adds :math:`\sum_{l \ne j} \delta_{jl} (\bar x_l - \bar x_j) +
    \delta_{jj} \bar x_j` to the score of class :math:`j`: one number for what the log-odds of one
    class against another say about it. Each costs :math:`\log(1 + \lambda \delta^2 / 2)`, minus the
    logarithm of a Cauchy density.
    """
    delta = matrix.copy()
    np.fill_diagonal(delta, matrix.sum(axis=1))
    excess = 0.5 * strength * delta**2
    gradient = strength * delta / (1 + excess)
    by_sum = gradient.diagonal().copy()
    gradient += by_sum[:, None]
    np.fill_diagonal(gradient, by_sum)
    return float(np.log1p(excess).sum()), gradient


class _Penalty(NamedTuple):
    """Value and derivative of a penalty, and what it adds to the curvature near 0."""

    of: Callable[[np.ndarray, float], tuple[float, np.ndarray]]
    curvature: Callable[[int], np.ndarray]


PENALTIES = {
    "ridge": _Penalty(ridge_penalty, np.eye),
    # But for the diagonal, which differs from class to class.
    "cauchy": _Penalty(cauchy_penalty, lambda m: np.eye(m) + 1),
}


@dataclass(frozen=True)
class _Problem:
    """Rows, and the units in which the unknowns are measured."""

    base: np.ndarray  # (n, m) log-probabilities, each row's maximum 0
    x: np.ndarray  # (n, m) the same, centred and scaled
    codes: np.ndarray
    weight: np.ndarray
    penalty: _Penalty
    ridge: float
    slope_unit: float  # of the logarithm of the slope, which keeps it positive
    bias_unit: np.ndarray  # (m,)
    whitening: np.ndarray  # (m, m)

    def unpack(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Slope, biases and matrix."""
        m = self.bias_unit.size
        matrix = theta[m + 1 :].reshape(m, m) @ self.whitening
        slope = float(np.exp(np.clip(theta[0] * self.slope_unit, *np.log(SLOPES))))
        return slope, theta[1 : m + 1] * self.bias_unit, matrix

    def pack(self, slope: float, bias: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """The inverse of `unpack`."""
        theta = np.linalg.solve(self.whitening.T, matrix.T).T
        first = math.log(slope) / self.slope_unit
        return np.concatenate([[first], bias / self.bias_unit, theta.ravel()])

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalised loss and its derivative."""
        slope, bias, matrix = self.unpack(theta)
        rows = np.arange(self.codes.size)
        scores = self.x @ matrix.T
        scores += slope * self.base + bias
        scores -= scores.max(axis=1, keepdims=True)
        label = scores[rows, self.codes]
        residual = np.exp(scores, out=scores)
        total = residual.sum(axis=1)
        penalty, by_penalty = self.penalty.of(matrix, self.ridge)
        penalty += 0.5 * self.ridge * (bias @ bias)
        value = self.weight @ (np.log(total) - label) + penalty
        residual *= (self.weight / total)[:, None]
        residual[rows, self.codes] -= self.weight
        by_bias = residual.sum(axis=0) + self.ridge * bias
        by_matrix = (residual.T @ self.x + by_penalty) @ self.whitening.T
        by_slope = np.vdot(residual, self.base) * slope * self.slope_unit
        gradient = [[by_slope], by_bias * self.bias_unit, by_matrix.ravel()]
        return float(value), np.concatenate(gradient)


def matrix_path(
    log_p: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    ridges: Sequence[float],
    penalty: str = "ridge",
) -> Iterator[Affine]:
    """Yield the fit at each of the `ridges`, strongest first, each started from the one before.

    Unknowns are measured in units of their standard errors at the temperature fit: its curvature,
    taken as the same for every class, whitens the rows of the matrix. So a few dozen evaluations
    suffice where the plain problem takes hundreds.
    """
    kind, floor = PENALTIES[penalty], log_floor(log_p)
    x = np.maximum(log_p.astype(np.float64, copy=False), floor)
    loss = Likelihood.build(x, codes, weight, eps=math.exp(floor))
    x, weight, codes = x[weight > 0], loss.weight, loss.codes
    center = np.average(x, axis=0, weights=weight)
    x = x - center
    scale = math.sqrt(np.average((x**2).mean(axis=1), weights=weight)) or 1.0
    x /= scale
    m = center.size
    slope, bias, matrix = fit_slope(loss), np.zeros(m), np.zeros((m, m))
    by_slope, by_bias = loss.curvature(slope, bias)
    second = (x * weight[:, None]).T @ x * (by_bias.mean() / weight.sum())
    slope_unit = 1 / math.sqrt(max(slope**2 * by_slope, np.finfo(np.float64).eps))
    for ridge in ridges:
        curvature = second + ridge * kind.curvature(m)
        whitening = np.linalg.inv(np.linalg.cholesky(curvature))
        bias_unit = 1 / np.sqrt(by_bias + ridge)
        units = slope_unit, bias_unit, whitening
        problem = _Problem(loss.log_p, x, codes, weight, kind, ridge, *units)
        slope, bias, matrix = _minimize(problem, slope, bias, matrix)
        whole = matrix / scale
        yield Affine(slope * np.eye(m) + whole, bias - whole @ center, floor)


def _minimize(
    problem: _Problem, slope: float, bias: np.ndarray, matrix: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    found = minimize(
        problem,
        problem.pack(slope, bias, matrix),
        jac=True,
        method="L-BFGS-B",
        options={
            "gtol": _TOLERANCE * math.sqrt(problem.weight.sum()),
            "ftol": 1e-9,
            "maxiter": 300,
        },
    )
    return problem.unpack(found.x)
