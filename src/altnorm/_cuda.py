"""Kernels for PyTorch tensors on a CUDA device, in Triton, which comes with PyTorch there.

What runs here is bound by memory: each operation of PyTorch would read and write whole arrays,
while these kernels do so once. `altnorm._array.fused` says when they can be used; everything works
without them. Scalars are passed in tensors, since Triton takes Python's floats as single precision.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

__all__ = ["WIDEST", "next_rows", "power", "step_rows", "sum_rows", "try_out"]

WIDEST = 2**14
"""Largest number of classes for which a row fits the registers."""

_TILE = 2**13  # bytes of the rows that one program takes, where rows are short
_FLAT = 2**11  # entries that one program takes where rows do not matter


def power(array: torch.Tensor, exponent: float) -> torch.Tensor:
    """Raise positive numbers to a power, in place."""
    programs = (triton.cdiv(array.numel(), _FLAT),)
    with torch.cuda.device(array.device):
        _power_kernel[programs](array, _number(exponent, array), array.numel(), BLOCK=_FLAT)
    return array


def sum_rows(p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum and smallest entry of each row."""
    sums, lowest = torch.empty_like(p[:, 0]), torch.empty_like(p[:, 0])
    programs, tile = _tiles(p)
    with torch.cuda.device(p.device):
        _sum_kernel[programs](p, sums, lowest, *p.shape, **tile)
    return sums, lowest


def step_rows(
    p: torch.Tensor, s: torch.Tensor, q: torch.Tensor, alpha: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """One iteration for rows of probabilities, and the sums by which the rows were divided.

    As the linear part of :func:`altnorm._one_step.step_once`.
    """
    out, totals = torch.empty_like(p), torch.empty_like(p[:, 0])
    programs, tile = _tiles(p)
    arrays = p, s, q, _number(alpha, p), out, totals
    with torch.cuda.device(p.device):
        _step_kernel[programs](*arrays, *p.shape, PLAIN=alpha == 1, **tile)
    return out, totals


def next_rows(
    rows: tuple[torch.Tensor, torch.Tensor],
    log_p: torch.Tensor,
    anchor: tuple[torch.Tensor, torch.Tensor],
    log_q: torch.Tensor,
    alpha: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One iteration of rows and of their factors, as :func:`altnorm._scaling.next_rows`."""
    log_b, log_c = rows
    out = torch.empty_like(log_b), torch.empty_like(log_b)
    programs, tile = _tiles(log_b)
    arrays = log_b, log_c, log_p, *anchor, log_q, _number(alpha, log_b), *out
    # Factors and shares may be one row for all.
    strides = [log_b.shape[1] if x.shape[0] > 1 else 0 for x in (log_c, log_p)]
    with torch.cuda.device(log_b.device):
        _rows_kernel[programs](*arrays, *strides, *log_b.shape, **tile)
    return out


def try_out() -> None:
    """Compile and run a kernel; raises where that is not possible."""
    power(torch.ones(1, device="cuda"), 2.0)


def _number(value: float, like: torch.Tensor) -> torch.Tensor:
    return torch.full((1,), value, dtype=like.dtype, device=like.device)


def _tiles(rows: torch.Tensor) -> tuple[tuple[int], dict[str, int]]:
    """How many programs there are, and how many rows and columns each takes."""
    n, m = rows.shape
    width = triton.next_power_of_2(m)
    size = width * rows.element_size()
    height = max(1, _TILE // size)
    warps = min(16, max(4, size // 1024))
    return (triton.cdiv(n, height),), {"ROWS": height, "COLUMNS": width, "num_warps": warps}


# Triton reads these functions' own source, in which only its own names may stand, no annotations.


@triton.jit  # type: ignore[untyped-decorator]
def _power_kernel(x, exponent, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    values = tl.load(x + at, mask=inside, other=1.0)
    tl.store(x + at, tl.exp(tl.load(exponent) * tl.log(values)), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _sum_kernel(p, sums, lowest, n, m, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row < n)[:, None] & (column < m)[None, :]
    b = tl.load(p + row[:, None] * m + column[None, :], mask=inside, other=0.0)
    tl.store(sums + row, tl.sum(b, axis=1), mask=row < n)
    tl.store(lowest + row, tl.min(b, axis=1), mask=row < n)


@triton.jit  # type: ignore[untyped-decorator]
def _step_kernel(  # type: ignore[no-untyped-def]
    p,
    s,
    q,
    alpha,
    out,
    totals,
    n,
    m,
    PLAIN: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    at = row[:, None] * m + column[None, :]
    inside = (row < n)[:, None] & (column < m)[None, :]
    b = tl.load(p + at, mask=inside, other=0.0)
    sums = tl.load(s + column, mask=column < m, other=1.0)[None, :]
    prior = tl.load(q + column, mask=column < m, other=0.0)[None, :]
    power = b
    if not PLAIN:
        power = tl.exp(tl.load(alpha) * tl.log(b))
    power = tl.where(sums == 0, 1.0, power)  # a class no reference row has goes to the row
    new = tl.where(b > 0, prior * power / (sums + power), 0.0)
    total = tl.sum(new, axis=1)
    tl.store(totals + row, total, mask=row < n)
    tl.store(out + at, new / total[:, None], mask=inside)


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
    m,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
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
    own = tl.load(alpha) * (b - c) + c_anchor
    has = own > low
    gap = tl.where(has, others - own, 0.0)
    bend = tl.where(has, libdevice.log1p(tl.exp(-tl.abs(gap))), 0.0)
    score = tl.where(has, prior - (tl.maximum(gap, 0.0) + bend), low)
    factor = tl.where(p_anchor > low, prior - (tl.maximum(others, own) + bend), 0.0)
    top = tl.max(score, axis=1)
    top = tl.where(top > low, top, 0.0)
    total = top + tl.log(tl.sum(tl.exp(score - top[:, None]), axis=1))
    tl.store(new_b + at, score - total[:, None], mask=inside)
    tl.store(new_c + at, factor, mask=inside)
