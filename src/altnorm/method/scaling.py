r"""The alternating-normalization kernels: what `paper.py` says, exact, for many rows at once.

For one row `b` and reference rows `A` (weights `w`, prior `q`), one iteration is::

    S_j  = sum_i w_i A_ij^alpha + b_j^alpha           the column sums
    A_ij = A_ij^alpha q_j / S_j, rows divided by their sums;    b likewise

A power of a diagonal scaling is a diagonal scaling. So the reference that row `t` sees differs from
the reference iterated on its own, the *anchor*, by one factor per class and one factor per row::

    A_t[i, j] = A[i, j] * exp(C[t, j]) / exp(R[t, i])

`C` and `R` come from two matrix products with matrices that all rows share. Since the anchor is
renormalised in every iteration, its rows and columns stay well scaled however large alpha^depth
gets, and rounding errors are removed by the next normalization instead of being multiplied by
alpha. Zeros travel as ``-inf`` in the log domain. What the linear products still cannot represent
is recomputed in the log domain, entry by entry.

The formula for a row is written in `weigh`, and for the reference in `column_factors`. It stands
here without logarithms, too, in `step_once` and `iterate_few`; ARCHITECTURE.md says why. Small
references that amplify rounding go with each row through `iterate_stacked`. There are `t` rows in
doubt, `n` reference rows and `m` classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from altnorm._base import arrays
from altnorm._base.arrays import Array, array_namespace, block_slices, device, quiet, take_entries

_NEG_INF = -math.inf
_MODERATE = 64.0  # an alpha whose power of a row sum that is 1 to rounding cannot overflow
_FEW = 32  # terms that are looked at first where a sum underflowed


class LogReference(NamedTuple):
    """What a row in doubt meets: reference rows, class prior, exponent; zeros are ``-inf``."""

    log_a: Array  # (n, m) reference rows
    log_w: Array | None  # (n,) their weights; None counts each once
    log_q: Array  # (m,) class prior
    alpha: float
    log_mass: float | None = None  # log of the smoothing's total weight

    def smoothed(self, log_s: Array) -> Array:
        """Add the smoothing's share to log column sums."""
        return log_s if self.log_mass is None else log_add(log_s, self.log_mass + self.log_q)


class Anchor(NamedTuple):
    """The reference after one iteration on its own, in the forms that the rows in doubt need."""

    log_a: Array  # (n, m) log of the new reference, rows summing to 1
    log_c: Array  # (m,)   log of the column factors q_j / S_j, 0 where S_j is 0
    log_r: Array  # (n,)   log of the row sums before their division
    shares: Array  # (n, m) w_i A_ij^alpha q_j / S_j: the reference's share of each column
    log_p: Array  # (m,)   log of the shares' column sums, -inf where no row has the class


class Rows(NamedTuple):
    """The state of a block of rows in doubt."""

    log_b: Array  # (t, m) log of the adjusted rows
    log_c: Array  # (t, m) log of the factors between anchor and the reference the row sees


def logsumexp(x: Array, axis: int) -> Array:
    """``log(sum(exp(x)))`` along `axis`, kept as an axis of length 1; -inf for empty support."""
    xp = array_namespace(x)
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(top > _NEG_INF, top, xp.zeros_like(top))
    return top + xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True))


def log_add(x: Array, y: Array) -> Array:
    """``log(exp(x) + exp(y))``; vectorises where the library's own ``logaddexp`` does not."""
    xp = array_namespace(x)
    top = xp.maximum(x, y)
    log_ratio = xp.where(top > _NEG_INF, xp.minimum(x, y) - top, top)
    return top + xp.log1p(xp.exp(log_ratio))


def weigh(log_power: Array, log_others: Array, log_q: Array) -> tuple[Array, Array]:
    """Weigh a row against the others of its column: the paper's iteration, in logs.

    With ``log_power = alpha log b_j`` and `log_others` the log of what the others put into column
    j, return ``log(q_j b_j^alpha / S_j)`` and ``log S_j``, where S_j is the sum of both. A row that
    dominates its column gets exactly log q_j, with no difference of large numbers.
    """
    xp = array_namespace(log_power)
    absent = xp.full_like(log_power, math.inf)
    log_ratio = xp.where(log_power > _NEG_INF, log_others - log_power, absent)
    softplus = xp.log1p(xp.exp(-xp.abs(log_ratio)))  # what is added to the larger of two logs
    scores = log_q - (xp.maximum(log_ratio, xp.zeros_like(log_ratio)) + softplus)
    return scores, xp.maximum(log_others + xp.zeros_like(log_power), log_power) + softplus


