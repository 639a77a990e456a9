r"""Maximum likelihood for a matrix on log-probabilities, with a ridge penalty on a path.

The scores of a row are :math:`s \, x + D \bar x + b`, with :math:`x` its log-probabilities and
:math:`\bar x` the same, centred and divided by their overall spread, so that one penalty
:math:`\lambda` means the same for every entry of :math:`D` and :math:`b`. At
:math:`\lambda = \infty` only the slope :math:`s` is left: temperature scaling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from altnorm._array import Array, array_namespace, as_array, is_foreign, widest_float
from altnorm.peers._likelihood import SLOPES, Likelihood, fit_slope

__all__ = ["Affine", "log_floor", "matrix_path"]

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


@dataclass(frozen=True)
class _Problem:
    """Rows, and the units in which the unknowns are measured."""

    base: np.ndarray  # (n, m) log-probabilities, each row's maximum 0
    x: np.ndarray  # (n, m) the same, centred and scaled
    codes: np.ndarray
    weight: np.ndarray
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
        penalty = bias @ bias + np.vdot(matrix, matrix)
        value = self.weight @ (np.log(total) - label) + 0.5 * self.ridge * penalty
        residual *= (self.weight / total)[:, None]
        residual[rows, self.codes] -= self.weight
        by_bias = residual.sum(axis=0) + self.ridge * bias
        by_matrix = (residual.T @ self.x + self.ridge * matrix) @ self.whitening.T
        by_slope = np.vdot(residual, self.base) * slope * self.slope_unit
        gradient = [[by_slope], by_bias * self.bias_unit, by_matrix.ravel()]
        return float(value), np.concatenate(gradient)


def matrix_path(
    log_p: np.ndarray, codes: np.ndarray, weight: np.ndarray, ridges: Sequence[float]
) -> Iterator[Affine]:
    """Yield the fit at each of the `ridges`, strongest first, each started from the one before.

    Unknowns are measured in units of their standard errors at the temperature fit: its curvature,
    taken as the same for every class, whitens the rows of the matrix. So a few dozen evaluations
    suffice where the plain problem takes hundreds.
    """
    floor = log_floor(log_p)
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
        whitening = np.linalg.inv(np.linalg.cholesky(second + ridge * np.eye(m)))
        bias_unit = 1 / np.sqrt(by_bias + ridge)
        problem = _Problem(loss.log_p, x, codes, weight, ridge, slope_unit, bias_unit, whitening)
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
