r"""Fitted models as PyTorch modules, differentiable with respect to their input.

Everything that does not depend on the row is worked out when the module is made
(:mod:`altnorm.deploy.reading`). `forward` runs the program that ONNX graphs are written from
(:mod:`altnorm.deploy.program`); `torch.compile` and `torch.export` take it as one graph. With more
than two classes and iterations it uses one operator of altnorm's own, a matrix product of logs, so
a program exported then needs ``import altnorm.torch`` where it runs; everything else is PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError(
        "altnorm.torch needs the `torch` extra; install it with pip install 'altnorm[torch]'"
    ) from error

from torch import Tensor, nn

from altnorm._base.arrays import array_namespace
from altnorm.deploy.program import Program, convert
from altnorm.deploy.reading import read_program
from altnorm.deploy.torch import _backend

__all__ = ["from_normalizer"]


def from_normalizer(adjuster: Any) -> nn.Module:
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
        Fitted. Of the peers Identity, those that fit a temperature, a matrix or a line, and
        LabelThresholds.

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
    return _Adjustment(read_program(adjuster))


class _Name(str):
    """Name of a buffer, in the place of a constant."""


class _Adjustment(nn.Module):
    """A program, its constants as buffers."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program: Program = convert(program, self._store)
        # What follows is traced, and looking up a namespace for the first time is not for that.
        array_namespace(torch.empty(0))

    def _store(self, constant: Any) -> _Name:
        name = _Name(f"constant_{len(self._buffers)}")
        self.register_buffer(name, torch.as_tensor(np.asarray(constant)))
        return name

    def _constants(self) -> Program:
        program: Program = convert(self.program, lambda name: self._buffers[name], _Name)
        return program

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return adjusted probabilities."""
        rows, real = self._rows(values, mask)
        p = self._constants().probabilities(rows, _backend).to(values.dtype)
        return (p if real is None else torch.where(real, p, 0.0)).reshape(values.shape)

    def decide(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return decisions."""
        rows, real = self._rows(values, mask)
        program = self._constants()
        codes = program.rule(program.probabilities(rows, _backend))
        shape = values.shape if program.is_multilabel else values.shape[:-1]
        if real is not None:
            codes = torch.where(real if program.is_multilabel else real[:, 0], codes, -1)
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
