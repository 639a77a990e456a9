"""The one operator that the module needs beyond PyTorch's: a matrix product of logs.

It looks at its values to decide what to recompute, which a traced graph cannot express, so it is
registered as an operator of its own: `torch.compile` and `torch.export` call it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

_TINY = float(np.finfo(np.float64).smallest_normal) ** 0.9  # a product below may have lost terms
_BLOCK = 2**24  # entries of the largest temporary


def _forward(left: Tensor, log_right: Tensor, right: Tensor, supported: Tensor) -> Tensor:
    """``log(exp(left) @ exp(log_right).T)``; entries lost to underflow are computed from the logs.

    Parameters
    ----------
    left : Tensor of shape (t, k)
        Logs, each row with a finite entry. Gradients flow here only.
    log_right : Tensor of shape (r, k)
        Logs.
    right : Tensor of shape (r, k)
        Their exponentials.
    supported : Tensor of bool, shape (r,)
        Rows of `log_right` with a finite entry; the result is -inf for the others.

    Returns
    -------
    Tensor of shape (t, r)
        Logs of the product.
    """
    shift = left.amax(dim=1, keepdim=True)
    product = torch.exp(left - shift) @ right.T
    out = torch.log(product) + shift
    for row, column in _lost(product, supported, left.shape[1]):
        out[row, column] = torch.logsumexp(left[row] + log_right[column], dim=1)
    return out


def _fake_forward(left: Tensor, log_right: Tensor, right: Tensor, supported: Tensor) -> Tensor:
    return left.new_empty(left.shape[0], log_right.shape[0])


def _lost(product: Tensor, supported: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, block by block, the places whose sums underflowed."""
    row, column = torch.nonzero((product < _TINY) & supported, as_tuple=True)
    size = max(1, _BLOCK // width)
    yield from zip(row.split(size), column.split(size), strict=True)


def _gradient(
    grad: Tensor, out: Tensor, left: Tensor, log_right: Tensor, right: Tensor, supported: Tensor
) -> Tensor:
    """Gradient for `left`: ``sum_r grad[t, r] * exp(left[t, k] + log_right[r, k] - out[t, r])``."""
    shift = left.amax(dim=1, keepdim=True)
    product = torch.exp(out - shift)
    held = product >= _TINY
    ratio = torch.where(held, grad, 0.0) / torch.where(held, product, 1.0)
    result = torch.exp(left - shift) * (ratio @ right)
    for row, column in _lost(product, supported, left.shape[1]):
        share = torch.softmax(left[row] + log_right[column], dim=1)
        result.index_add_(0, row, share * grad[row, column][:, None])
    return result


def _fake_gradient(
    grad: Tensor, out: Tensor, left: Tensor, log_right: Tensor, right: Tensor, supported: Tensor
) -> Tensor:
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