def column_log_sums(reference: LogReference) -> Array:
    """Log of ``sum_i w_i A_ij^alpha`` for each class; -inf where there is nothing to add up."""
    log_a, log_w, log_q, alpha, _ = reference
    xp = array_namespace(log_a)
    parts = [xp.full_like(log_q, _NEG_INF)[None, :]]
    for rows in block_slices(log_a.shape[0], 24 * log_a.shape[1], log_a, cached=True):
        x = alpha * log_a[rows, :]
        parts.append(logsumexp(x if log_w is None else x + log_w[rows, None], axis=0))
    return logsumexp(xp.concat(parts), axis=0)[0, :]


def column_factors(log_sums: Array, reference: LogReference) -> Array:
    """Log of ``q_j / S_j``, 0 where no row has the class: what a reference row is multiplied by."""
    xp = array_namespace(log_sums)
    log_c = reference.log_q - reference.smoothed(log_sums)
    return xp.where(log_sums > _NEG_INF, log_c, xp.zeros_like(log_c))


class ColumnSums(NamedTuple):
    """What rows in doubt meet in one iteration, prepared for many of them."""

    log_s: Array  # (m,) log of what reference and smoothing put into each column; or (k, m)
    q: Array  # (m,) class prior; or (k, m)
    s: Array  # the sums themselves
    unused: Array | None  # which classes no reference row has; None where all are used
    is_linear: bool  # whether no sum is so small that a power beside it may underflow

    @classmethod
    def of(cls, log_s: Array, q: Array, like: Array) -> ColumnSums:
        """Prepare given logs of sums for rows of the dtype of `like`."""
        xp = array_namespace(log_s)
        unused = log_s == _NEG_INF
        s = xp.where(unused, xp.full_like(log_s, smallest_safe(like)), xp.exp(log_s))
        is_linear = not bool(xp.any(_is_low(log_s, like)))
        return cls(log_s, q, s, unused if bool(xp.any(unused)) else None, is_linear)

    def take(self, rows: np.ndarray) -> ColumnSums:
        """Return those of some rows, of which each meets its own."""
        log_s, q, s = (arrays.take_rows(values, rows) for values in (self.log_s, self.q, self.s))
        unused = None if self.unused is None else arrays.take_rows(self.unused, rows)
        return ColumnSums(log_s, q, s, unused, self.is_linear)


def step_once(p: Array, sums: ColumnSums, *, alpha: float, each: np.ndarray | None = None) -> Array:
    """One iteration for many rows, given the reference's column sums, and the prior.

    ``b_j`` becomes ``q_j b_j^alpha / (s_j + b_j^alpha)``, divided by the sum over classes. Where
    rows meet different ones, `each` says which of `sums` are its own.
    """
    at_once = step_in_kernel(p, sums.log_s, sums.q, alpha=alpha) if each is None else None
    if at_once is not None:
        return at_once
    xp, tiny = array_namespace(p), p.shape[1] * smallest_safe(p)
    # NumPy is slow to sum over a short last axis, and not to multiply.
    ones = xp.ones_like(sums.s if each is None else sums.s[0, :])

    def step(b: Array, met: ColumnSums) -> Array:
        if met.is_linear:
            power = b if alpha == 1 else b**alpha
            if met.unused is not None:  # a column that no reference row uses is the row's alone
                power = xp.where(met.unused, xp.astype(b > 0, b.dtype), power)
            new = met.q * power / (met.s + power)
            total = new @ ones
            if bool(xp.all(total > tiny)):  # so that the largest is above what may be lost
                return new / total[:, None]
        scores, _ = weigh(alpha * xp.log(b), met.log_s, xp.log(met.q))
        new = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return new / xp.sum(new, axis=1, keepdims=True)

    with quiet(xp):
        if each is None:
            return arrays.map_blocks(lambda b: step(b, sums), p)
        blocks = block_slices(p.shape[0], 48 * p.shape[1], p, cached=True)
        return arrays.concat_blocks((step(p[rows, :], sums.take(each[rows])) for rows in blocks), p)


