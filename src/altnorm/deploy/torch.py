"""Fitted models as PyTorch modules, differentiable with respect to their input.

`forward` runs the correction that estimators run (:mod:`altnorm.estimator.correction`), unrolled;
`torch.compile` and `torch.export` take it as one graph. With more than two classes and iterations
it uses an operator of altnorm's own, so what is exported then needs ``import altnorm.torch`` where
it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from altnorm._base.errors import needing_extra

with needing_extra("torch"):
    import torch
    from torch import Tensor, nn

from altnorm._base.arrays import array_namespace, convert
from altnorm.estimator.base import correction_of
from altnorm.estimator.correction import Correction, tracing
from altnorm.estimator.kinds import FittedModel
from altnorm.method import scaling

__all__ = ["from_normalizer"]

_BLOCK = 2**24  # entries of the largest temporary
_TINY = scaling.smallest_safe(np.empty(0))  # a product below, in doubles, may have lost terms


def from_normalizer(adjuster: FittedModel) -> nn.Module:
    """Make a module that gives what a fitted model's `transform` and `predict` give.

    Its `forward` takes a tensor of shape (..., m), probabilities or logits as `adjuster.input`
    says, and returns probabilities of that shape and dtype. Its method `decide` returns the
    decision for the purpose, as int64: the column of the class, (...), and m where a row is left to
    a person; for several labels per row 0 and 1, (..., m). Both take a `mask` of shape (...) too,
    false (or 0) where there is only padding: its probabilities come out as 0, whatever it holds,
    without a gradient, and its decision as -1.

    Parameters
    ----------
    adjuster : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or a peer
        A fitted model, unless what it does to a row depends on other rows.

    Returns
    -------
    torch.nn.Module
        The module. Gradients flow to its input only; what was fitted is constant, and buffers. It
        computes in float64, also after ``.half()`` or ``.to(dtype)``. The gradient with respect to
        a probability of exactly zero is zero.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from altnorm import AlternatingNormalizer
    >>> from altnorm.deploy.torch import from_normalizer
    >>> rows = np.array([[0.02, 0.98], [0.05, 0.95], [0.1, 0.9], [0.95, 0.05]])
    >>> layer = from_normalizer(AlternatingNormalizer(threshold=0.5).fit(rows))
    >>> row = torch.tensor([[0.45, 0.55]], requires_grad=True)
    >>> layer(row).detach()
    tensor([[0.6413, 0.3587]])
    >>> layer.decide(row)
    tensor([0])
    """
    return _Adjustment(correction_of(adjuster).unrolled())


class _Name(str):
    """Name of a buffer, in the place of a constant."""


class _Adjustment(nn.Module):
    """A correction, its constants as buffers."""

    def __init__(self, correction: Correction) -> None:
        super().__init__()
        self.correction: Correction = convert(correction, self._store)
        # What follows is traced, and looking up a namespace for the first time is not for that.
        array_namespace(torch.empty(0))

    def _store(self, constant: Any) -> _Name:
        name = _Name(f"constant_{len(self._buffers)}")
        self.register_buffer(name, torch.as_tensor(np.asarray(constant)))
        return name

    def _constants(self) -> Correction:
        placed: Correction = convert(self.correction, lambda name: self._buffers[name], _Name)
        return placed

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return adjusted probabilities."""
        rows, real = self._rows(values, mask)
        p = self._constants().probabilities(rows, _ENGINE).to(values.dtype)
        return (p if real is None else torch.where(real, p, 0.0)).reshape(values.shape)

    def decide(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return decisions."""
        rows, real = self._rows(values, mask)
        correction = self._constants()
        # From what `forward` returns; half precision would leave too many classes level.
        dtype = torch.promote_types(values.dtype, torch.float32)
        p = correction.probabilities(rows, _ENGINE).to(dtype).to(rows.dtype)
        codes = correction.decide(rows, p)
        shape = values.shape if correction.is_multilabel else values.shape[:-1]
        if real is not None:
            codes = torch.where(real if correction.is_multilabel else real[:, 0], codes, -1)
        return codes.reshape(shape)

    def _rows(self, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Rows in double precision, and which of them are more than padding."""
        rows = values.reshape(-1, values.shape[-1]).to(torch.float64)
        if mask is None:
            return rows, None
        real = mask.reshape(-1, 1).to(torch.bool)
        # Padding may hold anything, NaN included, and NaN would come back through the gradient even
        # where its result is thrown away; so it is replaced before, not only after.
        return torch.where(real, rows, 1 / values.shape[-1]), real

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Move the buffers, which keep their dtype."""

        def move(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        return super()._apply(move, recurse)


def _replace_rows(p: Tensor, chosen: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the rows, with `change` applied where `chosen` says so, and only there."""
    if torch.compiler.is_compiling():  # a graph has one shape, so it computes every row
        return torch.where(chosen, change(p), p)
    (rows,) = torch.nonzero(chosen[:, 0], as_tuple=True)
    return p.index_copy(0, rows, change(p[rows]))


# The product of logs looks at its values to decide what to recompute, which a traced graph cannot
# express, so it is an operator of its own: `torch.compile` and `torch.export` call it as it is.

_OPERANDS = "Tensor left, Tensor log_right, Tensor right, Tensor supported"
_PRODUCT = f"({_OPERANDS}) -> Tensor"
_GRADIENT = f"(Tensor grad, Tensor out, {_OPERANDS}) -> Tensor"
_operator = partial(torch.library.custom_op, mutates_args=())


@_operator("altnorm::log_product", schema=_PRODUCT)  # type: ignore[untyped-decorator]
def log_product(left: Tensor, log_right: Tensor, right: Tensor, supported: Tensor) -> Tensor:
    """As :func:`altnorm.method.scaling.log_product`."""
    result: Tensor = scaling.log_product(left, log_right, right, supported)
    return result


@_operator("altnorm::log_product_gradient", schema=_GRADIENT)  # type: ignore[untyped-decorator]
def log_product_gradient(
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


# What tracing needs to know: shapes of the results, and which operator is the other's gradient.
log_product.register_fake(lambda left, right, *_: left.new_empty(left.shape[0], right.shape[0]))
log_product_gradient.register_fake(lambda grad, out, left, *_: torch.empty_like(left))
log_product.register_autograd(
    lambda ctx, grad: (log_product_gradient(grad, *ctx.saved_tensors), None, None, None),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output, *inputs),
)

_ENGINE = tracing(log_product, _replace_rows)
