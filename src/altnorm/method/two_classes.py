r"""The two-class kernel: a row is one logit, the reference's column sums are smooth functions.

With two classes a row is its logit `z`, and one iteration maps ``z`` to ``alpha * z + g`` where `g`
is common to all rows. So the reference that a row in doubt sees is the reference iterated on its
own (the anchor, see :mod:`altnorm.method.scaling`) shifted by one number `d`, and the two column
sums are smooth functions of `d`:

.. math:: F_\pm(d) = \log \sum_i w_i \, \sigma(\pm(z_i + d))^\alpha .

They are evaluated at a few Chebyshev nodes and interpolated at the shifts of all rows in doubt, so
the cost does not grow with the number of rows in doubt.

Several labels per row are such problems, yes or no: "pairs" (the paper) pools all n * m
probabilities, with one prior and one reference for all labels; "labelwise" gives each label its
own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.fft import dct
from scipy.special import expit, logit

from altnorm._base.arrays import Array, array_namespace, as_array, block_slices, quiet, to_numpy
from altnorm.method.scaling import log_add, weigh

Sums = Callable[[Array], tuple[Array, Array]]  # both column sums at some shifts

_NEG_INF = -math.inf
_DEGREES = (4, 8, 16, 32, 64)  # each set of nodes contains the one before
_SHORT = 17  # terms; labels with few share their operations, and would wait for one with many


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

    column_sums: Sums | None  # without smoothing
    sums: list[Array]  # the two column sums at shift 0, with smoothing; (1,) each
    step: Array  # (1,) what is added to all logits
    table: SumsTable | None = None  # of `column_sums`, for every shift that a row can cause

    def sums_at(self, shift: Array) -> tuple[Array, Array]:
        """Column sums at the shifts of many rows, without smoothing."""
        if self.table is not None:
            return self.table.at(shift)
        assert self.column_sums is not None
        return interpolate(self.column_sums, shift)


class BinaryReference(NamedTuple):
    """What a row in doubt meets, where there are two classes: logits of the first one."""

    logit: Array  # (n,)
    weight: Array | None  # (n,)
    log_q: tuple[Any, Any]  # of both classes, finite
    alpha: float
    depth: int
    log_mass: Any  # log of the smoothing's total weight
    stages: tuple[LogitStage, ...] = ()  # its own iterations, where they are kept

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
        """Return None where the prior is 0 or 1, or no entry counts: they say nothing."""
        if weight is not None:
            logits, weight = logits[weight > 0], weight[weight > 0].astype(np.float64, copy=False)
        if not 0 < prior < 1 or not logits.size:
            return None
        total = logits.size if weight is None else float(weight.sum())
        log_q = math.log(prior), math.log1p(-prior)  # exact for the prior of a rare label, too
        log_mass = math.log(smoothing * total) if smoothing else None
        return cls(logits, weight, log_q, alpha, depth, log_mass)

    def follow(self) -> Iterator[LogitStage]:
        """Yield its own iterations, which no row in doubt changes."""
        yield from self.stages
        z = self.logit
        for _ in range(0 if self.stages else self.depth):
            column_sums = _column_sums(z, self.weight, self.alpha)
            sums = self.smoothed(column_sums(array_namespace(z).zeros_like(z[:1])))
            step = prior_over_sums(self.log_q, sums)
            yield LogitStage(column_sums, sums, step)
            z = self.alpha * z + step

    def smoothed(self, log_sums: tuple[Array, Array]) -> list[Array]:
        """Add the smoothing's share to the two column sums."""
        if self.log_mass is None:
            return list(log_sums)
        xp = array_namespace(log_sums[0])
        pairs = zip(log_sums, self.log_q, strict=True)
        return [log_add(s, xp.zeros_like(s) + (self.log_mass + q)) for s, q in pairs]

    def kept(self) -> BinaryReference:
        """Work the iterations out once, so that rows that come one by one do without the logits."""
        with quiet(np):
            return self._replace(stages=tuple(self._tabulated()))

    def _tabulated(self) -> Iterator[LogitStage]:
        """Tabulate the column sums for all shifts that a row can cause.

        One row among many hardly moves the reference: its own share of a column sum is between 0
        and 1, which bounds the shifts. On so short an interval few terms are exact.
        """
        low = high = 0.0
        for stage in self.follow():
            assert stage.column_sums is not None
            stage = stage._replace(table=_table(stage.column_sums, low, high))
            yield stage
            ends = stage.sums
            if low < high:
                ends = self.smoothed(stage.sums_at(np.array([low, high])))
            with_row = [np.logaddexp(end, 0.0) for end in ends]
            # The first sum grows with the shift and the second falls.
            least = prior_over_sums(self.log_q, [with_row[0][-1:], ends[1][-1:]]) - stage.step
            most = prior_over_sums(self.log_q, [ends[0][:1], with_row[1][:1]]) - stage.step
            low = self.alpha * low + float(least[0])
            high = self.alpha * high + float(most[0])

    def has_short_tables(self) -> bool:
        """Whether few terms per iteration stand for the reference, which is kept."""
        tables = [stage.table for stage in self.stages[1:]]
        return all(table is not None and len(table.coefficients) <= _SHORT for table in tables)


