r"""The two-class kernel: a row is one logit, the reference's column sums are smooth functions.

With two classes a row is its logit `z`, and one iteration maps ``z`` to ``alpha * z + g`` where `g`
is common to all rows. So the reference that a row in doubt sees is the reference iterated on its
own (the anchor, see :mod:`altnorm.method.scaling`) shifted by one number `d`, and the two column
sums are smooth functions of `d`:

.. math:: F_\pm(d) = \log \sum_i w_i \, \sigma(\pm(z_i + d))^\alpha .

They are evaluated at a few Chebyshev nodes and interpolated at the shifts of all rows in doubt.

The whole of it is then a function from one number to another, which `odds_function` tabulates for
rows that come one by one or in batches. Several labels per row are such problems, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.fft import dct
from scipy.optimize import brentq
from scipy.special import expit

from altnorm._base.arrays import Array, array_namespace, as_array, block_slices, to_numpy
from altnorm.method.ambiguity import binary_ambiguity
from altnorm.method.scaling import log_add, weigh

Sums = Callable[[Array], tuple[Array, Array]]  # both column sums at some shifts
Function = Callable[[np.ndarray], np.ndarray]  # of log-odds

_NEG_INF = -math.inf
_DEGREES = (4, 8, 16, 32, 64)  # each set of nodes contains the one before

# Of functions that are tabulated.
_TOLERANCE = 2e-13
_DEGREE = 13
_TO_POWERS = np.stack(  # of the argument, from Chebyshev polynomials
    [
        np.pad(chebyshev.cheb2poly(unit), (0, _DEGREE - k))
        for k, unit in enumerate(np.eye(_DEGREE + 1))
    ],
    axis=1,
)
_PIECES = 8  # at the start
_MAX_PIECES = 4096
_LARGEST_LOGIT = 745.0  # of the smallest positive double


def log_sigmoids(z: Array) -> tuple[Array, Array]:
    """Logs of the two class probabilities of logits `z`."""
    xp = array_namespace(z)
    softplus = xp.log1p(xp.exp(-xp.abs(z)))
    zero = xp.zeros_like(z)
    return xp.minimum(z, zero) - softplus, xp.minimum(-z, zero) - softplus


class LogitStep(NamedTuple):
    """One iteration of the reference on its own, which no row in doubt changes."""

    column_sums: Sums  # without smoothing
    sums: list[Array]  # the two column sums at shift 0, with smoothing; (1,) each
    step: Array  # (1,) what is added to all logits


class BinaryReference(NamedTuple):
    """What a row in doubt meets, where there are two classes: logits of the first one."""

    logit: Array  # (n,)
    weight: Array | None  # (n,)
    log_q: tuple[float, float]  # of both classes, finite
    alpha: float
    depth: int
    log_mass: float | None  # log of the smoothing's total weight

    @classmethod
    def of(
        cls,
        logits: np.ndarray,
        weight: np.ndarray | None,
        prior: float,
        *,
        alpha: float,
        depth: int,
        smoothing: float,
    ) -> BinaryReference | None:
        """Return None where the prior is 0 or 1, or no entry counts: nothing can be adjusted."""
        if weight is not None:
            logits, weight = logits[weight > 0], weight[weight > 0].astype(np.float64, copy=False)
        if not 0 < prior < 1 or not logits.size:
            return None
        total = logits.size if weight is None else float(weight.sum())
        log_q = math.log(prior), math.log1p(-prior)  # exact for the prior of a rare label, too
        log_mass = math.log(smoothing) + math.log(total) if smoothing else None
        return cls(logits, weight, log_q, alpha, depth, log_mass)

    def follow(self) -> Iterator[LogitStep]:
        """Yield its own iterations, which no row in doubt changes."""
        z = self.logit
        for _ in range(self.depth):
            column_sums = _column_sums(z, self.weight, self.alpha)
            sums = self.smoothed(column_sums(array_namespace(z).zeros_like(z[:1])))
            step = prior_over_sums(self.log_q, sums)
            yield LogitStep(column_sums, sums, step)
            z = self.alpha * z + step

    def smoothed(self, log_sums: tuple[Array, Array]) -> list[Array]:
        """Add the smoothing's share to the two column sums."""
        if self.log_mass is None:
            return list(log_sums)
        xp = array_namespace(log_sums[0])
        pairs = zip(log_sums, self.log_q, strict=True)
        return [log_add(s, xp.zeros_like(s) + (self.log_mass + q)) for s, q in pairs]


