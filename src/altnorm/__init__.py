"""Classification with alternating normalization: better predictions without retraining."""

from altnorm.ambiguity import ambiguity, topk_entropy
from altnorm.classifier import AlternatingNormalizationClassifier
from altnorm.comparison import compare
from altnorm.functional import alternating_normalization, trajectory
from altnorm.normalizer import AlternatingNormalizer
from altnorm.tuning import AlternatingNormalizerCV

__all__ = [
    "AlternatingNormalizationClassifier",
    "AlternatingNormalizer",
    "AlternatingNormalizerCV",
    "alternating_normalization",
    "ambiguity",
    "compare",
    "topk_entropy",
    "trajectory",
]
