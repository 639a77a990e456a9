"""Adjuster and AlternatingNormalizerCV: from validation data to what is applied."""

from altnorm.adjuster.adjuster import Adjuster
from altnorm.adjuster.alternating import AlternatingNormalizerCV
from altnorm.adjuster.loading import load

__all__ = ["Adjuster", "AlternatingNormalizerCV", "load"]
