"""The adjustment in PyTorch operators; notation as in :mod:`altnorm.method.scaling`, all in double.

Zeros are masked before a logarithm is taken, so that no gradient meets an infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from altnorm._base.validation import check_choice
from altnorm.deploy.plan import BinaryPlan, RowPlan
from altnorm.deploy.torch._log_product import log_product
from altnorm.deploy.torch._operators import EntryOperators, RowOperators, operators_for
from altnorm.method.kinds import resolve_kind

_NEG_INF = -math.inf


class Constants(nn.Module):
    """A module whose buffers follow it to a device, and keep their dtype."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        def move(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        return super()._apply(move, recurse)

    def store(self, **arrays: np.ndarray | None) -> None:
        """Keep arrays as buffers that are not part of the state, since they follow from it."""
        for name, array in arrays.items():
            tensor = None if array is None else torch.from_numpy(np.ascontiguousarray(array))
            self.register_buffer(name, tensor, persistent=False)


class ProbabilityModule(Constants):
    """Base of the modules on class probabilities: logits, leading dimensions, masks, state dicts.

    A subclass writes `rows`, which takes and returns double probabilities of shape (t, m).
    """

    optional: tuple[str, ...] = ()
    """Buffers that a state dict may lack."""

    def __init__(self, input: str, multilabel: str | None) -> None:
        super().__init__()
        check_choice(input, "input", ("proba", "logits"))
        self.input, self.multilabel = input, multilabel
        self.kind = resolve_kind(multilabel)
        self.operators = operators_for(self.kind)

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return adjusted probabilities.

        Parameters
        ----------
        values : Tensor of shape (..., m)
            Probabilities or logits, as `input` says, with any number of leading dimensions.
        mask : Tensor of shape (...), optional
            False (or 0) where there is only padding. Padding comes out as 0, whatever it holds,
            and has no gradient.

        Returns
        -------
        Tensor of shape (..., m)
            Probabilities in the dtype of `values`.
        """
        rows = values.reshape(-1, values.shape[-1])
        if mask is None:
            return self.adjusted(rows).reshape(values.shape)
        real = mask.reshape(-1, 1).to(torch.bool)
        # Padding may hold anything, NaN included, and NaN would come back through the gradient even
        # where its result is thrown away; so it is replaced before, not only after.
        share = self.kind.even_share(values.shape[-1])
        filled = torch.where(real, rows, 0.0 if self.input == "logits" else share)
        return torch.where(real, self.adjusted(filled), 0.0).reshape(values.shape)

    def adjusted(self, values: Tensor) -> Tensor:
        """Adjusted probabilities of rows, in the dtype of `values`."""
        return self.rows(self.read(values)).to(values.dtype)

    def read(self, values: Tensor) -> Tensor:
        """Return the probabilities that `values` are or, as logits, stand for; in double."""
        p = values.to(torch.float64)
        return p if self.input == "proba" else self.operators.from_logits(p)

    def rows(self, p: Tensor) -> Tensor:
        """Adjusted probabilities of rows, all in double."""
        raise NotImplementedError

    def _prepare(self) -> None:
        """Work out the constants that follow from the buffers."""

    def _load_from_state_dict(
        self, state_dict: dict[str, Tensor], prefix: str, *args: Any, **keywords: Any
    ) -> None:
        """Take buffers of other sizes, too: the number of reference rows is part of the state."""
        for name in self._buffers.keys() - self._non_persistent_buffers_set:
            own, given = self._buffers[name], state_dict.get(prefix + name)
            if given is None:
                self._buffers[name] = None if name in self.optional else own
            elif own is None or own.shape != given.shape:
                self._buffers[name] = torch.empty_like(given, device=self._device())
        super()._load_from_state_dict(state_dict, prefix, *args, **keywords)
        self._prepare()

    def _device(self) -> torch.device:
        return next(self.buffers()).device


class RowAdjustment(Constants):
    """Adjusts every row over several classes."""

    def __init__(self, plan: RowPlan) -> None:
        super().__init__()
        self.alpha, self.repeats, self.log_mass = plan.alpha, plan.repeats, plan.log_mass
        self.store(active=np.array(True), kept=plan.kept, log_q=plan.log_q, log_s=plan.log_s)
        self.depth = len(plan.anchors)
        if plan.anchors:
            stacked = {
                name: np.stack([getattr(anchor, name) for anchor in plan.anchors])
                for name in ("log_a", "log_c", "log_r", "log_p")
            }
            # A column that is zero in every reference row stays so; its scaling would be infinite.
            supported = stacked["log_p"][0] > _NEG_INF
            every = np.ones(stacked["log_r"].shape[1], dtype=bool)
            self.store(a=np.exp(stacked["log_a"]), supported=supported, every=every, **stacked)

    def forward(self, p: Tensor) -> Tensor:
        """Return adjusted rows; a row with only classes of prior zero as it was."""
        if self.kept is None:
            return self.adjusted(p)
        b = p[:, self.kept]
        # Rows with nothing left would divide 0 by 0; ones take their place until the end.
        alive = (b > 0).any(dim=1, keepdim=True)
        adjusted = self.adjusted(torch.where(alive, b, torch.ones_like(b)))
        return torch.where(alive, torch.zeros_like(p).index_copy(1, self.kept, adjusted), p)

    def adjusted(self, b: Tensor) -> Tensor:
        """Return adjusted rows, all with a class of positive prior."""
        has = b > 0
        # Not log(0): its gradient would be infinite, and NaN after the mask.
        log_b = torch.log(torch.where(has, b, 1.0))
        for i in range(self.repeats):
            # A step needs rows that sum to 1, as those that came in do.
            log_b = log_b if i == 0 else normalized(log_b, has)
            log_b = self.log_q - softplus(self.log_s - self.alpha * log_b)
        if self.depth:
            log_b = self.iterated(log_b, has)
        return torch.softmax(torch.where(has, log_b, _NEG_INF), dim=1)

    def iterated(self, log_b: Tensor, has: Tensor) -> Tensor:
        """Logs of all rows after the last iteration, by the scaling form."""
        log_c = torch.zeros_like(self.log_q)
        log_b, log_c = self.next_rows(log_b, log_c, self.log_p[0], has, 0)
        for i in range(1, self.depth):
            masked = torch.where(self.supported, log_c, _NEG_INF)
            log_sums = log_product(masked, self.log_a[i - 1], self.a[i - 1], self.every)
            weight = self.log_r[i] - self.alpha * log_sums
            log_p = log_product(weight, self.log_a[i].T, self.a[i].T, self.supported)
            log_b, log_c = self.next_rows(log_b, log_c, log_p, has, i)
        return log_b

    def next_rows(
        self, log_b: Tensor, log_c: Tensor, others: Tensor, has: Tensor, i: int
    ) -> tuple[Tensor, Tensor]:
        """One iteration of the rows, given the reference's share of their columns."""
        own = self.alpha * (log_b - log_c) + self.log_c[i]
        if self.log_mass is not None:
            smoothing = self.log_mass + self.log_q + self.log_c[i] - self.alpha * log_c
            others = torch.logaddexp(others, smoothing)
        log_b = normalized(self.log_q - softplus(others - own), has)
        total = torch.where(has, torch.logaddexp(others, own), others)
        return log_b, torch.where(self.supported, self.log_q - total, 0.0)


