"""Fitted models as PyTorch modules, differentiable with respect to their input."""

from altnorm.deploy.torch import from_normalizer

__all__ = ["from_normalizer"]
