"""Maximum likelihood for a temperature and class biases: softmax(slope * log p + bias)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize, root_scalar

__all__ = [
    "MAX_BIAS",
    "RIDGES",
    "SLOPES",
    "Likelihood",
    "fit_bias",
    "fit_slope",
    "ridge_path",
    "stratified_folds",
]

SLOPES = (1e-3, 1e3)
"""Range of the slope, the inverse of the temperature."""

MAX_BIAS = 30.0
"""Largest bias, so that a class without rows and without a penalty still gets a finite one."""

RIDGES = np.logspace(4, -2, 13)
"""Strengths tried by cross-validation, strongest first."""

# Stands in for log 0: even at the smallest slope and the largest bias its exponential is exactly 0.
_LOG_ZERO = -1e6


@dataclass(frozen=True)
class Likelihood:
    """The weighted log-loss of ``softmax(slope * log_p + bias)`` as a function of both."""

    log_p: np.ndarray  # shifted so that each row's maximum is 0
    codes: np.ndarray
    weight: np.ndarray
    target: np.ndarray | None = None  # class weights the biases aim at; None: those of the labels

    @classmethod
    def build(
        cls, log_p: np.ndarray, codes: np.ndarray, weight: np.ndarray, eps: float
    ) -> Likelihood:
        """Prepare clean data; a label of probability 0 counts as one of probability `eps`."""
        used = weight > 0
        log_p, codes = log_p[used].astype(np.float64, copy=False), codes[used]
        rows = np.arange(codes.size)
        label = log_p[rows, codes]
        log_p[rows, codes] = np.where(np.isneginf(label), np.log(eps), label)
        log_p -= log_p.max(axis=1, keepdims=True)
        return cls(np.maximum(log_p, _LOG_ZERO, out=log_p), codes, weight[used])

    def take(self, rows: np.ndarray) -> Likelihood:
        """Restrict the loss to some of the rows."""
        return replace(
            self, log_p=self.log_p[rows], codes=self.codes[rows], weight=self.weight[rows]
        )

    @property
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
        joint, total = self._joint(slope, bias)
        label = self.label_log_p
        counts = self.class_weight()
        value = self.weight @ (np.log(total) - slope * label) - counts @ bias
        share = self.weight / total
        by_slope = share @ np.einsum("ij,ij->i", joint, self.log_p) - self.weight @ label
        return float(value), float(by_slope), share @ joint - counts

    def curvature(self, slope: float, bias: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the second derivatives by slope and by each bias (the Hessian's diagonal)."""
        joint, total = self._joint(slope, bias)
        p = joint / total[:, None]
        mean = np.einsum("ij,ij->i", p, self.log_p)
        second = np.einsum("ij,ij,ij->i", p, self.log_p, self.log_p)
        return float(self.weight @ (second - mean**2)), self.weight @ (p * (1 - p))

    def _joint(self, slope: float, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = self.log_p * slope
        scores += bias
        joint = np.exp(scores, out=scores)
        return joint, joint.sum(axis=1)


def fit_slope(loss: Likelihood, *, shrink: float = 0.0) -> float:
    """Return the slope of least loss without biases: the root of a rising derivative.

    With `shrink`, the loss includes ``shrink / 2 * log(slope)**2``: where every label is the most
    probable class, the slope would be infinite without it.
    """
    # Passed as an argument: SciPy keeps the function itself alive until the garbage is collected,
    # and with it whatever the function closed over.
    known = loss, np.zeros(loss.log_p.shape[1]), shrink
    low, high = np.log(SLOPES)
    if _slope_derivative(low, *known) >= 0:
        return SLOPES[0]
    if _slope_derivative(high, *known) <= 0:
        return SLOPES[1]
    found = root_scalar(_slope_derivative, args=known, bracket=(low, high), xtol=1e-10)
    return float(np.exp(found.root))


def _slope_derivative(log_slope: float, loss: Likelihood, bias: np.ndarray, shrink: float) -> float:
    slope = float(np.exp(log_slope))
    return loss.value_and_grad(slope, bias)[1] + shrink * log_slope / slope


def fit_bias(
    loss: Likelihood, ridge: float, start: tuple[float, np.ndarray], *, tol: float = 1e-7
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
