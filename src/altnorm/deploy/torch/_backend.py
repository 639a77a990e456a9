"""What a program needs of PyTorch beyond the array API.

The product of logs looks at its values to decide what to recompute, which a traced graph cannot
express, so it is registered as an operator of its own: `torch.compile` and `torch.export` call it
as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from altnorm.method import scaling

_TINY = float(np.finfo(np.float64).smallest_normal) ** 0.9  # a product below may have lost terms
_BLOCK = 2**24  # entries of the largest temporary


def replace_rows(p: Tensor, chosen: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the rows, with `change` applied where `chosen` says so, and only there."""
    if torch.compiler.is_compiling():  # a graph has one shape, so it computes every row
        return torch.where(chosen, change(p), p)
    (rows,) = torch.nonzero(chosen[:, 0], as_tuple=True)
    return p.index_copy(0, rows, change(p[rows]))


def _forward(left: Tensor, log_right: Tensor, right: Tensor, supported: Tensor) -> Tensor:
    result: Tensor = scaling.log_product(left, log_right, right, supported)
    return result


def _fake_forward(left: Tensor, log_right: Tensor, right: Tensor, supported: Tensor) -> Tensor:
    return left.new_empty(left.shape[0], log_right.shape[0])


def _gradient(
    grad: Tensor, out: Tensor, left: Tensor, log_right: Tensor, right: Tensor, supported: Tensor
) -> Tensor:
    """Gradient for `left`: ``sum_r grad[t, r] * exp(left[t, k] + log_right[r, k] - out[t, r])``."""
    shift = left.amax(dim=1, keepdim=True)
    product = torch.exp(out - shift)
    held = product >= _TINY
    ratio = torch.where(held, grad, 0.0) / torch.where(held, product, 1.0)
    result = torch.exp(left - shift) * (ratio @ right)
    size = max(1, _BLOCK // left.shape[1])
    lost = torch.nonzero(~held & supported, as_tuple=True)
    for row, column in zip(*(index.split(size) for index in lost), strict=True):
        share = torch.softmax(left[row] + log_right[column], dim=1)
        result.index_add_(0, row, share * grad[row, column][:, None])
    return result


def _fake_gradient(grad: Tensor, out: Tensor, left: Tensor, *constants: Tensor) -> Tensor:
    return torch.empty_like(left)


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
    return log_product_gradient(grad, *ctx.saved_tensors), None, None, None


_OPERANDS = "Tensor left, Tensor log_right, Tensor right, Tensor supported"

log_product = torch.library.custom_op(
    "altnorm::log_product", _forward, mutates_args=(), schema=f"({_OPERANDS}) -> Tensor"
)
log_product_gradient = torch.library.custom_op(
    "altnorm::log_product_gradient",
    _gradient,
    mutates_args=(),
    schema=f"(Tensor grad, Tensor out, {_OPERANDS}) -> Tensor",
)
log_product.register_fake(_fake_forward)
log_product_gradient.register_fake(_fake_gradient)
log_product.register_autograd(_backward, setup_context=_setup_context)