def step_in_kernel(
    p: Array, log_s: Array, q: Array, *, alpha: float, tolerance: float = math.inf
) -> Array | None:
    """As `step_once`, by one kernel that reads the rows once and looks for faults on the way.

    None without such a kernel, and where it finds rows that are no distributions, or numbers so
    small that they may have lost terms to underflow.
    """
    kernels = arrays.fused(p, log_s, q)
    if kernels is None:
        return None
    xp = array_namespace(p)
    # NaN goes through to the rows, so that a single question to the device finds every fault.
    s = xp.where(_is_low(log_s, p), math.nan, xp.exp(log_s))
    new, is_fine = kernels.step_rows(p, s, q, alpha, tolerance, smallest_safe(p))
    return new if is_fine else None


def _is_low(log_s: Array, like: Array) -> Array:
    """Which sums are so small that a power beside them may underflow."""
    return (log_s > _NEG_INF) & (log_s < 0.5 * math.log(smallest_safe(like)))


class ReferenceStep(NamedTuple):
    """One iteration of the reference on its own."""

    reference: LogReference  # before the iteration
    linear: Array | None  # exp of its logs; None in the first iteration, which needs no product
    anchor: Anchor


def iterate(log_b: Array, steps: Iterable[ReferenceStep], *, depth: int) -> Iterator[list[Array]]:
    """Yield, for each of `depth` iterations, the logs of all rows as a list of blocks."""
    states: list[Rows] = []
    for step in islice(steps, depth):
        anchor, reference = step.anchor, step.reference
        states = states or _start(log_b, reference)
        for i, state in enumerate(states):
            log_p = anchor.log_p[None, :]
            if step.linear is not None:
                log_p = reference_share(state.log_c, step.linear, anchor, reference)
            states[i] = next_rows(state, log_p, anchor, reference)
        del step, anchor, reference  # each is as large as the reference, and the next one comes
        yield [s.log_b for s in states]


def iterate_few(b: Array, steps: Iterable[ReferenceStep]) -> Array | None:
    """As `iterate`, without logarithms; None where a number is too small or large for that."""
    xp, limit = array_namespace(b), smallest_safe(b)
    c, zero = xp.ones_like(b), xp.zeros_like(b)
    for reference, linear, anchor in steps:
        alpha, q, factor = reference.alpha, xp.exp(reference.log_q), xp.exp(anchor.log_c)
        supported = anchor.log_p > _NEG_INF
        if linear is None:
            others = xp.exp(anchor.log_p)
        else:
            sums = xp.where(supported, c, zero) @ linear.T
            if float(xp.min(sums)) <= max(limit, limit ** (1 / alpha)):
                return None
            others = arrays.power_in_place(sums, -alpha) @ anchor.shares
        power = (b / c) ** alpha * factor
        if reference.log_mass is not None:
            others = others + math.exp(reference.log_mass) * q * factor * c**-alpha
        total = others + power
        held = ((power > limit) | (b == 0)) & (total < 1 / limit) & ((total > limit) | ~supported)
        if not bool(xp.all(held)):
            return None
        total = xp.where(total > 0, total, xp.ones_like(total))  # a class that nobody has
        b = q * power / total
        b = b / xp.sum(b, axis=1, keepdims=True)
        c = xp.where(supported, q / total, xp.ones_like(total))
    return b


def _start(log_b: Array, reference: LogReference) -> list[Rows]:
    """Cut the rows in doubt into blocks; they have not met the reference yet."""
    n, m = reference.log_a.shape
    no_factor = array_namespace(log_b).zeros_like(reference.log_q)[None, :]
    slices = block_slices(log_b.shape[0], 8 * (4 * n + 8 * m), log_b, cached=False)
    return [Rows(log_b[rows, :], no_factor) for rows in slices]


def keep_steps(steps: Iterable[ReferenceStep], depth: int) -> tuple[ReferenceStep, ...]:
    """Work out so many iterations once, for rows that come one by one."""
    first, *later = islice(steps, depth)
    # Shares only serve the products.
    return first._replace(anchor=first.anchor._replace(shares=None)), *later


def reference_steps(reference: LogReference) -> Iterator[ReferenceStep]:
    """Yield the reference's own iterations, without end; no row in doubt changes them."""
    linear = None
    while True:
        anchor = next_anchor(reference)
        yield ReferenceStep(reference, linear, anchor)
        reference = reference._replace(log_a=anchor.log_a)
        del anchor, linear  # each is as large as the reference
        linear = array_namespace(reference.log_a).exp(reference.log_a)


