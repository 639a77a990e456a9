"""The other families and the calibration as PyTorch modules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from altnorm._base.errors import InputError
from altnorm.deploy.stages import LinearScores
from altnorm.deploy.torch._layers import ProbabilityModule


class ScoreScaling(ProbabilityModule):
    r"""Softmax of scores that are linear in the log-probabilities, as a last layer.

    .. math:: p' = \operatorname{softmax}(W \max(\log p, \text{floor}) + b)

    This is what temperature scaling, class biases and a matrix
    (:class:`altnorm.families.MatrixScaling`) do. Gradients flow to the input only.

    Parameters
    ----------
    weight : float or array of shape (m, m)
        One slope for all classes (1 over a temperature), or the matrix.
    bias : array of shape (m,)
        Constants of the scores.
    floor : float, default=-inf
        Smaller log-probabilities count as this one; without it, zeros stay zeros.
    input : {"proba", "logits"}, default="proba"
        What the module takes.

    Examples
    --------
    >>> import torch
    >>> from altnorm.deploy.torch import ScoreScaling
    >>> layer = ScoreScaling(0.5, [0.0, 0.0])  # a temperature of 2
    >>> layer(torch.tensor([[0.9, 0.1]]))
    tensor([[0.7500, 0.2500]])
    """

    def __init__(
        self, weight: Any, bias: Any, floor: float = -math.inf, *, input: str = "proba"
    ) -> None:
        super().__init__(input, None)
        arrays = LinearScores(np.asarray(weight), np.asarray(bias), floor)
        if arrays.weight.shape not in ((), (arrays.bias.size,) * 2) or arrays.bias.ndim != 1:
            raise InputError(
                "`weight` must be a number or have one row and one column per entry of `bias`",
                f"the shapes are {arrays.weight.shape} and {arrays.bias.shape}",
                "Pass `matrix_` and `bias_` of a fitted MatrixScaling.",
                value=arrays.weight.shape,
                code="shape",
            )
        for name, array in arrays._asdict().items():
            self.register_buffer(name, torch.tensor(array, dtype=torch.float64))

    def rows(self, p: Tensor) -> Tensor:
        """Return the softmax of the scores of probabilities of shape (t, m)."""
        has = p > 0
        log_p = torch.log(torch.where(has, p, 1.0)) - torch.log(p.sum(dim=1, keepdim=True))
        return self.scored(torch.where(has, log_p, -math.inf))

    def adjusted(self, values: Tensor) -> Tensor:
        """Adjusted rows; logits by way of their logarithms, which keeps what a softmax rounds."""
        if self.input == "proba":
            return super().adjusted(values)
        log_p = torch.log_softmax(values.to(torch.float64), dim=1)
        return self.scored(log_p).to(values.dtype)

    def scored(self, log_p: Tensor) -> Tensor:
        """Return the softmax of the scores of log-probabilities."""
        if self.weight.ndim:
            scores = torch.maximum(log_p, self.floor) @ self.weight.T
        else:
            scores = torch.maximum(log_p, self.floor) * self.weight
        return torch.softmax(scores + self.bias, dim=1)


class Adjustment(ProbabilityModule):
    """Both stages of a fitted :class:`altnorm.Adjuster`: decisions, then probabilities.

    Gradients flow to the input only. They follow the probabilities; which class leads, and which
    rows are in doubt, is a matter of steps.

    Parameters
    ----------
    decider : AlternatingNorm, ScoreScaling or None, default=None
        What makes the decisions, taking probabilities. None leaves them as they are.
    temperatures : sequence of two floats, optional
        Calibrates what the decider returns: temperatures of the rows (for several labels, of the
        entries) that it touched and of the others.
    calibrator : ScoreScaling, optional
        Calibrates what came in, taking probabilities.
    multilabel : None, "pairs" or "labelwise", default=None
        As for :class:`altnorm.AlternatingNormalizer`.
    input : {"proba", "logits"}, default="proba"
        What the module takes.

    See Also
    --------
    from_normalizer : Makes one from a fitted normalizer.

    Examples
    --------
    >>> import torch
    >>> from altnorm.deploy.torch import Adjustment, ScoreScaling
    >>> favour_second = ScoreScaling(1.0, [0.0, 1.0])
    >>> layer = Adjustment(favour_second, temperatures=(2.0, 1.0))
    >>> layer(torch.tensor([[0.5, 0.5]]))
    tensor([[0.3775, 0.6225]])
    """

    def __init__(
        self,
        decider: ProbabilityModule | None = None,
        *,
        temperatures: Any = None,
        calibrator: ScoreScaling | None = None,
        multilabel: str | None = None,
        input: str = "proba",
    ) -> None:
        super().__init__(input, multilabel)
        self.decider, self.calibrator = decider, calibrator
        kept = None if temperatures is None else torch.tensor(temperatures, dtype=torch.float64)
        self.register_buffer("temperatures", kept)

    def adjusted(self, values: Tensor) -> Tensor:
        """Return adjusted rows of `values`, in their dtype."""
        p = self.read(values)
        adjusted = p if self.decider is None else self.decider.rows(p)
        if self.temperatures is not None:
            final = self.operators.cooled(adjusted, adjusted != p, self.temperatures)
        elif self.calibrator is not None:
            final = self.calibrator.rows(p)
        else:
            return adjusted.to(values.dtype)
        return self.operators.with_decisions(final.to(values.dtype), adjusted)
