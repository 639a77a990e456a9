"""Fitted normalizers as PyTorch modules, differentiable with respect to their input."""

from altnorm.deploy.torch import (
    Adjustment,
    AlternatingNorm,
    ScoreScaling,
    from_normalizer,
)

__all__ = [
    "Adjustment",
    "AlternatingNorm",
    "ScoreScaling",
    "from_normalizer",
]