def next_anchor(reference: LogReference) -> Anchor:
    """One iteration of the reference on its own."""
    # These are the largest arrays beside the products; what is ours is changed in place.
    log_a, log_w = reference.log_a, reference.log_w
    xp = array_namespace(log_a)
    log_sums = column_log_sums(reference)
    log_c = column_factors(log_sums, reference)
    x = reference.alpha * log_a
    x += log_c
    if log_w is not None:
        x += log_w[:, None]
    shares = xp.exp(x)
    row_sums = xp.sum(shares, axis=1)
    if bool(xp.all(row_sums > smallest_safe(log_a))):
        log_r = xp.log(row_sums)
    else:
        log_r = logsumexp(x, axis=1)[:, 0]
    x -= log_r[:, None]
    return Anchor(x, log_c, log_r, shares, log_sums + log_c)


def next_rows(rows: Rows, log_p: Array, anchor: Anchor, reference: LogReference) -> Rows:
    """As `step_rows`, by a kernel that does all of it at once where there is one."""
    log_q, factors = reference.log_q, (anchor.log_c, anchor.log_p)
    kernels = arrays.fused(*rows, log_p, *factors, log_q) if reference.log_mass is None else None
    if kernels is None:
        return step_rows(rows, log_p, anchor, reference)
    return Rows(*kernels.next_rows(rows, log_p, factors, log_q, reference.alpha))


def step_rows(rows: Rows, log_p: Array, anchor: Anchor, reference: LogReference) -> Rows:
    """One iteration of the rows in doubt, given the reference's share of their columns."""
    # Everything is measured in units in which the anchor's column sum is q_j.
    xp = array_namespace(rows.log_b)
    log_q, alpha, log_mass = reference.log_q, reference.alpha, reference.log_mass
    if log_mass is not None:
        log_p = log_add(log_p, log_mass + log_q + anchor.log_c - alpha * rows.log_c)
    log_b, log_s = weigh(alpha * (rows.log_b - rows.log_c) + anchor.log_c, log_p, log_q)
    log_c = xp.where(anchor.log_p > _NEG_INF, log_q - log_s, xp.zeros_like(log_s))
    return Rows(log_b - logsumexp(log_b, axis=1), log_c)


def reference_share(log_c: Array, linear: Array, anchor: Anchor, reference: LogReference) -> Array:
    """Log of the reference's share of each column, as each row in doubt sees it; (t, m).

    Two products: the row sums ``linear @ exp(C)``, and the shares weighted by their -alpha-th
    power; linear where that is safe.
    """
    xp = array_namespace(log_c)
    tiny, alpha = smallest_safe(log_c), reference.alpha
    supported = anchor.log_p > _NEG_INF
    masked = xp.where(supported, log_c, xp.full_like(log_c, _NEG_INF))
    shift = xp.max(masked, axis=1, keepdims=True)
    sums = arrays.exp_in_place(masked - shift) @ linear.T
    # Its rows sum to 1, so the smallest factor bounds the sums from below; only where
    # that does not settle it, or where alpha magnifies how far rounding lets them miss 1, the
    # sums themselves are looked at.
    limit = max(tiny, math.exp(math.log(tiny) / alpha))
    lowest = xp.min(xp.where(supported, log_c, shift) - shift)
    bounded = alpha <= _MODERATE and float(lowest) > 0.9 * math.log(limit)
    if bounded or float(xp.min(sums)) > limit:
        sums = arrays.power_in_place(sums, -alpha)  # the largest array there is
        return xp.log(sums @ anchor.shares) - alpha * shift
    log_row_sums = xp.log(sums) + shift
    log_row_sums = _repair(log_row_sums, sums < tiny, masked, reference.log_a)
    log_shares = anchor.log_a + anchor.log_r[:, None]
    return log_product(-alpha * log_row_sums, log_shares.T, anchor.shares.T, supported)


def log_product(left: Array, log_right: Array, right: Array, supported: Array) -> Array:
    """``log(exp(left) @ right.T)``, (t, r), whatever underflows on the way.

    Rows of `left` have a finite entry; `right` (r, k) are the exponentials of `log_right`, whose
    rows without such an entry are not `supported`: -inf comes out.
    """
    xp = array_namespace(left)
    shift = xp.max(left, axis=1, keepdims=True)
    product = xp.exp(left - shift) @ right.T
    lost = (product < smallest_safe(left)) & supported
    return _repair(xp.log(product) + shift, lost, left, log_right)


