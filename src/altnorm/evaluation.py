"""Before and after on labelled rows: scores, the verdict, and which rows were fixed and broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from altnorm._validation import InputError
from altnorm.explanation import ChangedRow, Explanation
from altnorm.metrics import decide
from altnorm.multilabel import prediction_ambiguity
from altnorm.peers import Identity
from altnorm.predictions import Predictions
from altnorm.verdict import Verdict, compare_predictions

__all__ = ["Evaluation", "check_kind", "evaluate", "tuned_for"]

SINGLE_SCORES = ("accuracy", "f1_macro", "neg_log_loss", "neg_brier_score")
MULTILABEL_SCORES = ("f1_micro", "f1_macro", "accuracy", "neg_log_loss")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a normalizer does to labelled predictions.

    Attributes
    ----------
    verdict : Verdict
        The comparison by the score that was asked for.
    scores : list of Verdict
        The same by other common scores.
    fixed, broken : ndarray of int
        Rows that went from wrong to right, and from right to wrong (multi-label: rows with fewer,
        and with more, wrong label decisions).
    explanation : Explanation
        Why each changed row changed.
    before, after : ndarray of shape (n_samples, n_classes)
        Probabilities.
    """

    verdict: Verdict
    scores: list[Verdict]
    fixed: np.ndarray
    broken: np.ndarray
    explanation: Explanation
    before: np.ndarray
    after: np.ndarray

    def changed(self, rows: np.ndarray) -> list[ChangedRow]:
        """Return the explanations of some rows, in the order of the file."""
        entries = np.flatnonzero(np.isin(self.explanation.row, rows))
        return [self.explanation[int(i)] for i in entries]

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: verdict, scores, rows fixed and broken."""
        return {
            "verdict": self.verdict.to_dict(),
            "scores": [score.to_dict() for score in self.scores],
            "fixed": self.fixed.tolist(),
            "broken": self.broken.tolist(),
        }


def evaluate(
    normalizer: Any,
    predictions: Predictions,
    *,
    scoring: Any = None,
    significance: float = 0.05,
    random_state: Any = 0,
) -> Evaluation:
    """Compare labelled predictions before and after an adjustment.

    Parameters
    ----------
    normalizer : AlternatingNormalizer or any fitted transformer of altnorm
        What to apply.
    predictions : Predictions
        Columns in the order of ``normalizer.classes_``, with labels.
    scoring : str, callable or Score, optional
        See :func:`altnorm.metrics.resolve_scoring`. None is the score that the normalizer was
        tuned for, or else accuracy (micro-F1 for multi-label problems).
    significance : float, default=0.05
        As for :func:`altnorm.verdict.compare_predictions`.
    random_state : int, RandomState or None, default=0
        Source of the resamples.

    Returns
    -------
    Evaluation
        Verdict, scores, rows.

    Examples
    --------
    >>> from altnorm import AlternatingNormalizer
    >>> from altnorm.datasets import load_demo
    >>> from altnorm.evaluation import evaluate
    >>> demo = load_demo()
    >>> normalizer = AlternatingNormalizer().fit(demo.validation.proba, demo.validation.labels)
    >>> evaluate(normalizer, demo.test).verdict.adopted
    True
    """
    multilabel = normalizer.multilabel is not None
    check_kind(predictions, normalizer)
    codes = predictions.codes
    identity = Identity(input=normalizer.input, multilabel=normalizer.multilabel)
    before = identity.fit(predictions.proba)._check_transform(predictions.proba)
    after = normalizer._transform(normalizer._check_transform(predictions.proba))
    rule = getattr(normalizer, "decision", "threshold") if multilabel else "threshold"
    options = {"significance": significance, "random_state": random_state, "rule": rule}
    names = MULTILABEL_SCORES if multilabel else SINGLE_SCORES
    asked = scoring if scoring is not None else tuned_for(normalizer)
    verdict = compare_predictions(codes, before, after, scoring=asked, **options)
    scores = [
        compare_predictions(codes, before, after, scoring=name, **options)
        for name in names
        if name != verdict.scoring
    ]
    wrong = [_n_wrong(codes, proba, rule) for proba in (before, after)]
    fixed, broken = np.flatnonzero(wrong[1] < wrong[0]), np.flatnonzero(wrong[1] > wrong[0])
    explanation = explain_change(normalizer, before, after)
    return Evaluation(verdict, scores, fixed, broken, explanation, before, after)


def explain_change(normalizer: Any, before: np.ndarray, after: np.ndarray) -> Explanation:
    """Say which decisions of a fitted transformer changed, and why."""
    multilabel = normalizer.multilabel is not None
    k_max = getattr(normalizer, "k_max", 10)
    doubt = prediction_ambiguity(before, multilabel=multilabel, k_max=k_max)
    return Explanation.from_predictions(
        before, after, doubt, normalizer.classes_, normalizer._decide if multilabel else None
    )


def tuned_for(normalizer: Any) -> str:
    """Return the name of the score that a normalizer was tuned for, or a usual one."""
    verdict = getattr(normalizer, "verdict_", None)
    usual = SINGLE_SCORES if normalizer.multilabel is None else MULTILABEL_SCORES
    return usual[0] if verdict is None else str(verdict.scoring)


def _n_wrong(codes: np.ndarray, proba: np.ndarray, rule: str) -> np.ndarray:
    """Number of wrong decisions in each row."""
    if codes.ndim == 2:
        return np.count_nonzero(decide(proba, rule=rule) != codes, axis=1)
    return (proba.argmax(axis=1) != codes).astype(int)


def check_kind(predictions: Predictions, normalizer: Any) -> None:
    """Raise unless the predictions are of the kind that the normalizer was fitted on."""
    multilabel, kind = normalizer.multilabel is not None, normalizer.input
    if predictions.labels is not None and predictions.multilabel != multilabel:
        fitted = "multi-label" if multilabel else "single-label"
        given = "a 0/1 matrix" if predictions.multilabel else "one class a row"
        raise InputError(
            f"The model is for {fitted} problems, and the labels are {given}",
            remedy="Tune a model with or without --multilabel, as the labels need.",
            value=given,
            code="multilabel",
        )
    if predictions.input != kind:
        told = {"proba": "probabilities", "logits": "logits"}
        raise InputError(
            f"The model was fitted on {told[kind]}, and the file holds {told[predictions.input]}",
            remedy="Give it the same kind of file.",
            value=predictions.input,
            code="input_kind",
        )