def iterate_logits(logit_b: Array, reference: BinaryReference) -> Iterator[Array]:
    """Yield the logits (t,) of all rows in doubt after each iteration."""
    xp, alpha, log_q = array_namespace(logit_b), reference.alpha, reference.log_q
    shift: Array | None = None
    for stage in reference.follow():
        if shift is None:  # all rows meet the same reference
            shift = xp.zeros_like(logit_b)
            others = [s + shift for s in stage.sums]
        else:
            others = reference.smoothed(stage.sums_at(shift))
        logit_b, sums = step_logits(logit_b, others, log_q, alpha)
        shift = alpha * shift + (prior_over_sums(log_q, sums) - stage.step)
        shift = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        yield logit_b


def step_logits(
    logit_b: Array, others: Sequence[Array], log_q: Sequence[Any], alpha: float
) -> tuple[Array, list[Array]]:
    """One iteration of the rows, given the reference's log column sums; and those with the rows."""
    pairs = zip(log_sigmoids(logit_b), others, log_q, strict=True)
    first, second = (weigh(alpha * own, sums, q) for own, sums, q in pairs)
    return first[0] - second[0], [first[1], second[1]]


def prior_over_sums(log_q: Sequence[Any], log_s: Sequence[Array]) -> Array:
    """Log-odds that one iteration adds to every row: ``log(q_1 / S_1) - log(q_2 / S_2)``."""
    xp = array_namespace(log_s[0])
    step = (log_q[0] - log_q[1]) - (log_s[0] - log_s[1])
    return xp.where(xp.isfinite(step), step, xp.zeros_like(step))


def _table(function: Sums, low: float, high: float) -> SumsTable | None:
    """Column sums as polynomials; None where they are not resolved, or nothing shifts."""
    if not low < high:
        return None
    coefficients = _chebyshev(function, np.linspace(low, high, _DEGREES[-1] + 2))
    if coefficients is None:
        return None
    return SumsTable(coefficients[:, :, None], np.array([low]), np.array([high]))


def interpolate(function: Sums, x: Array) -> tuple[Array, Array]:
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


def _at_distinct(function: Sums, part: Array) -> tuple[Array, Array]:
    """Evaluate at the points themselves; once if they are all the same."""
    xp = array_namespace(part)
    if part.shape[0] > 1 and bool(part[0] == part[-1]):
        first, second = function(part[:1])
        return first + xp.zeros_like(part), second + xp.zeros_like(part)
    return function(part)


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


def _chebyshev(function: Sums, part: Array) -> np.ndarray | None:
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
    coefficients = dct(values, type=1, axis=0) / (values.shape[0] - 1)
    coefficients[[0, -1]] /= 2
    return np.asarray(coefficients)


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


def adjust_binary(p: np.ndarray, reference: BinaryReference | None) -> np.ndarray:
    """Alternating normalization of yes-probabilities against yes-probabilities.

    Where the reference says nothing, `p` comes back as it was.
    """
    if reference is None or not p.size:
        return p.copy()
    with quiet(np):
        return np.asarray(expit(adjust_logits(logit(p), reference)))


def adjust_logits(z: np.ndarray, reference: BinaryReference) -> np.ndarray:
    """As `adjust_binary`, from log-odds to log-odds."""
    *_, last = iterate_logits(z, reference)
    return last


class LabelReferences(NamedTuple):
    """The references of all labels, worked out once for a few doubts about each."""

    n_labels: int
    stacked: BinaryReference | None  # of labels with short tables, side by side
    which: list[int]  # these labels
    others: list[tuple[int, BinaryReference]]  # of which each is a problem of its own

    @classmethod
    def of(cls, references: Iterable[BinaryReference | None]) -> LabelReferences:
        """Follow all of them. A label whose reference says nothing is left out."""
        kept = [None if one is None else one.kept() for one in references]
        known = [(label, one) for label, one in enumerate(kept) if one is not None]
        short = [(label, one) for label, one in known if one.has_short_tables()]
        others = [(label, one) for label, one in known if not one.has_short_tables()]
        stacked = _stack([one for _, one in short]) if short else None
        return cls(len(kept), stacked, [label for label, _ in short], others)

    def adjust(self, proba: np.ndarray, doubt: np.ndarray) -> np.ndarray:
        """Return `proba` with its doubts resolved."""
        p = np.where(doubt, proba, 0.5).astype(np.float64, copy=False).T
        by_label = p.reshape(self.n_labels, -1)
        if self.stacked is not None:
            by_label[self.which] = adjust_binary(by_label[self.which], self.stacked)
        for label, reference in self.others:
            by_label[label] = adjust_binary(by_label[label], reference)
        found = by_label.reshape(p.shape).T
        return np.where(doubt, found, proba).astype(proba.dtype, copy=False)


def _stack(references: Sequence[BinaryReference]) -> BinaryReference:
    """Make one reference of several that are kept, along an axis in front."""
    first = references[0]
    yes, no = np.array([one.log_q for one in references]).T[:, :, None]
    log_mass = None
    if first.log_mass is not None:
        log_mass = np.array([one.log_mass for one in references])[:, None]
    stages = zip(*(one.stages for one in references), strict=True)
    return first._replace(
        log_q=(yes, no), log_mass=log_mass, stages=tuple(map(_stack_stages, stages))
    )


def _stack_stages(stages: Sequence[LogitStage]) -> LogitStage:
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
