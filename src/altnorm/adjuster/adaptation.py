"""New predictions without labels."""

from __future__ import annotations

from typing import Any

from altnorm.method.estimator import ProbabilityTransformer


class Adaptable(ProbabilityTransformer):
    """What an estimator that was tuned on labels can say and do about new predictions."""

    def _remember_rows(self, data: Any, competitors: Any) -> None:
        """Keep what `adapt` needs to know of the validation data."""
