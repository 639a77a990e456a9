"""Classification with alternating normalization: better predictions without retraining."""

from altnorm.ambiguity import ambiguity, topk_entropy
from altnorm.functional import alternating_normalization, trajectory
from altnorm.normalizer import AlternatingNormalizer

__all__ = [
    "AlternatingNormalizer",
    "alternating_normalization",
    "ambiguity",
    "topk_entropy",
    "trajectory",
]
