"""Adjuster and AlternatingNormalizerCV: from validation data to what is applied.

- `reading`, `validation`: clean validation data.
- `candidates`, `alternating_paths`: what competes, cross-fitted.
- `choice`: which probabilities, which decisions, on what evidence.
- `adjuster`, `alternating`, `classifier`: the estimators. `applied`: what a fitted one does.
- `adaptation`: what new predictions without labels say. `comparison`: methods side by side.
"""

from altnorm.adjuster.adjuster import Adjuster
from altnorm.adjuster.alternating import AlternatingNormalizerCV

__all__ = ["Adjuster", "AlternatingNormalizerCV"]
