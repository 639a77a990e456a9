"""Kernels for PyTorch tensors on a CUDA device, in Triton, which comes with PyTorch there.

Each operation of PyTorch would read and write whole arrays, while these kernels do so once.
`altnorm._base.arrays.fused` says when they can be used; everything works without them. Exponents
are passed in tensors, since Triton takes Python's floats as single precision.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

WIDEST = 2**14
"""Largest number of classes for which a row fits the registers."""

FEW = 32
"""Largest `k_max` for which the largest probabilities are found one by one."""

_TILE = 2**10  # entries of the rows that one program takes, where rows are short
_FLAT = 2**11  # and where rows do not matter


def power(array: torch.Tensor, exponent: float) -> torch.Tensor:
    """Raise positive numbers to a power, in place."""
    programs = (triton.cdiv(array.numel(), _FLAT),)
    with torch.cuda.device(array.device):
        _power_kernel[programs](array, _number(exponent, array), array.numel(), BLOCK=_FLAT)
    return array


def are_distributions(p: torch.Tensor, tolerance: float) -> bool:
    """Whether no entry is negative or NaN and each row sums to 1 within `tolerance`."""
    fault = _no_fault(p)
    programs, tile = _tiles(p)
    with torch.cuda.device(p.device):
        _check_kernel[programs](p, fault, tolerance, *_shape(p), **tile)
    return not fault.item()


def step_rows(
    p: torch.Tensor,
    s: torch.Tensor,
    q: torch.Tensor,
    alpha: float,
    tolerance: float,
    least_total: float,
) -> tuple[torch.Tensor, bool]:
    """One iteration, as the linear part of :func:`altnorm.method.scaling.step_once`.

    And whether rows are distributions, and are divided by more than `least_total` in the end.
    """
    out, fault = torch.empty_like(p), _no_fault(p)
    programs, tile = _tiles(p)
    arrays = p, s, q, _number(alpha, p), out, fault
    with torch.cuda.device(p.device):
        _step_kernel[programs](
            *arrays, tolerance, *_shape(p), LEAST=least_total, PLAIN=alpha == 1, **tile
        )
    return out, not fault.item()


def largest_entropy(p: torch.Tensor, k_min: int, k_max: int) -> torch.Tensor:
    """Largest of the top-k entropies of each row, as in :mod:`altnorm.method.ambiguity`."""
    out = torch.empty_like(p[:, 0])
    programs, tile = _tiles(p, per_thread=32)  # within a warp, maxima need no shared memory
    with torch.cuda.device(p.device):
        _entropy_kernel[programs](p, out, k_min, k_max, *_shape(p), **tile)
    return out


def next_rows(
    rows: tuple[torch.Tensor, torch.Tensor],
    log_p: torch.Tensor,
    anchor: tuple[torch.Tensor, torch.Tensor],
    log_q: torch.Tensor,
    alpha: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One iteration of rows and of their factors, as :func:`altnorm.method.scaling.next_rows`."""
    log_b, log_c = rows
    out = torch.empty_like(log_b), torch.empty_like(log_b)
    programs, tile = _tiles(log_b, per_thread=4)  # of several arrays
    arrays = log_b, log_c, log_p, *anchor, log_q, _number(alpha, log_b), *out
    # Factors and shares may be one row for all.
    strides = [log_b.shape[1] if x.shape[0] > 1 else 0 for x in (log_c, log_p)]
    with torch.cuda.device(log_b.device):
        _rows_kernel[programs](*arrays, *strides, *_shape(log_b), **tile)
    return out


def try_out() -> None:
    """Compile and run a kernel; raises where that is not possible."""
    power(torch.ones(1, device="cuda"), 2.0)


def _number(value: float, like: torch.Tensor) -> torch.Tensor:
    return torch.full((1,), value, dtype=like.dtype, device=like.device)


def _no_fault(like: torch.Tensor) -> torch.Tensor:
    """A flag, which a program that finds a fault sets to 1, whatever others do."""
    return torch.zeros(1, dtype=torch.int32, device=like.device)


def _shape(rows: torch.Tensor) -> tuple[int, int]:
    """Number of rows, and of groups of columns."""
    n, m = rows.shape
    return n, m // _group(m)


def _group(m: int) -> int:
    """Largest power of 2 that divides the number of columns, up to 16.

    Only if the compiler knows it, it lets a thread load several neighbours at once.
    """
    return min(16, m & -m)


