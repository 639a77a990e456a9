r"""The two-class kernel: a row is one logit, the reference's column sums are smooth functions.

With two classes a row is its logit `z`, and one iteration maps ``z`` to ``alpha * z + g`` where `g`
is common to all rows. So the reference that a row in doubt sees is the reference iterated on its
own (the anchor, see :mod:`altnorm.method.scaling`) shifted by one number `d`, and the two column
sums are smooth functions of `d`:

.. math:: F_\pm(d) = \log \sum_i w_i \, \sigma(\pm(z_i + d))^\alpha .

They are evaluated at a few Chebyshev nodes and interpolated at the shifts of all rows in doubt, so
the cost does not grow with the number of rows in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from altnorm._base.arrays import Array, array_namespace, as_array, block_slices, to_numpy
from altnorm.method.scaling import log_add

_NEG_INF = -math.inf
_DEGREES = (4, 8, 16, 32, 64)  # each set of nodes contains the one before


def log_sigmoids(z: Array) -> tuple[Array, Array]:
    """Logs of the two class probabilities of logits `z`."""
    xp = array_namespace(z)
    bend = xp.log1p(xp.exp(-xp.abs(z)))
    zero = xp.zeros_like(z)
    return xp.minimum(z, zero) - bend, xp.minimum(-z, zero) - bend


class SumsTable(NamedTuple):
    """The two column sums as polynomials on an interval, for NumPy arrays."""

    coefficients: np.ndarray  # (degree + 1, 2, 1) of Chebyshev series
    low: np.ndarray  # (1,)
    high: np.ndarray  # (1,)

    def at(self, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return both at shifts inside the interval."""
        t = _on_unit(shift, self.low, self.high)
        first, second = chebyshev.chebval(t, self.coefficients, tensor=False)
        return first, second


class LogitStage(NamedTuple):
    """One iteration of the reference on its own, which no row in doubt changes."""

    column_sums: Callable[[Array], tuple[Array, Array]] | None  # at a shift, without smoothing
    sums: list[Array]  # the two column sums at shift 0, with smoothing; (1,) each
    step: Array  # (1,) what is added to all logits
    table: SumsTable | None = None  # of `column_sums`, for every shift that a row can cause

    def sums_at(self, shift: Array) -> tuple[Array, Array]:
        """Column sums at the shifts of many rows, without smoothing."""
        if self.table is not None:
            return self.table.at(shift)
        assert self.column_sums is not None
        return interpolate(self.column_sums, shift)


def iterate_logits(
    logit_b: Array,
    logit_a: Array,
    weight: Array | None,
    log_q: tuple[float, float],
    *,
    alpha: float,
    depth: int,
    log_mass: float | None = None,
) -> Iterator[Array]:
    """Yield the logits of all rows after each of `depth` iterations.

    Parameters
    ----------
    logit_b : array of shape (t,)
        Log-odds of the first class for the rows in doubt.
    logit_a : array of shape (n,)
        The same for the reference rows.
    weight : array of shape (n,) or None
        Weights of the reference rows.
    log_q : pair of float
        Log prior of the two classes, both finite.
    alpha, depth, log_mass
        Exponent, iterations, log of the smoothing's total weight.
    """
    path = logit_path(logit_a, weight, log_q, alpha=alpha, log_mass=log_mass)
    path = islice(path, depth)
    yield from iterate_logits_along(logit_b, path, log_q, alpha=alpha, log_mass=log_mass)


def iterate_logits_along(
    logit_b: Array,
    path: Iterable[LogitStage],
    log_q: tuple[float, float],
    *,
    alpha: float,
    log_mass: float | None,
) -> Iterator[Array]:
    """As :func:`iterate_logits`, along the reference's own iterations, which others may share."""
    xp = array_namespace(logit_b)
    shift: Array | None = None
    for stage in path:
        if shift is None:  # all rows meet the same reference
            shift = xp.zeros_like(logit_b)
            others = [s + shift for s in stage.sums]
        else:
            others = _smoothed(stage.sums_at(shift), log_q, log_mass)
        logit_b, own = step_logits(logit_b, others, log_q, alpha)
        step = _prior_over_sums(log_q, [log_add(s, o) for s, o in zip(others, own, strict=True)])
        shift = alpha * shift + (step - stage.step)
        shift = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        yield logit_b