def iterate_logits(logit_b: Array, reference: BinaryReference) -> Iterator[Array]:
    """Yield the logits (t,) of all rows in doubt after each iteration."""
    xp, alpha, log_q = array_namespace(logit_b), reference.alpha, reference.log_q
    shift: Array | None = None
    for stage in reference.follow():
        if shift is None:  # all rows meet the same reference
            shift = xp.zeros_like(logit_b)
            log_sums = [s + shift for s in stage.sums]
        else:
            log_sums = reference.smoothed(interpolate(stage.column_sums, shift))
        logit_b, sums = step_logits(logit_b, log_sums, log_q, alpha)
        shift = alpha * shift + (prior_over_sums(log_q, sums) - stage.step)
        shift = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        yield logit_b


def step_logits(
    logit_b: Array, log_sums: Sequence[Array], log_q: Sequence[float | Array], alpha: float
) -> tuple[Array, list[Array]]:
    """One iteration of the rows, given the reference's log column sums; and those with the rows."""
    pairs = zip(log_sigmoids(logit_b), log_sums, log_q, strict=True)
    first, second = (weigh(alpha * log_p, log_s, q) for log_p, log_s, q in pairs)
    return first[0] - second[0], [first[1], second[1]]


def prior_over_sums(log_q: Sequence[float | Array], log_s: Sequence[Array]) -> Array:
    """Log-odds that one iteration adds to every row: ``log(q_1 / S_1) - log(q_2 / S_2)``."""
    xp = array_namespace(log_s[0])
    step = (log_q[0] - log_q[1]) - (log_s[0] - log_s[1])
    return xp.where(xp.isfinite(step), step, xp.zeros_like(step))


def interpolate(function: Sums, x: Array) -> tuple[Array, Array]:
    """Values of two smooth functions at many points, from a few evaluations.

    An interval on which 65 nodes do not suffice is halved; few points are evaluated directly.
    """
    xp = array_namespace(x)
    if x.shape[0] <= _DEGREES[0] + 1:
        return function(x)
    low, high = float(xp.min(x)), float(xp.max(x))
    if low == high:
        first, second = function(x[:1])
        return first + xp.zeros_like(x), second + xp.zeros_like(x)
    coefficients = _chebyshev(function, x, low, high)
    if coefficients is not None:
        return _clenshaw(coefficients, (2 * x - (low + high)) / (high - low))
    if x.shape[0] <= _DEGREES[-1] + 1:
        return function(x)
    is_low = x < low + 0.5 * (high - low)
    sides = [xp.nonzero(is_low)[0], xp.nonzero(~is_low)[0]]
    parts = [interpolate(function, xp.take(x, side)) for side in sides]
    back = xp.argsort(xp.concat(sides))
    first, second = (xp.take(xp.concat([part[i] for part in parts]), back) for i in (0, 1))
    return first, second


def _column_sums(z: Array, weight: Array | None, alpha: float) -> Sums:
    """Return the function that gives ``(F_+, F_-)`` at shifts `d`."""
    xp = array_namespace(z)
    ends = (xp.max(z), xp.min(z))

    def log_sums(d: Array) -> tuple[Array, Array]:
        # The largest term of each sum, so that its exponential cannot underflow.
        top = [alpha * log_sigmoids(end + d)[i] for i, end in enumerate(ends)]
        top = [xp.where(t > _NEG_INF, t, xp.zeros_like(t)) for t in top]
        sums = [xp.zeros_like(d), xp.zeros_like(d)]
        for rows in block_slices(z.shape[0], 64 * max(1, d.shape[0]), z, cached=True):
            logs = log_sigmoids(z[rows] + d[:, None])
            for i in (0, 1):
                terms = xp.exp(alpha * logs[i] - top[i][:, None])
                part = xp.sum(terms, axis=1) if weight is None else terms @ weight[rows]
                sums[i] = sums[i] + part
        return top[0] + xp.log(sums[0]), top[1] + xp.log(sums[1])

    return log_sums


