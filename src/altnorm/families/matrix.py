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
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    is_foreign,
    softmax,
    to_numpy,
    widest_float,
)
from altnorm._base.fitted import TINY, Fields
from altnorm._base.persistence import storable
from altnorm._base.validation import check_choice, check_integer
from altnorm.families.base import SingleLabelPeer
from altnorm.families.crossfit import check_strength, choose_strength, path_down_to
from altnorm.families.descent import Penalised, Point
from altnorm.families.likelihood import Likelihood, fit_slope, label_log_p, stratified_folds

_LOWEST = -25.0  # exp(-25) is as good as impossible; below it there is only noise

# What one more step may still gain, per unit of weight.
_LAST_GAIN, _ROUGH_GAIN = 1e-9, 2e-5


class Affine(NamedTuple):
    """Scores ``max(log_p, floor) @ matrix.T + bias``."""

    matrix: np.ndarray  # (m, m)
    bias: np.ndarray  # (m,)
    floor: float

    def scores(self, log_p: Array) -> Array:
        """Scores of rows of log-probabilities; their softmax is the prediction."""
        return array_namespace(log_p).maximum(log_p, self.floor) @ self.matrix.T + self.bias

    def beside(self, log_p: Array) -> tuple[Affine, Array]:
        """The same with its constants where the rows are, and rows as precise as it."""
        if not is_foreign(log_p):
            return self, log_p
        rows = array_namespace(log_p).astype(log_p, widest_float(log_p), copy=False)
        return Affine(*(as_array(constant, rows) for constant in self)), rows

    def proba(self, log_p: Array) -> Array:
        """Probabilities of rows of log-probabilities."""
        fitted, rows = self.beside(log_p)
        return softmax(fitted.scores(rows))

    def label_log_p(self, log_p: Array, codes: np.ndarray) -> np.ndarray:
        """Log-probability of each row's label."""
        fitted, rows = self.beside(log_p)
        return label_log_p(fitted.scores, rows, codes)


def log_floor(log_p: np.ndarray) -> float:
    """What stands in for the log of smaller probabilities: half the smallest one seen.

    A forest's smallest positive share is 1 / trees, and a zero means "less than that"; a network's
    reaches far below any difference that matters.
    """
    seen = log_p[np.isfinite(log_p)]
    return max(_LOWEST, float(seen.min()) - math.log(2)) if seen.size else _LOWEST