def step_logits(
    logit_b: Array, others: Sequence[Array], log_q: Sequence[Any], alpha: float
) -> tuple[Array, list[Array]]:
    """One iteration of the rows, given the reference's two column sums; and the rows' own shares.

    Shares are logs of ``p^alpha``, as the column sums are.
    """
    own = [alpha * part for part in log_sigmoids(logit_b)]
    kept = [_softplus(_gap(s, o)) for s, o in zip(others, own, strict=True)]
    return (log_q[0] - kept[0]) - (log_q[1] - kept[1]), own


def logit_path(
    logit_a: Array,
    weight: Array | None,
    log_q: tuple[float, float],
    *,
    alpha: float,
    log_mass: float | None,
) -> Iterator[LogitStage]:
    """Follow the reference on its own, as far as somebody asks."""
    while True:
        column_sums = _column_sums(logit_a, weight, alpha)
        zero = array_namespace(logit_a).zeros_like(logit_a[:1])
        sums = _smoothed(column_sums(zero), log_q, log_mass)
        step = _prior_over_sums(log_q, sums)
        yield LogitStage(column_sums, sums, step)
        logit_a = alpha * logit_a + step


def tabulate(
    path: Iterable[LogitStage], log_q: tuple[float, float], *, alpha: float, log_mass: float | None
) -> Iterator[LogitStage]:
    """Work the column sums out once for all rows, so that a row needs the reference no more.

    One row among many hardly moves the reference: its own share of a column sum is between 0 and
    1, which bounds the shifts that it can cause. On so short an interval few terms are exact.
    """
    low = high = 0.0
    for stage in path:
        assert stage.column_sums is not None
        stage = stage._replace(table=_table(stage.column_sums, low, high))
        yield stage
        ends = stage.sums
        if low < high:
            ends = _smoothed(stage.sums_at(np.array([low, high])), log_q, log_mass)
        with_row = [np.logaddexp(end, 0.0) for end in ends]
        # The first sum grows with the shift and the second falls.
        least = _prior_over_sums(log_q, [with_row[0][-1:], ends[1][-1:]]) - stage.step
        most = _prior_over_sums(log_q, [ends[0][:1], with_row[1][:1]]) - stage.step
        low, high = alpha * low + float(least[0]), alpha * high + float(most[0])


def stack_stages(stages: Sequence[LogitStage]) -> LogitStage:
    """Make one stage of those of several problems, along an axis in front."""
    tables = [stage.table for stage in stages if stage.table is not None]
    return LogitStage(
        None,
        [np.stack([stage.sums[i] for stage in stages]) for i in (0, 1)],
        np.stack([stage.step for stage in stages]),
        _stack_tables(tables) if tables else None,
    )


def _stack_tables(tables: Sequence[SumsTable]) -> SumsTable:
    """Make one table of several; the shorter series end in zeros."""
    length = max(len(table.coefficients) for table in tables)
    padded = np.zeros((length, 2, len(tables), 1))
    for i, table in enumerate(tables):
        padded[: len(table.coefficients), :, i, :] = table.coefficients
    low, high = (np.stack([table[i] for table in tables]) for i in (1, 2))
    return SumsTable(padded, low, high)


def _table(
    function: Callable[[Array], tuple[Array, Array]], low: float, high: float
) -> SumsTable | None:
    """Column sums as polynomials; None where they are not resolved, or nothing shifts."""
    if not low < high:
        return None
    coefficients = _chebyshev(function, np.linspace(low, high, _DEGREES[-1] + 2))
    if coefficients is None:
        return None
    return SumsTable(coefficients[:, :, None], np.array([low]), np.array([high]))


def _smoothed(
    log_sums: tuple[Array, Array], log_q: tuple[float, float], log_mass: float | None
) -> list[Array]:
    """Add the smoothing's share to the two column sums."""
    if log_mass is None:
        return list(log_sums)
    xp = array_namespace(log_sums[0])
    pairs = zip(log_sums, log_q, strict=True)
    return [log_add(s, xp.zeros_like(s) + (log_mass + q)) for s, q in pairs]