def _chebyshev(function: Sums, x: Array, low: float, high: float) -> np.ndarray | None:
    """Chebyshev coefficients of both functions from `low` to `high`; None if not resolved."""
    values = np.empty((0, 2))
    for degree in _DEGREES:
        if degree >= x.shape[0]:  # more nodes than points would not pay
            break
        nodes = chebyshev_nodes(degree)
        new = nodes[1::2] if values.size else nodes
        at = function(as_array(0.5 * (low + high) + 0.5 * (high - low) * new, x))
        fresh = np.stack([to_numpy(v).astype(np.float64) for v in at], axis=1)
        values = np.insert(values, range(1, len(values)), fresh, axis=0) if values.size else fresh
        finite = np.isfinite(values).all(axis=0)  # a class no reference row has gives -inf
        coefficients = chebyshev_series(np.where(finite, values, 0.0))
        scale = max(1.0, float(np.abs(values[:, finite]).max(initial=0.0)))
        tolerance = 16 * float(np.finfo(str(to_numpy(x[:1]).dtype)).eps) * scale
        if np.abs(coefficients[-2:]).max() <= tolerance:
            coefficients[0, ~finite] = _NEG_INF
            return coefficients
    return None


def chebyshev_nodes(degree: int) -> np.ndarray:
    """Extrema of the Chebyshev polynomial of that degree, from 1 down to -1."""
    return np.cos(np.pi * np.arange(degree + 1) / degree)