class LogitAdjustment(Constants):
    """Adjusts every yes/no probability, or every row of two classes."""

    def __init__(
        self, plan: BinaryPlan, operators: type[RowOperators] | type[EntryOperators]
    ) -> None:
        super().__init__()
        self.alpha, self.reach, self.operators = plan.alpha, plan.reach, operators
        self.store(active=plan.active, log_q=plan.log_q, log_s=plan.log_s)
        self.n_steps = 0
        if plan.curve is not None:
            # Enough halvings for the longest list of pieces.
            self.n_steps = max(1, int(np.max(plan.curve.last - plan.curve.first)).bit_length())
            self.store(**plan.curve._asdict())

    def forward(self, p: Tensor) -> Tensor:
        """Return adjusted probabilities."""
        return self.operators.from_log_odds(self.adjusted(self.operators.log_odds(p)))

    def adjusted(self, z: Tensor) -> Tensor:
        """Return adjusted logits."""
        if self.n_steps:
            return self.on_curve(z.clamp(-self.reach, self.reach))
        sides = (nn.functional.logsigmoid(z), nn.functional.logsigmoid(-z))
        kept = [softplus(s - self.alpha * x) for s, x in zip(self.log_s, sides, strict=True)]
        return (self.log_q[0] - kept[0]) - (self.log_q[1] - kept[1])

    def on_curve(self, z: Tensor) -> Tensor:
        """Value of the tabulated functions: a binary search for the piece, then its polynomial."""
        at = self.first
        for step in reversed(range(self.n_steps)):
            ahead = torch.minimum(at + 2**step, self.last)
            at = torch.where(self.left[ahead] > z, at, ahead)
        s = (z - self.center[at]) * self.slope[at]
        result = self.coefficients[-1][at]
        for i in reversed(range(self.coefficients.shape[0] - 1)):
            result = result * s + self.coefficients[i][at]
        return result


def softplus(gap: Tensor) -> Tensor:
    """``log(1 + exp(gap))``; PyTorch's own becomes linear too early for double precision."""
    return torch.logaddexp(gap, torch.zeros_like(gap))


def normalized(log_b: Tensor, has: Tensor) -> Tensor:
    """Logs of rows that sum to 1 over the classes they have."""
    return log_b - torch.logsumexp(torch.where(has, log_b, _NEG_INF), dim=1, keepdim=True)