def interpolate(function: Callable[[Array], tuple[Array, Array]], x: Array) -> tuple[Array, Array]:
    """Values of two smooth functions at many points, from a few evaluations.

    Chebyshev interpolation with as many nodes as needed for rounding accuracy; an interval on
    which 65 nodes do not suffice is halved, and one with few points is evaluated directly.
    """
    xp = array_namespace(x)
    order = xp.argsort(x)
    points = xp.take(x, order)
    done: list[tuple[Array, Array]] = []
    todo = [points]
    while todo:
        part = todo.pop()
        if part.shape[0] <= _DEGREES[0] + 1 or bool(part[0] == part[-1]):
            done.append(_at_distinct(function, part))
            continue
        coefficients = _chebyshev(function, part)
        if coefficients is not None:
            done.append(_clenshaw(coefficients, _on_unit(part, part[0], part[-1])))
        elif part.shape[0] <= _DEGREES[-1] + 1:
            done.append(function(part))
        else:
            middle = 0.5 * (part[0] + part[-1])
            cut = int(xp.sum(xp.astype(part < middle, xp.int64)))
            cut = min(max(cut, 1), part.shape[0] - 1)
            todo += [part[cut:], part[:cut]]
    back = xp.argsort(order)
    first, second = (xp.concat([pair[i] for pair in done]) for i in (0, 1))
    return xp.take(first, back), xp.take(second, back)


def _at_distinct(
    function: Callable[[Array], tuple[Array, Array]], part: Array
) -> tuple[Array, Array]:
    """Evaluate at the points themselves; once if they are all the same."""
    xp = array_namespace(part)
    if part.shape[0] > 1 and bool(part[0] == part[-1]):
        first, second = function(part[:1])
        return first + xp.zeros_like(part), second + xp.zeros_like(part)
    return function(part)


def _column_sums(
    z: Array, weight: Array | None, alpha: float
) -> Callable[[Array], tuple[Array, Array]]:
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


def _chebyshev(function: Callable[[Array], tuple[Array, Array]], part: Array) -> np.ndarray | None:
    """Chebyshev coefficients of both functions on the range of `part`; None if not resolved."""
    low, high = float(part[0]), float(part[-1])
    values = np.empty((0, 2))
    for degree in _DEGREES:
        if degree >= part.shape[0]:
            break
        nodes = chebyshev_nodes(degree)
        new = nodes if values.size == 0 else nodes[1::2]
        at = function(as_array(0.5 * (low + high) + 0.5 * (high - low) * new, part))
        fresh = np.stack([to_numpy(v).astype(np.float64) for v in at], axis=1)
        values = fresh if values.size == 0 else _interleave(values, fresh)
        finite = np.isfinite(values).all(axis=0)  # a class no reference row has gives -inf
        coefficients = chebyshev_series(np.where(finite, values, 0.0))
        scale = max(1.0, float(np.abs(values[:, finite]).max(initial=0.0)))
        tolerance = 16 * float(np.finfo(str(to_numpy(part[:1]).dtype)).eps) * scale
        if np.abs(coefficients[-2:]).max() <= tolerance:
            coefficients[0, ~finite] = _NEG_INF
            return coefficients
    return None


def _interleave(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    merged = np.empty((old.shape[0] + new.shape[0], old.shape[1]))
    merged[0::2], merged[1::2] = old, new
    return merged


def chebyshev_nodes(degree: int) -> np.ndarray:
    """Extrema of the Chebyshev polynomial of that degree, from 1 down to -1."""
    return np.cos(np.pi * np.arange(degree + 1) / degree)


def chebyshev_series(values: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients from values at the extrema cos(pi k / N), k = 0 .. N."""
    degree = values.shape[0] - 1
    k = np.arange(degree + 1)
    ends = np.where((k == 0) | (k == degree), 0.5, 1.0)
    transform = np.cos(np.pi * np.outer(k, k) / degree) * ends[None, :] * ends[:, None]
    return (2.0 / degree) * (transform @ values)


def _on_unit(x: Array, low: Array | float, high: Array | float) -> Array:
    """Points of an interval as points between -1 and 1."""
    return (2 * x - (low + high)) / (high - low)


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


def _softplus(x: Array) -> Array:
    xp = array_namespace(x)
    return xp.maximum(x, xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x)))


def _gap(others: Array, own: Array) -> Array:
    """``others - own``, infinite where the row itself has probability zero."""
    xp = array_namespace(own)
    return xp.where(own > _NEG_INF, others - own, xp.full_like(own, math.inf))


def _prior_over_sums(log_q: tuple[float, float], log_s: list[Array]) -> Array:
    """Log-odds that one iteration adds to every row: ``log(q_1 / S_1) - log(q_2 / S_2)``."""
    xp = array_namespace(log_s[0])
    step = (log_q[0] - log_q[1]) - (log_s[0] - log_s[1])
    return xp.where(xp.isfinite(step), step, xp.zeros_like(step))
