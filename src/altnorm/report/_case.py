"""What a report is about: a fitted transformer, predictions, and what the one does to the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from altnorm._base.normalizer import FittedNormalizer
from altnorm.adjuster.applied import apply_model
from altnorm.decisions.weights import class_shares
from altnorm.evidence.folds import assign_folds
from altnorm.evidence.verdict import Verdict
from altnorm.families import Identity
from altnorm.io.predictions import Predictions
from altnorm.method.drift import Drift
from altnorm.method.estimator import ProbabilityTransformer, chosen_model, read_before
from altnorm.method.explanation import Explanation
from altnorm.method.kinds import LabelKind, kind_of
from altnorm.method.normalizer import AlternatingNormalizer
from altnorm.report.evaluation import (
    Applied,
    Evaluation,
    Judged,
    apply,
    check_kind,
    class_names,
    evaluate,
    purpose_of,
)
from altnorm.report.measures import Purposes, label_thresholds, purposes

MOST_WORK = 3e7  # rows times classes squared of a matrix that is fitted again: ten seconds


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted transformer, predictions, and what the one does to the other.

    Attributes
    ----------
    normalizer, model : estimator
        What was given, and what makes its probabilities (the same unless it was tuned).
    kind : LabelKind
        Of labels: one class per row, or several labels.
    classes : ndarray of shape (n_classes,)
        Names.
    applied : Applied
        Probabilities and decisions before and after.
    explanation : Explanation
        Why each changed row changed.
    evaluation : Evaluation or None
        Scores and verdict, where there are labels that the model has not seen.
    drift : Drift or None
        Whether the predictions look like those at fit; None if the model cannot say.
    judged : Judged or None
        Rows whose labels may be looked at: of a test set, or validation rows, cross-fitted.
    seen : bool
        Whether the model was fitted on these predictions.
    shares : ndarray of shape (n_classes,) or None
        Class shares among the validation labels, where they are known.
    """

    normalizer: FittedNormalizer
    model: Any
    kind: LabelKind
    classes: np.ndarray
    applied: Applied
    explanation: Explanation
    evaluation: Evaluation | None
    drift: Drift | None
    judged: Judged | None
    seen: bool
    shares: np.ndarray | None

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
    def truth(self) -> np.ndarray | None:
        """Labels of the rows of the report, where the model has not seen them."""
        return None if self.evaluation is None or self.judged is None else self.judged.truth

    @property
    def names(self) -> list[str]:
        """What decisions are called: the classes, and a person at the end."""
        return [*map(str, self.classes.tolist()), "left to a person"]

    @property
    def purpose(self) -> str:
        """Name of the score that decisions are for."""
        return purpose_of(self.normalizer).score.name

    @cached_property
    def purposes(self) -> Purposes | None:
        """What other decisions from the same probabilities would give; None if all are alike."""
        if self.judged is None:
            return None
        truth, (_, after, old, _) = self.judged
        if self.kind.is_multilabel:
            return label_thresholds(after, truth, old)
        found = purposes(after, truth, self._shares(), old)
        return found if found.spread.any() else None

    def _shares(self) -> np.ndarray:
        decision = getattr(self.normalizer, "decision_", None)
        if decision is not None and self.purpose == "balanced_accuracy" and not decision.is_argmax:
            return np.asarray(decision.values.min() / decision.values)
        if self.shares is not None:
            return self.shares
        # What calibrated probabilities say of the balance, without a look at these labels.
        assert self.judged is not None
        mean = self.judged.applied.after.mean(axis=0, dtype=np.float64)
        return np.maximum(mean, 0.5 / len(self.judged.truth))


def read_case(
    normalizer: FittedNormalizer,
    predictions: Predictions,
    *,
    validation: Predictions | None = None,
    scoring: Any = None,
    seen: bool = False,
) -> Case:
    """Apply the transformer; evaluate it where there are labels that it has not seen."""
    check_kind(predictions, normalizer)
    kind, evaluation, judged = kind_of(normalizer), None, None
    classes = class_names(normalizer, predictions)
    if predictions.labels is not None and not seen:
        evaluation = evaluate(normalizer, predictions, scoring=scoring)
        applied = evaluation.applied
        judged = Judged(predictions.codes, applied)
    else:
        # Labels that tuning has used would show the model better than it is.
        applied = apply(normalizer, predictions.proba)
        judged = _cross_fitted(normalizer, predictions) if seen else None
    # A copy that was adapted serves another balance than that of the validation rows.
    known = None if hasattr(normalizer, "shift_") else predictions if seen else validation
    drift = None
    if isinstance(normalizer, ProbabilityTransformer):
        drift = normalizer.drift(predictions.proba)
    return Case(
        normalizer,
        chosen_model(normalizer),
        kind,
        classes,
        applied,
        applied.explain(normalizer, classes),
        evaluation,
        drift,
        judged,
        seen,
        None if kind.is_multilabel else _label_shares(known),
    )


def _label_shares(known: Predictions | None) -> np.ndarray | None:
    if known is None or known.labels is None:
        return None
    known = known.labelled()
    return class_shares(known.codes, np.ones(len(known.proba)), known.proba.shape[1])


def _cross_fitted(normalizer: Any, predictions: Predictions) -> Judged | None:
    """Validation rows as the model sees them when it is fitted without their fold.

    None where there is nothing to fit again, or where that would take long.
    """
    model = getattr(normalizer, "model_", None)
    known = predictions.labelled()
    if model is None or known.labels is None:
        return None
    before, truth, kind = read_before(normalizer, known.proba), known.codes, kind_of(normalizer)
    n, m = before.shape
    if hasattr(model, "matrix_") and n * m**2 > MOST_WORK:
        return None
    after = np.empty(before.shape)
    # With several labels per row there is no class to deal rows by.
    folds = assign_folds(np.zeros(n, int) if kind.is_multilabel else truth, 5, known.groups)
    for k in range(folds.max() + 1):
        inside, fitted = folds == k, model
        if not isinstance(model, Identity):
            fitted = clone(model).set_params(input="proba").fit(before[~inside], truth[~inside])
            fitted.multilabel = getattr(model, "multilabel", None)
        after[inside] = apply_model(fitted, normalizer.temperature_, kind, before[inside])
    new = normalizer.decision_.codes(after)
    return Judged(truth, Applied(before, after, kind.decide(before), new))


def is_alternating(case: Case) -> bool:
    """Whether alternating normalization makes the probabilities."""
    return isinstance(case.model, AlternatingNormalizer)
