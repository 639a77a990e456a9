"""What a report is about: a fitted normalizer, predictions, and what the one does to the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from altnorm.adjuster.summary import calibrates
from altnorm.evidence.verdict import Verdict
from altnorm.families import Identity
from altnorm.io.predictions import Predictions
from altnorm.method.drift import Drift, count_usage, fitted_usage, measure_drift
from altnorm.method.explanation import Explanation
from altnorm.method.kinds import LabelKind, kind_of
from altnorm.method.normalizer import AlternatingNormalizer
from altnorm.report.evaluation import (
    Evaluation,
    before_and_after,
    check_kind,
    evaluate,
    explain_change,
)


@dataclass(frozen=True, eq=False)
class Case:
    """A normalizer, predictions, and what the one does to the other.

    Attributes
    ----------
    normalizer, inner : estimator
        What was given, and what it applies (the same unless it was tuned).
    kind : LabelKind
        Of labels: one class per row, or several labels.
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
    seen : bool
        Whether the normalizer was fitted on these predictions.
    """

    normalizer: Any
    inner: Any
    kind: LabelKind
    classes: np.ndarray
    before: np.ndarray
    after: np.ndarray
    codes: np.ndarray | None
    ambiguity: np.ndarray
    threshold: float | None
    explanation: Explanation
    evaluation: Evaluation | None
    seen: bool = False

    @cached_property
    def decided(self) -> tuple[np.ndarray, np.ndarray]:
        """Decisions before and after: class codes (n,), or 0/1 matrices (n, m)."""
        return self.kind.decide(self.before), self.kind.decide(self.after)

    @cached_property
    def decided_only(self) -> np.ndarray | None:
        """Probabilities after the decisions alone, where calibration follows them."""
        if self.family == "identity" or not calibrates(self.normalizer):
            return None
        return np.asarray(self.inner.transform(self.before))

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
    def family(self) -> str:
        """What is applied: "alternating", "identity" or "other" (biases, a peer)."""
        if isinstance(self.inner, AlternatingNormalizer):
            return "alternating"
        return "identity" if isinstance(self.inner, Identity) else "other"

    @property
    def drift(self) -> Drift | None:
        """Whether these predictions look like those the reference is from."""
        if not isinstance(self.inner, AlternatingNormalizer):
            return None
        return measure_drift(fitted_usage(self.inner), count_usage(self.inner, self.before))

    @property
    def method(self) -> str:
        """Name of the class that is applied."""
        return type(self.inner).__name__

    @property
    def settings(self) -> dict[str, Any]:
        """The settings applied, or the best of those that were not adopted."""
        best = getattr(self.normalizer, "best_params_", None)
        return dict(best) if best is not None else dict(self.inner.get_params(deep=False))


def read_case(
    normalizer: Any, predictions: Predictions, *, scoring: Any = None, seen: bool = False
) -> Case:
    """Apply the normalizer; evaluate it where there are labels that it has not seen."""
    # Labels that tuning has used would show the model better than it is.
    if seen:
        predictions = Predictions(predictions.proba, predictions.classes, None, predictions.input)
    check_kind(predictions, normalizer)
    inner = getattr(normalizer, "best_normalizer_", normalizer)
    kind = kind_of(normalizer)
    evaluation = None
    if predictions.labels is not None:
        evaluation = evaluate(normalizer, predictions, scoring=scoring)
        before, after = evaluation.before, evaluation.after
    else:
        before, after = before_and_after(normalizer, predictions.proba)
    ambiguity = kind.ambiguity(before, k_max=getattr(normalizer, "k_max", 10))
    explanation = explain_change(normalizer, before, after)
    return Case(
        normalizer,
        inner,
        kind,
        np.asarray(normalizer.classes_),
        before,
        after,
        None if predictions.labels is None else predictions.codes,
        ambiguity,
        _threshold(normalizer, inner),
        explanation,
        evaluation,
        seen,
    )


def _threshold(normalizer: Any, inner: Any) -> float | None:
    found = getattr(inner, "threshold", None)
    if found is None:
        found = getattr(normalizer, "best_params_", {}).get("threshold")
    return None if found is None else float(found)
