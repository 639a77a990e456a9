"""Adjuster and AlternatingNormalizerCV: from validation data to what is applied.

- `validation`: clean validation data.
- `candidates`, `alternating_paths`: what competes, cross-fitted.
- `choice`: which probabilities, which decisions, on what evidence.
- `adjuster`, `alternating`, `classifier`: the estimators.
- `loading`: a model file back into the estimator that it was.
- `adaptation`: what new predictions without labels say. `comparison`: methods side by side.
"""

from altnorm.adjuster.adjuster import Adjuster
from altnorm.adjuster.alternating import AlternatingNormalizerCV
from altnorm.adjuster.loading import load

__all__ = ["Adjuster", "AlternatingNormalizerCV", "load"]