def ridge_penalty(free: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
    """Return half the sum of squares times the strength, and its derivative."""
    return 0.5 * strength * float(np.vdot(free, free)), strength * free


def cauchy_penalty(free: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
    r"""Return the penalty that expects few confusions, and its derivative.

    With :math:`\delta_{jl}` the entries off the diagonal and :math:`\delta_{jj}` the sums of the
    rows, :math:`D \bar x` adds :math:`\sum_{l \ne j} \delta_{jl} (\bar x_l - \bar x_j) +
    \delta_{jj} \bar x_j` to the score of class :math:`j`: one number for what the log-odds of one
    class against another say about it. Each costs :math:`\log(1 + \lambda \delta^2 / 2)`, minus the
    logarithm of a Cauchy density. On biases, the last column, there is a ridge.
    """
    delta, m = free.copy(), len(free)
    diagonal = np.arange(m), np.arange(m)
    delta[diagonal] = free[:, :m].sum(axis=1)
    gradient = strength * delta
    excess = 0.5 * gradient * delta
    value = float(np.log1p(excess[:, :m]).sum() + excess[:, m].sum())
    gradient[:, :m] /= 1 + excess[:, :m]
    by_sum = gradient[diagonal]
    gradient[:, :m] += by_sum[:, None]
    gradient[diagonal] = by_sum
    return value, gradient


class _Penalty(NamedTuple):
    """Value and derivative of a penalty on matrix and biases, and its curvature near 0."""

    of: Callable[[np.ndarray, float], tuple[float, np.ndarray]]
    curvature: Callable[[int], np.ndarray]
    is_quadratic: bool


PENALTIES = {
    "ridge": _Penalty(ridge_penalty, np.eye, True),
    # But for the diagonal, which differs from class to class.
    "cauchy": _Penalty(cauchy_penalty, lambda m: np.eye(m) + 1, False),
}


@dataclass(frozen=True)
class MatrixLoss:
    """The weighted log loss as a function of slope, matrix and biases, packed in one vector.

    The vector holds the slope, and for each class its row of the matrix followed by its bias.
    """

    x: np.ndarray  # (n, m + 1) log-probabilities, centred and scaled, and a column of ones
    codes: np.ndarray
    weight: np.ndarray
    center: np.ndarray  # (m,)
    scale: float
    floor: float

    @classmethod
    def build(
        cls, log_p: np.ndarray, codes: np.ndarray, weight: np.ndarray, *, rough: bool
    ) -> MatrixLoss:
        """Prepare clean data, in single precision if it need only be `rough`."""
        used, floor = weight > 0, log_floor(log_p[weight > 0])
        rows, weight = np.maximum(log_p[used].astype(np.float64), floor), weight[used]
        center = np.average(rows, axis=0, weights=weight)
        rows -= center
        scale = math.sqrt(np.average((rows**2).mean(axis=1), weights=weight)) or 1.0
        x = np.ones((rows.shape[0], rows.shape[1] + 1), np.float32 if rough else np.float64)
        x[:, :-1] = rows / scale
        return cls(x, codes[used], weight, center, scale, floor)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.center.size

    @cached_property
    def told(self) -> np.ndarray:
        """Sums of the rows of each class (m, m + 1): all that labels say."""
        entries = self.weight, (self.codes, np.arange(self.codes.size))
        chosen = csr_array(entries, shape=(self.n_classes, self.codes.size))
        return np.asarray(chosen @ self.x.astype(np.float64, copy=False))

    @cached_property
    def _blocks(self) -> list[slice]:
        return list(block_slices(len(self.x), 16 * self.n_classes, self.x, cached=True))

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        """Weight of each column of `x` in the score of each class, slope included."""
        m = self.n_classes
        whole = theta[1:].reshape(m, m + 1).copy()
        whole[:, m] += theta[0] * self.center
        whole[np.arange(m), np.arange(m)] += theta[0] * self.scale
        return whole

    def affine(self, theta: np.ndarray) -> Affine:
        """The same scores from log-probabilities as they are."""
        whole = self.coefficients(theta)
        matrix = whole[:, :-1] / self.scale
        return Affine(matrix, whole[:, -1] - matrix @ self.center, self.floor)

    def __call__(self, theta: np.ndarray) -> Point:
        """Loss and derivative."""
        whole = self.coefficients(theta)
        value, seen = -float(np.vdot(whole, self.told)), np.zeros(whole.shape)
        for log_total, expected in self._sums(whole.astype(self.x.dtype)):
            value += log_total
            seen += expected
        seen -= self.told
        by_slope = self.scale * np.trace(seen[:, :-1]) + self.center @ seen[:, -1]
        return Point(theta, value, np.append(by_slope, seen))

    def _sums(self, weights: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        """Yield, for blocks of rows, the sums of log-totals and of ``p`` times `x`, (m, m + 1).

        Classes are the first axis: NumPy is slow to reduce over a short last one.
        """
        for rows in self._blocks:
            x, weight = self.x[rows], self.weight[rows]
            power = weights @ x.T
            top = power.max(axis=0)
            power -= top
            np.exp(power, out=power)
            total = power.sum(axis=0)
            power *= (weight / total).astype(self.x.dtype)
            log_total = np.log(total.astype(np.float64)) + top
            yield float(weight @ log_total), power @ x


def _begin(loss: MatrixLoss, penalty: str) -> tuple[Penalised, Point]:
    """Fit the slope, see how the loss curves there, and return the problem and that point.

    The rough Hessian is that of the temperature fit. The second moments of the rows are taken as
    the same for every class, so that one basis makes them, and the penalty, diagonal for all
    classes and strengths.
    """
    m, total = loss.n_classes, float(loss.weight.sum())
    rows = loss.x[:, :m] * np.float32(loss.scale) + loss.center.astype(np.float32)
    rows = (rows - rows.max(axis=1, keepdims=True)).astype(np.float32, copy=False)
    plain = Likelihood(rows, loss.codes, loss.weight)
    slope = fit_slope(plain, rough=True)
    by_slope, by_bias = plain.curvature(slope, np.zeros(m))
    by_slope = max(by_slope, np.finfo(np.float64).eps * total)
    weighted = loss.x * (loss.weight / total).astype(loss.x.dtype)[:, None]
    held = np.eye(m + 1)
    held[:m, :m] = PENALTIES[penalty].curvature(m)
    moments, basis = eigh((weighted.T @ loss.x).astype(np.float64), held)
    curvature = float(by_bias.mean()) * np.maximum(moments, 0)

    def penalise(theta: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
        value, gradient = PENALTIES[penalty].of(theta[1:].reshape(m, m + 1), strength)
        return value, np.append(0.0, gradient)

    def solve(strength: float, gradient: np.ndarray) -> np.ndarray:
        turned = gradient[1:].reshape(m, m + 1) @ basis
        turned /= curvature + strength
        return np.append(gradient[0] / by_slope, turned @ basis.T)

    start = loss(np.append(slope, np.zeros(m * (m + 1))))
    free = np.append(0.0, np.ones(m * (m + 1))) if PENALTIES[penalty].is_quadratic else None
    return Penalised(loss, penalise, lambda _, strength: partial(solve, strength), free), start


def matrix_path(
    log_p: Array,
    codes: np.ndarray,
    weight: np.ndarray,
    strengths: Sequence[float],
    penalty: str = "ridge",
    *,
    rough: bool = False,
) -> Generator[Affine, None, None]:
    """Yield the fit at each of the `strengths`, strongest first, each started from the one before.

    Unknowns are measured in units of their standard errors at the temperature fit: its curvature,
    taken as the same for every class, whitens the rows of the matrix. So a few dozen evaluations
    suffice where the plain problem takes hundreds. With `rough`, in single precision and as exactly
    as cross-fitting needs it.
    """
    loss = MatrixLoss.build(to_numpy(log_p), codes, weight, rough=rough)
    problem, start = _begin(loss, penalty)
    gain = (_ROUGH_GAIN if rough else _LAST_GAIN) * float(loss.weight.sum())
    for point in problem.walk(start, strengths, least_gain=gain):
        yield loss.affine(point.at)


def fit_matrix(
    log_p: np.ndarray, codes: np.ndarray, weight: np.ndarray, strength: float, penalty: str
) -> Affine:
    """Return the fit at one strength, as exactly as rounding allows.

    Only the last step need be exact. A ridge has one optimum, wherever one starts; the other
    penalty has many, and the one at the end of a path is taken.
    """
    path = path_down_to(strength) if penalty == "cauchy" else [strength]
    total = float(weight.sum())
    problem, start = _begin(MatrixLoss.build(log_p, codes, weight, rough=True), penalty)
    *_, near = problem.walk(start, path, least_gain=_ROUGH_GAIN * total)
    loss = MatrixLoss.build(log_p, codes, weight, rough=False)
    problem, _ = _begin(loss, penalty)
    (found,) = problem.walk(loss(near.at), [strength], least_gain=_LAST_GAIN * total)
    return loss.affine(found.at)


@storable
class MatrixScaling(SingleLabelPeer):
    r"""Matrix scaling: the score of each class is a penalised sum over all log-probabilities.

    .. math:: p'_{i\cdot} = \operatorname{softmax}(s \log p_i + D \bar x_i + b),

    as in [1]_, with :math:`\bar x_i` the log-probabilities, centred and divided by their overall
    spread. Slope, matrix and biases minimise the log-loss on the validation labels plus
    :math:`\frac{\lambda}{2} (\sum_{jl} D_{jl}^2 + \sum_j b_j^2)`. It repairs confusions of pairs of
    classes, which no factor for each class can. Without the penalty it would learn the noise of
    :math:`m^2` entries.

    That penalty expects all entries to be of one size. Often a few pairs of classes are confused,
    and the others are not; ``penalty="cauchy"`` expects that, and finds them with fewer labels. It
    replaces :math:`\frac{\lambda}{2} \sum_{jl} D_{jl}^2` by

    .. math:: \sum_{jl} \log\Bigl(1 + \frac{\lambda}{2} \delta_{jl}^2\Bigr),

    with :math:`\delta_{jl} = D_{jl}` off the diagonal and :math:`\delta_{jj}` the sum of row
    :math:`j`: the same for small entries, and little more for large ones than for medium ones.

    Parameters
    ----------
    strength : float or "cv", default="cv"
        Strength :math:`\lambda` of the penalty. With "cv" it is the one of least cross-validated
        log-loss among 256, 64, 16, 4, 1 and 0.25; of equally good ones the strongest. Weaker ones
        are left out once the loss has clearly risen.
    penalty : {"ridge", "cauchy"}, default="ridge"
        Whether many entries of the matrix are expected to matter, or few.
    cv : int, default=5
        Number of folds for ``strength="cv"``, assigned as by `BiasCorrectedTemperature`.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_classes, n_classes)
        Weight of each log-probability (columns) in the score of each class (rows), slope included.
    bias_ : ndarray of shape (n_classes,)
        Constants of the scores.
    strength_ : float
        The strength used.
    floor_ : float
        Smaller log-probabilities count as this one. So a class of probability 0 can get a positive
        one.
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017; with
       a ridge penalty: Kull et al., "Beyond temperature scaling", NeurIPS 2019.

    Examples
    --------
    Class 2 is mistaken for class 1 whenever class 0 is improbable:

    >>> import numpy as np
    >>> from altnorm.families import MatrixScaling
    >>> proba = np.array([[0.4, 0.5, 0.1], [0.1, 0.5, 0.4]] * 20)
    >>> scaling = MatrixScaling(strength=1.0).fit(proba, [1, 2] * 20)
    >>> scaling.predict(proba[:2])
    array([1, 2])
    """

    any_library = True

    def __init__(
        self,
        strength: float | str = "cv",
        *,
        penalty: str = "ridge",
        cv: int = 5,
        input: str = "proba",
    ) -> None:
        self.strength = strength
        self.penalty = penalty
        self.cv = cv
        self.input = input

    def _check_params(self) -> None:
        super()._check_params()
        check_strength(self.strength)
        check_choice(self.penalty, "penalty", tuple(PENALTIES))
        check_integer(self.cv, "cv", low=2)

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        m = fields.n_classes
        fields.array("matrix_", "f", (m, m), -1e9, 1e9)
        fields.array("bias_", "f", (m,), -1e9, 1e9)
        fields.number("strength_", TINY, 1e300)
        fields.number("floor_", -1e3, 0)

    def _fit(self, log_p: Array, codes: np.ndarray, weight: np.ndarray) -> None:
        known = to_numpy(log_p), codes, weight
        folds = stratified_folds(codes, min(self.cv, codes.size))
        path = partial(matrix_path, penalty=self.penalty)
        self.strength_ = choose_strength(self.strength, path, *known, folds)
        fitted = fit_matrix(*known, self.strength_, self.penalty)
        self.matrix_, self.bias_, self.floor_ = fitted

    def _transform(self, log_p: Array) -> Array:
        proba = Affine(self.matrix_, self.bias_, self.floor_).proba(log_p)
        return array_namespace(log_p).astype(proba, log_p.dtype, copy=False)
