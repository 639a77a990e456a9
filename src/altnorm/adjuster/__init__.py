"""Adjuster and AlternatingNormalizerCV: from validation data to what is applied.

- `validation`: clean validation data.
- `candidates`, `alternating_paths`: what competes, cross-fitted.
- `choice`: which probabilities, which decisions, on what evidence.
- `adjuster`, `alternating`, `classifier`: the estimators.
- `adaptation`: what new predictions without labels say. `comparison`: methods side by side.
"""

from altnorm._base.persistence import load
from altnorm.adjuster.adjuster import Adjuster
from altnorm.adjuster.alternating import AlternatingNormalizerCV

# Whoever loads a model has all kinds of them at hand, as they are registered by their classes.
__all__ = ["Adjuster", "AlternatingNormalizerCV", "load"]
