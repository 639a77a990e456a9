r"""Fitted normalizers as PyTorch modules, differentiable with respect to their input.

Everything that does not depend on the row is worked out when the module is made
(:mod:`altnorm.deploy.plan`). What is left for `forward` is written without control flow that
depends on the data, so that `torch.compile` and `torch.export` take it as one graph, and in double
precision, because alpha^depth multiplies rounding errors. With more than two classes and iterations
it uses one operator of altnorm's own, a matrix product of logs, so a program exported then needs
``import altnorm.deploy.torch`` where it runs; everything else is PyTorch's.
"""

from __future__ import annotations

from typing import Any

try:
    import torch
except ImportError as error:
    raise ImportError(
        "altnorm.torch needs the `torch` extra; install it with pip install 'altnorm[torch]'"
    ) from error

from altnorm._base.errors import InputError
from altnorm.deploy.stages import LinearScores, chosen_normalizer, read_stages
from altnorm.deploy.torch._alternating import AlternatingNorm
from altnorm.deploy.torch._stages import Adjustment, ScoreScaling

__all__ = ["Adjustment", "AlternatingNorm", "ScoreScaling", "from_normalizer"]


def from_normalizer(normalizer: Any, *, soft: float = 0.0) -> torch.nn.Module:
    """Make a module that gives what a fitted normalizer's `transform` gives.

    Parameters
    ----------
    normalizer : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or a peer
        Fitted. Of the peers, those that fit a temperature or a matrix, and Identity.
    soft : float, default=0.0
        Width of a soft threshold, as for :class:`AlternatingNorm`, which must be all that the
        normalizer does then.

    Returns
    -------
    AlternatingNorm, ScoreScaling or Adjustment
        An ``nn.Module`` on (..., m) tensors that takes a mask, too; what `normalizer.input` says
        goes in, probabilities come out.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from altnorm import Adjuster
    >>> from altnorm.deploy.torch import from_normalizer
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> scores = rng.normal(size=(600, 3)) + 1.5 * np.eye(3)[y] + [1.5, 0, 0]  # favours class 0
    >>> adjuster = Adjuster(input="logits").fit(scores, y)
    >>> layer = from_normalizer(adjuster)  # takes the place of the softmax
    >>> adjusted = layer(torch.tensor(scores).reshape(20, 30, 3))
    >>> np.allclose(adjusted.reshape(600, 3), adjuster.transform(scores))
    True
    """
    stages = read_stages(normalizer)
    if stages.direct:
        assert isinstance(stages.decider, LinearScores)
        _check_hard(soft)
        return ScoreScaling(*stages.decider, input=stages.input)
    if not (stages.calibrates or isinstance(stages.decider, LinearScores)):
        return AlternatingNorm.from_normalizer(normalizer, soft=soft)
    _check_hard(soft)
    decider: Any = None
    if isinstance(stages.decider, LinearScores):
        decider = ScoreScaling(*stages.decider)
    elif stages.decider is not None:
        decider = AlternatingNorm.from_normalizer(chosen_normalizer(normalizer))
    return Adjustment(
        decider,
        temperatures=stages.temperatures,
        calibrator=None if stages.calibrator is None else ScoreScaling(*stages.calibrator),
        multilabel=stages.kind.multilabel,
        input=stages.input,
    )


def _check_hard(soft: float) -> None:
    if soft:
        raise InputError(
            "A soft threshold is for alternating normalization without calibration",
            f"soft is {soft:g}, and this normalizer does more or other than that",
            "Pass soft=0.0, or fit Adjuster(families=('alternating',), calibrate=False).",
            value=soft,
            code="not_supported",
        )