def _repair(log_product: Array, wrong: Array, left: Array, right: Array) -> Array:
    """Recompute entries ``log(exp(left) @ exp(right).T)`` that the linear product lost."""
    xp = array_namespace(log_product)
    if not bool(xp.any(wrong)):
        return log_product
    i, j = xp.nonzero(wrong)
    if i.shape[0] <= right.shape[0] or right.shape[1] <= 2 * _FEW:
        return arrays.scatter(log_product, wrong, _sum_all_terms(i, j, left, right))
    values, settled = _sum_few_terms(i, j, left, right)
    (unsettled,) = xp.nonzero(~settled)
    all_terms = _sum_all_terms(xp.take(i, unsettled), xp.take(j, unsettled), left, right)
    return arrays.scatter(log_product, wrong, arrays.scatter(values, ~settled, all_terms))


def _sum_all_terms(i: Array, j: Array, left: Array, right: Array) -> Array:
    """Entries (i, j) of the product, in the log domain."""
    xp = array_namespace(left)
    parts = [left[0, :0]]
    for part in block_slices(i.shape[0], 32 * left.shape[1], left, cached=False):
        terms = xp.take(left, i[part], axis=0) + xp.take(right, j[part], axis=0)
        parts.append(logsumexp(terms, axis=1)[:, 0])
    return xp.concat(parts)


def _sum_few_terms(i: Array, j: Array, left: Array, right: Array) -> tuple[Array, Array]:
    """Entries (i, j) of the product from the largest of `right` alone, and whether that suffices.

    What underflows spans hundreds of orders of magnitude, so that few terms make up the sum. The
    others are bounded by the next largest of `right` and the largest of `left`.
    """
    xp = array_namespace(left)
    columns = arrays.top_columns(right, _FEW + 1)
    largest = take_entries(right, xp.arange(right.shape[0], device=device(right)), columns)
    remainder = largest[:, _FEW] + math.log(right.shape[1])
    columns, largest = columns[:, :_FEW], largest[:, :_FEW]
    top = xp.max(left, axis=1)
    negligible = math.log(float(xp.finfo(left.dtype).eps) / 8)
    values, settled = [], []
    for part in block_slices(i.shape[0], 40 * _FEW, left, cached=True):
        a, b = i[part], j[part]
        terms = take_entries(left, a, xp.take(columns, b, axis=0)) + xp.take(largest, b, axis=0)
        values.append(logsumexp(terms, axis=1)[:, 0])
        settled.append(xp.take(remainder, b) + xp.take(top, a) <= values[-1] + negligible)
    return xp.concat(values), xp.concat(settled)


def iterate_stacked(log_b: Array, reference: LogReference, *, depth: int) -> Iterator[list[Array]]:
    """As :func:`iterate`, literally: each row is stacked under the reference, in the log domain.

    A row in doubt goes through the very operations of the reference rows, so equal rows stay equal
    to the last bit even where alpha^depth would blow up a difference of one rounding error.
    """
    xp = array_namespace(log_b)
    n, m = reference.log_a.shape
    steps: list[list[Array]] = [[] for _ in range(depth)]
    for rows in block_slices(log_b.shape[0], 48 * (n + 1) * m, log_b, cached=True):
        b = log_b[rows, None, :]
        stacked = xp.concat([xp.broadcast_to(reference.log_a, (b.shape[0], n, m)), b], axis=1)
        for step in steps:
            stacked = _stacked_step(stacked, reference)
            step.append(stacked[:, -1, :])
    yield from steps


def _stacked_step(stacked: Array, reference: LogReference) -> Array:
    """One iteration of the two defining equations on a (t, n + 1, m) stack of logs."""
    xp = array_namespace(stacked)
    powers = weighted = reference.alpha * stacked
    if reference.log_w is not None:
        log_w = xp.concat([reference.log_w, xp.zeros_like(reference.log_w[:1])])
        weighted = powers + log_w[:, None]
    new = powers + column_factors(logsumexp(weighted, axis=1), reference)
    return new - logsumexp(new, axis=2)


def smallest_safe(like: Array) -> float:
    """A linear value below this may have lost terms to underflow."""
    return float(array_namespace(like).finfo(like.dtype).smallest_normal) ** 0.9