def _tiles(rows: torch.Tensor, per_thread: int = 8) -> tuple[tuple[int], dict[str, int]]:
    """How many programs there are, and what each takes, so many entries in each of its threads."""
    n, m = rows.shape
    width = triton.next_power_of_2(m)
    height = max(1, _TILE // width)
    warps = min(16, max(1, height * width // (32 * per_thread)))
    tile = {"GROUP": _group(m), "ROWS": height, "COLUMNS": width, "num_warps": warps}
    return (triton.cdiv(n, height),), tile


# Triton reads these functions' own source, in which only its own names may stand, no annotations.


@triton.jit
def _raise(b, alpha):  # type: ignore[no-untyped-def]
    # In single precision b was rounded by 2^-24 of itself, which the power multiplies by alpha. The
    # device's own logarithm, wrong by 2^-22 (of itself where it is large), makes about three times
    # that of it, and takes one instruction instead of twenty.
    if b.dtype == tl.float32:
        power = tl.exp2(alpha * libdevice.fast_log2f(b))
    else:
        power = tl.exp(alpha * tl.log(b))
    return power


@triton.jit  # type: ignore[untyped-decorator]
def _power_kernel(x, exponent, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    values = tl.load(x + at, mask=inside, other=1.0)
    tl.store(x + at, _raise(values, tl.load(exponent)), mask=inside)


@triton.jit
def _add_both(a, b, c, d):  # type: ignore[no-untyped-def]
    return a + c, b + d


@triton.jit  # type: ignore[untyped-decorator]
def _check_kernel(  # type: ignore[no-untyped-def]
    p, fault, tolerance, n, groups, GROUP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    m = groups * GROUP
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row < n)[:, None] & (column < m)[None, :]
    b = tl.load(p + row[:, None] * m + column[None, :], mask=inside, other=0.0)
    row_sum = tl.sum(tl.where(b >= 0, b, float("nan")), axis=1)
    is_fine = tl.abs(row_sum - 1) <= tolerance
    tl.store(fault + 0 * row, 1, mask=(row < n) & (is_fine == 0))


@triton.jit  # type: ignore[untyped-decorator]
def _entropy_kernel(  # type: ignore[no-untyped-def]
    p, out, k_min, k_max, n, groups, GROUP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    m = groups * GROUP
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row < n)[:, None] & (column < m)[None, :]
    b = tl.load(p + row[:, None] * m + column[None, :], mask=inside, other=-1.0)
    k = tl.zeros([ROWS], b.dtype)
    mass, plogp, largest = k, k, k
    for _ in range(k_max):
        top, place = tl.max(b, axis=1, return_indices=True)
        b = tl.where(column[None, :] == place[:, None], -1.0, b)
        k += 1
        mass += top
        plogp += tl.where(top > 0, top * tl.log(top), 0.0)
        entropy = (tl.log(mass) - plogp / mass) / tl.log(k)
        largest = tl.where(k >= k_min, tl.maximum(largest, entropy), largest)
    tl.store(out + row, tl.minimum(largest, 1.0), mask=row < n)


@triton.jit  # type: ignore[untyped-decorator]
def _step_kernel(  # type: ignore[no-untyped-def]
    p,
    s,
    q,
    alpha,
    out,
    fault,
    tolerance,
    n,
    groups,
    LEAST: tl.constexpr,
    PLAIN: tl.constexpr,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    m = groups * GROUP
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    at = row[:, None] * m + column[None, :]
    inside = (row < n)[:, None] & (column < m)[None, :]
    b = tl.load(p + at, mask=inside, other=0.0)
    sums = tl.load(s + column, mask=column < m, other=1.0)[None, :]
    prior = tl.load(q + column, mask=column < m, other=0.0)[None, :]
    power = b
    if not PLAIN:
        power = _raise(b, tl.load(alpha))
    power = tl.where(sums == 0, 1.0, power)  # a column that no reference row uses is the row's
    new = tl.where(b > 0, prior * power / (sums + power), 0.0)
    # Both sums at once: the threads of a row wait for each other only once.
    total, row_sum = tl.reduce((new, tl.where(b >= 0, b, float("nan"))), 1, _add_both)
    is_fine = (total > LEAST) & (tl.abs(row_sum - 1) <= tolerance)
    tl.store(fault + 0 * row, 1, mask=(row < n) & (is_fine == 0))
    tl.store(out + at, new * (1.0 / total)[:, None], mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _rows_kernel(  # type: ignore[no-untyped-def]
    log_b,
    log_c,
    log_p,
    anchor_c,
    anchor_p,
    log_q,
    alpha,
    new_b,
    new_c,
    stride_c,
    stride_p,
    n,
    groups,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    m = groups * GROUP
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    at = row[:, None] * m + column[None, :]
    real = column < m
    inside = (row < n)[:, None] & real[None, :]
    low = float("-inf")
    b = tl.load(log_b + at, mask=inside, other=low)
    c = tl.load(log_c + row[:, None] * stride_c + column[None, :], mask=inside, other=0.0)
    others = tl.load(log_p + row[:, None] * stride_p + column[None, :], mask=inside, other=0.0)
    c_anchor = tl.load(anchor_c + column, mask=real, other=0.0)[None, :]
    p_anchor = tl.load(anchor_p + column, mask=real, other=0.0)[None, :]
    prior = tl.load(log_q + column, mask=real, other=0.0)[None, :]
    power = tl.load(alpha) * (b - c) + c_anchor
    has = power > low
    log_ratio = tl.where(has, others - power, 0.0)
    softplus = tl.where(has, libdevice.log1p(tl.exp(-tl.abs(log_ratio))), 0.0)
    score = tl.where(has, prior - (tl.maximum(log_ratio, 0.0) + softplus), low)
    factor = tl.where(p_anchor > low, prior - (tl.maximum(others, power) + softplus), 0.0)
    top = tl.max(score, axis=1)
    top = tl.where(top > low, top, 0.0)
    total = top + tl.log(tl.sum(tl.exp(score - top[:, None]), axis=1))
    tl.store(new_b + at, score - total[:, None], mask=inside)
    tl.store(new_c + at, factor, mask=inside)
