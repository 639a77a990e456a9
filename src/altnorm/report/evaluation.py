"""Before and after on labelled rows: scores, the verdict, and which rows were fixed and broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.seen_rows import share_seen
from altnorm._base.words import percent
from altnorm.evidence.verdict import Caution, Verdict, compare_predictions
from altnorm.io.predictions import Predictions
from altnorm.method.estimator import read_before
from altnorm.method.explanation import ChangedRow, Explanation
from altnorm.method.kinds import kind_of

_MANY_SEEN = 0.2  # share of the rows


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
        Probabilities; `after` as `transform` returns them, calibrated if the normalizer does that.
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
    normalizer : Adjuster or any fitted transformer of altnorm
        What to apply, with its calibration.
    predictions : Predictions
        Columns in the order of ``normalizer.classes_``, with labels.
    scoring : str, callable or Score, optional
        See :func:`altnorm.evidence.metrics.resolve_scoring`. None is the score that the normalizer
        was tuned for, or else accuracy (micro-F1 for multi-label problems).
    significance : float, default=0.05
        As for :func:`altnorm.evidence.verdict.compare_predictions`.
    random_state : int, RandomState or None, default=0
        Source of the resamples.

    Returns
    -------
    Evaluation
        Verdict, scores, rows.

    Examples
    --------
    >>> from altnorm import AlternatingNormalizer, load_demo
    >>> from altnorm.report.evaluation import evaluate
    >>> demo = load_demo()
    >>> normalizer = AlternatingNormalizer().fit(demo.validation.proba, demo.validation.labels)
    >>> evaluate(normalizer, demo.test).verdict.adopted
    True
    """
    kind, codes = kind_of(normalizer), predictions.codes
    check_kind(predictions, normalizer)
    before, after = before_and_after(normalizer, predictions.proba)
    options: dict[str, Any] = {"significance": significance, "random_state": random_state}
    asked = scoring if scoring is not None else tuned_for(normalizer)
    # The score that was asked for decides; the others are told beside it, each on its own.
    verdict = compare_predictions(codes, before, after, scoring=asked, **options)
    verdict = verdict.with_cautions(seen_before(normalizer, before))
    scores = [
        compare_predictions(codes, before, after, scoring=name, **options)
        for name in kind.scores
        if name != verdict.scoring
    ]
    wrong = [_n_wrong(codes, kind.decide(proba)) for proba in (before, after)]
    fixed, broken = np.flatnonzero(wrong[1] < wrong[0]), np.flatnonzero(wrong[1] > wrong[0])
    explanation = explain_change(normalizer, before, after)
    return Evaluation(verdict, scores, fixed, broken, explanation, before, after)


def seen_before(normalizer: Any, proba: np.ndarray) -> tuple[Caution, ...]:
    """Return a caution if a normalizer was tuned on these rows, or on many of them.

    Parameters
    ----------
    normalizer : fitted transformer
        Whose tuned estimators remember a sketch of their validation rows.
    proba : ndarray of shape (n_samples, n_classes)
        Probabilities.

    Returns
    -------
    tuple of Caution
        One or none.
    """
    share = share_seen(getattr(normalizer, "seen_rows_", np.empty(0, dtype=np.uint64)), proba)
    if share < _MANY_SEEN:
        return ()
    those = (
        "These are the rows"
        if share > 0.99
        else f"About {percent(share, 0)} of these rows are among those"
    )
    text = (
        f"{those} that the model was tuned on, so the result is too good. Judge it on rows that it "
        "has not seen; the verdict of tuning is cross-fitted and allows for this."
    )
    return (Caution("tuned_on_these_rows", text, share),)


def explain_change(normalizer: Any, before: np.ndarray, after: np.ndarray) -> Explanation:
    """Say which decisions of a fitted transformer changed, and why."""
    kind = kind_of(normalizer)
    ambiguity = kind.ambiguity(before, k_max=getattr(normalizer, "k_max", 10))
    return Explanation.from_predictions(before, after, ambiguity, normalizer.classes_, kind.decide)


def before_and_after(normalizer: Any, proba: Any) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities before and after a fitted transformer, given what its `transform` takes."""
    return read_before(normalizer, proba), np.asarray(normalizer.transform(proba))


def tuned_for(normalizer: Any) -> str:
    """Return the name of the score that a normalizer was tuned for, or a usual one."""
    verdict = getattr(normalizer, "verdict_", None)
    return kind_of(normalizer).scores[0] if verdict is None else str(verdict.scoring)


def _n_wrong(codes: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """Number of wrong decisions in each row."""
    return np.count_nonzero((decided != codes).reshape(len(codes), -1), axis=1)


def check_kind(predictions: Predictions, normalizer: Any) -> None:
    """Raise unless the predictions are of the kind that the normalizer was fitted on."""
    fitted, given = kind_of(normalizer).words, predictions.kind.words
    if predictions.labels is not None and given != fitted:
        raise InputError(
            f"The model is for {fitted.problem} problems, and the labels are {given.labels}",
            remedy="Tune a model with or without --multilabel, as the labels need.",
            value=given.labels,
            code="multilabel",
        )
    if predictions.input != normalizer.input:
        words = {"proba": "probabilities", "logits": "logits"}
        fitted_on, found = words[normalizer.input], words[predictions.input]
        raise InputError(
            f"The model was fitted on {fitted_on}, and the file holds {found}",
            remedy="Give it the same kind of file.",
            value=predictions.input,
            code="input_kind",
        )