def chebyshev_series(values: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients from values at the extrema cos(pi k / N), k = 0 .. N."""
    coefficients = dct(values, type=1, axis=0) / (values.shape[0] - 1)
    coefficients[[0, -1]] /= 2
    return np.asarray(coefficients)


def _clenshaw(coefficients: np.ndarray, t: Array) -> tuple[Array, Array]:
    """Evaluate both Chebyshev series."""
    xp = array_namespace(t)
    values = []
    for series in coefficients.T:
        last = before = xp.zeros_like(t)
        for c in series[:0:-1]:
            last, before = 2 * t * last - before + float(c), last
        values.append(t * last - before + float(series[0]))
    return values[0], values[1]


def adjust_logits(reference: BinaryReference | None, z: np.ndarray) -> np.ndarray:
    """Log-odds after the last iteration against a reference; without one as they are."""
    if reference is None:
        return z
    *_, last = iterate_logits(z, reference)
    return last


class OneStep(NamedTuple):
    """One iteration of log-odds against given column sums."""

    log_s: tuple[Array, ...]  # (f,) of yes and no
    log_q: tuple[Array, ...]  # (f,)
    alpha: float

    def __call__(self, z: Array) -> Array:
        """Adjusted log-odds."""
        return step_logits(z, self.log_s, self.log_q, self.alpha)[0]


class Curve(NamedTuple):
    """Functions of one number, as polynomials of ``(z - center) * slope`` on pieces."""

    reach: float  # z lies between -reach and reach
    n_halvings: int  # that find a piece
    first: Array  # (f,) index of each function's first piece
    last: Array  # (f,) and of its last
    left: Array  # (pieces,) where the piece begins
    center: Array  # (pieces,)
    slope: Array  # (pieces,)
    coefficients: tuple[Array, ...]  # (pieces,) each, constant term first

    def __call__(self, z: Array) -> Array:
        """Values of the functions, one per column: a binary search, then a polynomial."""
        xp = array_namespace(z)
        reach = xp.zeros_like(z) + self.reach
        z = xp.maximum(xp.minimum(z, reach), -reach)
        at = self.first
        for step in reversed(range(self.n_halvings)):
            ahead = xp.minimum(at + 2**step, self.last)
            at = xp.where(self.left[ahead] > z, at, ahead)
        s = (z - self.center[at]) * self.slope[at]
        *lower, result = (c[at] for c in self.coefficients)
        for coefficient in reversed(lower):
            result = result * s + coefficient
        return result


def odds_function(
    references: Sequence[BinaryReference | None], threshold: float
) -> OneStep | Curve:
    """Return functions of log-odds in doubt: closed for one iteration, else tabulated."""
    example = next((reference for reference in references if reference is not None), None)
    if example is None or example.depth == 1:
        log_s, log_q = np.zeros((2, 2, len(references)))  # any number where nothing is adjusted
        for j, reference in enumerate(references):
            if reference is not None:
                first = next(reference.follow())
                log_s[:, j], log_q[:, j] = np.concatenate(first.sums), reference.log_q
        return OneStep(tuple(log_s), tuple(log_q), 1.0 if example is None else float(example.alpha))
    # Rounding leaves no more of the function than this.
    tolerance = _TOLERANCE * max(1.0, example.alpha ** (example.depth - 1))
    functions = [partial(adjust_logits, reference) for reference in references]
    return _tabulate(functions, largest_logit(threshold), tolerance)


def largest_logit(threshold: float) -> float:
    """Log-odds at which the entropy of two probabilities, in bits, falls to `threshold`."""
    if threshold >= 1:
        return 1e-3  # nothing is in doubt

    def excess(z: float) -> float:
        return float(binary_ambiguity(expit(np.array(-z)))) - threshold

    if excess(_LARGEST_LOGIT) >= 0:
        return _LARGEST_LOGIT
    return min(_LARGEST_LOGIT, 1e-3 + brentq(excess, 0.0, _LARGEST_LOGIT))


def _tabulate(functions: Sequence[Function], reach: float, tolerance: float) -> Curve:
    """Tabulate functions on [-reach, reach]; an error is relative where values exceed 1."""
    pieces = [_pieces(function, reach, tolerance) for function in functions]
    count = np.array([len(center) for center, _, _ in pieces])
    last = np.cumsum(count) - 1
    center, half, coefficients = (
        np.concatenate(part, axis=-1) for part in zip(*pieces, strict=True)
    )
    first = last + 1 - count
    n_halvings = int(np.max(last - first)).bit_length()
    where = reach, n_halvings, first, last, center - half
    return Curve(*where, center, 1 / half, tuple(coefficients))


def _pieces(
    function: Function, reach: float, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Polynomials on pieces, each cut in four until it is as exact as the function itself."""
    # A call costs about the same for ten points and for ten thousand: one for all of one size.
    half = np.full(_PIECES, reach / _PIECES)
    center = reach * (2 * np.arange(_PIECES) + 1 - _PIECES) / _PIECES
    done: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    n_pieces = 0
    while center.size:
        coefficients, good = _fit_pieces(function, center, half, tolerance)
        too_many = n_pieces + 4 * center.size > _MAX_PIECES
        good |= too_many | (half < 1e-12 * np.maximum(1.0, np.abs(center)))
        done.append((center[good], half[good], coefficients[:, good]))
        n_pieces += int(good.sum())
        quarter = half[~good] / 4
        center = (center[~good] + quarter * np.array([[-3.0], [-1.0], [1.0], [3.0]])).reshape(-1)
        half = np.tile(quarter, 4)
    centers, halves, coefficients = (
        np.concatenate(part, axis=-1) for part in zip(*done, strict=True)
    )
    order = np.argsort(centers)
    return centers[order], halves[order], coefficients[:, order]


def _fit_pieces(
    function: Function, center: np.ndarray, half: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate on each piece; say where the result holds between the nodes, too."""
    nodes = chebyshev_nodes(_DEGREE)
    between = 0.5 * (nodes[1:] + nodes[:-1])
    points = center + half * np.concatenate([nodes, between])[:, None]
    values = function(points.reshape(-1)).reshape(points.shape)
    series = chebyshev_series(values[: nodes.size])
    coefficients = _TO_POWERS @ series
    interpolated = np.vander(between, _DEGREE + 1, increasing=True) @ coefficients
    truth = values[nodes.size :]
    error = np.abs(interpolated - truth) / np.maximum(1.0, np.abs(truth))
    return coefficients, (error <= tolerance).all(axis=0)
