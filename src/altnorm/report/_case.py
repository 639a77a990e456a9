"""What a report is about: a fitted normalizer, predictions, and what the one does to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from altnorm._estimator import as_proba
from altnorm.display.measures import doubt
from altnorm.drift import Drift
from altnorm.evaluation import Evaluation, check_kind, evaluate, explain_change
from altnorm.explanation import Explanation
from altnorm.normalizer import AlternatingNormalizer
from altnorm.peers import Identity
from altnorm.predictions import Predictions
from altnorm.verdict import Verdict

__all__ = ["Case", "read_case"]


@dataclass(frozen=True, eq=False)
class Case:
    """A normalizer, predictions, and what the one does to the other.

    Attributes
    ----------
    normalizer, inner : estimator
        What was given, and what it applies (the same unless it was tuned).
    classes : ndarray of shape (n_classes,)
        Names.
    before, after : ndarray of shape (n, m)
        Probabilities.
    codes : ndarray or None
        Labels: class codes (n,) or a 0/1 matrix (n, m).
    ambiguity : ndarray of shape (n,) or (n, m)
        Ambiguity of each row, or of each yes/no decision.
    threshold : float or None
        Ambiguity above which a row is adjusted; None if the model does not look at it.
    explanation : Explanation
        Why each changed row changed.
    evaluation : Evaluation or None
        Scores and verdict, where there are labels.
    """

    normalizer: Any
    inner: Any
    classes: np.ndarray
    before: np.ndarray
    after: np.ndarray
    codes: np.ndarray | None
    ambiguity: np.ndarray
    threshold: float | None
    explanation: Explanation
    evaluation: Evaluation | None

    @property
    def multilabel(self) -> str | None:
        """None, "pairs" or "labelwise"."""
        mode: str | None = self.normalizer.multilabel
        return mode

    @property
    def tuned(self) -> Verdict | None:
        """What tuning found, on validation data."""
        verdict: Verdict | None = getattr(self.normalizer, "verdict_", None)
        return verdict

    @property
    def tested(self) -> Verdict | None:
        """What the labels of these predictions say."""
        return None if self.evaluation is None else self.evaluation.verdict

    @property
    def kind(self) -> str:
        """What is applied: "alternating", "identity" or "other" (biases, a peer)."""
        if isinstance(self.inner, AlternatingNormalizer):
            return "alternating"
        return "identity" if isinstance(self.inner, Identity) else "other"

    @property
    def drift(self) -> Drift | None:
        """Whether these predictions look like those the reference is from."""
        if not isinstance(self.inner, AlternatingNormalizer):
            return None
        return self.inner._drift(self.before)

    @property
    def method(self) -> str:
        """Name of the class that is applied."""
        return type(self.inner).__name__

    @property
    def settings(self) -> dict[str, Any]:
        """The settings applied, or the best of those that were not adopted."""
        best = getattr(self.normalizer, "best_params_", None)
        return dict(best) if best is not None else dict(self.inner.get_params(deep=False))


def read_case(normalizer: Any, predictions: Predictions, *, scoring: Any = None) -> Case:
    """Apply the normalizer; evaluate it where there are labels."""
    check_kind(predictions, normalizer)
    inner = getattr(normalizer, "best_normalizer_", normalizer)
    multilabel = normalizer.multilabel is not None
    k_max = getattr(normalizer, "k_max", 10)
    before = as_proba(np.asarray(predictions.proba), predictions.input, multilabel=multilabel)
    evaluation = None
    if predictions.labels is not None:
        evaluation = evaluate(normalizer, predictions, scoring=scoring)
        before, after = evaluation.before, evaluation.after
    else:
        after = np.asarray(normalizer.transform(predictions.proba))
    ambiguity = doubt(before, multilabel=multilabel, k_max=k_max)
    explanation = explain_change(normalizer, before, after)
    return Case(
        normalizer,
        inner,
        np.asarray(normalizer.classes_),
        before,
        after,
        None if predictions.labels is None else predictions.codes,
        ambiguity,
        _threshold(normalizer, inner),
        explanation,
        evaluation,
    )


def _threshold(normalizer: Any, inner: Any) -> float | None:
    found = getattr(inner, "threshold", None)
    if found is None:
        found = getattr(normalizer, "best_params_", {}).get("threshold")
    return None if found is None else float(found)
