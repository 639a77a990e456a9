"""One iteration of rows in doubt against given column sums: all that depth 1 needs.

Rows only meet the reference through its column sums, so no product is needed, and one block of
rows can meet many references while it is in the cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from altnorm._base.arrays import Array, array_namespace, block_slices, concat_blocks, fused, quiet
from altnorm.method.scaling import log_add, smallest_safe


def step_once(p: Array, log_s: Array, q: Array, *, alpha: float) -> Array:
    """One iteration for many rows, given the log of the reference's column sums.

    ``b_j`` becomes ``q_j b_j^alpha / (s_j + b_j^alpha)``, divided by the sum over classes. No
    product is needed: rows only meet the reference through its column sums.
    """
    at_once = step_in_kernel(p, log_s, q, alpha=alpha)
    if at_once is not None:
        return at_once
    xp, sums = array_namespace(p), ColumnSums.of(log_s, p)
    blocks = block_slices(p.shape[0], 48 * p.shape[1], p, cached=True)
    steps = (step_block(PowerRows.of(p[rows, :], q, alpha), sums) for rows in blocks)
    with quiet(xp):
        return concat_blocks((new / xp.sum(new, axis=1, keepdims=True) for new in steps), p)


def step_in_kernel(
    p: Array, log_s: Array, q: Array, *, alpha: float, tolerance: float = math.inf
) -> Array | None:
    """As `step_once`, by one kernel that reads the rows once and looks for faults on the way.

    None without such a kernel, and where it finds one: a negative entry, a row whose sum is further
    from 1 than `tolerance`, NaN, or numbers so small that they may have lost terms to underflow.
    """
    kernels = fused(p, log_s, q)
    if kernels is None:
        return None
    xp = array_namespace(p)
    # NaN goes through to the rows, so that a single question to the device finds every fault.
    s = xp.where(_is_low(log_s, p), math.nan, xp.exp(log_s))
    new, is_fine = kernels.step_rows(p, s, q, alpha, tolerance, smallest_safe(xp, p))
    return new if is_fine else None


class ColumnSums(NamedTuple):
    """Column sums of a reference, as one iteration of the rows in doubt needs them."""

    log_s: Array  # (m,)
    s: Array  # (m,)
    unused: Array | None  # (m,) which classes no reference row has; None if there are none
    linear: bool  # whether no sum is so small that a power beside it may not underflow

    @classmethod
    def of(cls, log_s: Array, like: Array) -> ColumnSums:
        """Prepare the log of column sums for rows of the dtype of `like`."""
        xp = array_namespace(log_s)
        s = xp.exp(log_s)
        unused, low = s == 0, _is_low(log_s, like)
        return cls(log_s, s, unused if bool(xp.any(unused)) else None, not bool(xp.any(low)))


def _is_low(log_s: Array, like: Array) -> Array:
    """Which sums are so small that a power beside them may underflow."""
    xp = array_namespace(log_s)
    return (log_s > -math.inf) & (log_s < 0.5 * math.log(smallest_safe(xp, like)))


class PowerRows(NamedTuple):
    """A block of rows in doubt and what any iteration of them needs, whatever the reference."""

    b: Array  # (t, m)
    power: Array  # b^alpha
    weighted: Array  # q b^alpha
    q: Array  # (m,)
    alpha: float

    @classmethod
    def of(cls, b: Array, q: Array, alpha: float) -> PowerRows:
        """Raise rows to the power of `alpha`."""
        power = b if alpha == 1 else b**alpha
        return cls(b, power, q * power, q, alpha)

    def head(self, size: int) -> PowerRows:
        """Return the first rows alone."""
        b, power, weighted = (x[:size, :] for x in self[:3])
        return PowerRows(b, power, weighted, self.q, self.alpha)


def step_block(rows: PowerRows, sums: ColumnSums) -> Array:
    """One iteration for a block of rows, not yet divided by the sums over classes."""
    b, power, weighted, q, alpha = rows
    xp = array_namespace(b)
    if sums.linear:
        if sums.unused is None:
            new = weighted / (sums.s + power)
        else:  # a class no reference row has goes to the row as a whole
            power = xp.where(sums.unused & (b > 0), xp.ones_like(b), power)
            new = xp.where(b > 0, q * power / (sums.s + power), xp.zeros_like(b))
        if bool(xp.all(xp.max(new, axis=1) > smallest_safe(xp, b))):
            return new
    log_b = alpha * xp.log(b)
    log_b = xp.log(q) + log_b - log_add(log_b, xp.zeros_like(log_b) + sums.log_s)
    log_b = xp.where(b > 0, log_b, xp.full_like(log_b, -math.inf))
    return xp.exp(log_b - xp.max(log_b, axis=1, keepdims=True))
