"""Before and after on labelled rows: scores, the verdict, and which rows were fixed and broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.normalizer import FittedNormalizer
from altnorm._base.words import percent
from altnorm.asking.sampling import decision_codes
from altnorm.decisions import Purpose, resolve_purpose
from altnorm.decisions.weights import balancing_weights
from altnorm.evidence.cautions import Labelled, hurt_classes
from altnorm.evidence.metrics import resolve_scoring
from altnorm.evidence.seen_rows import share_seen
from altnorm.evidence.verdict import Caution, Verdict, compare_predictions
from altnorm.io.predictions import Predictions
from altnorm.method.estimator import read_before
from altnorm.method.explanation import ChangedRow, Explanation
from altnorm.method.kinds import kind_of
from altnorm.report.measures import reliability

MANY_SEEN = 0.2  # share of the rows

SCORES = {
    False: ("accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss"),
    True: ("f1_micro", "f1_macro", "accuracy", "neg_log_loss"),
}
"""What is told beside the score that was asked for, with one class and with several labels."""


class Applied(NamedTuple):
    """Probabilities and decisions before and after an adjustment."""

    before: np.ndarray  # (n, m)
    after: np.ndarray  # (n, m)
    old: np.ndarray  # (n,) columns, or (n, m) 0 and 1: what `before` says by itself
    new: np.ndarray  # likewise; m for a row that is left to a person

    @property
    def left(self) -> np.ndarray:
        """Rows that are left to a person."""
        return np.flatnonzero(self.new == self.before.shape[1] if self.new.ndim == 1 else [])

    def explain(self, normalizer: FittedNormalizer, classes: np.ndarray) -> Explanation:
        """Say which decisions changed, and why; `classes` are names."""
        kind = kind_of(normalizer)
        ambiguity = kind.ambiguity(self.before, k_max=getattr(normalizer, "k_max", 10))
        return Explanation.from_decisions(
            (self.before, self.after), (self.old, self.new), ambiguity, classes
        )


class Judged(NamedTuple):
    """Labelled rows, and what a model that has not seen them makes of them."""

    truth: np.ndarray
    applied: Applied


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a fitted transformer does to labelled predictions.

    Attributes
    ----------
    verdict : Verdict
        The comparison by the score that was asked for.
    scores : list of Verdict
        The same by other common scores, log loss among them.
    calibration_error : tuple of float
        Expected calibration error before and after.
    fixed, broken : ndarray of int
        Rows that went from wrong to right, and from right to wrong (multi-label: rows with fewer,
        and with more, wrong label decisions). A row that is left to a person is neither.
    left : ndarray of int
        Rows that are left to a person.
    explanation : Explanation
        Why each changed row changed.
    applied : Applied
        Probabilities and decisions.
    """

    verdict: Verdict
    scores: list[Verdict]
    calibration_error: tuple[float, float]
    fixed: np.ndarray
    broken: np.ndarray
    left: np.ndarray
    explanation: Explanation
    applied: Applied

    def changed(self, rows: np.ndarray) -> list[ChangedRow]:
        """Return the explanations of some rows, in the order of the file."""
        entries = np.flatnonzero(np.isin(self.explanation.row, rows))
        return [self.explanation[int(i)] for i in entries]

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: verdict, scores, rows fixed, broken and left."""
        return {
            "verdict": self.verdict.to_dict(),
            "scores": [score.to_dict() for score in self.scores],
            "calibration_error": list(self.calibration_error),
            **{name: getattr(self, name).tolist() for name in ("fixed", "broken", "left")},
        }


def evaluate(
    normalizer: FittedNormalizer,
    predictions: Predictions,
    *,
    scoring: Any = None,
    significance: float = 0.05,
) -> Evaluation:
    """Compare labelled predictions before and after an adjustment.

    Parameters
    ----------
    normalizer : Adjuster or any fitted transformer of altnorm
        What to apply: decisions by its `predict`, probabilities by its `transform`.
    predictions : Predictions
        Columns in the order of ``normalizer.classes_``, every row with a label. Where it says
        which rows belong together, the evidence counts groups.
    scoring : str, callable or Score, optional
        See :func:`altnorm.evidence.metrics.resolve_scoring`. None is the purpose of the normalizer,
        or else accuracy (micro-F1 for multi-label problems).
    significance : float, default=0.05
        As for :func:`altnorm.evidence.verdict.compare_predictions`.

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
    check_kind(predictions, normalizer)
    truth, applied = predictions.codes, apply(normalizer, predictions.proba)
    purpose = purpose_of(normalizer, scoring)
    score = purpose.score
    how = {"significance": significance, "groups": predictions.groups}
    verdict = _compare(truth, applied, score, **how)
    cautions = seen_before(normalizer, applied.before)
    classes = class_names(normalizer, predictions)
    cautions += _hurt(purpose, applied, truth, classes)
    # With rows left to a person, what other scores would count is not defined.
    names = ("neg_log_loss",) if applied.left.size else SCORES[purpose.kind.is_multilabel]
    others = [
        _compare(truth, applied, resolve_scoring(name, purpose.kind.is_multilabel), **how)
        for name in names
        if name != score.name
    ]
    errors = [reliability(p, truth).error for p in (applied.before, applied.after)]
    fewer = _n_wrong(truth, applied.old) - _n_wrong(truth, applied.new)
    fewer[applied.left] = 0
    return Evaluation(
        verdict.with_cautions(cautions),
        others,
        (errors[0], errors[1]),
        np.flatnonzero(fewer > 0),
        np.flatnonzero(fewer < 0),
        applied.left,
        applied.explain(normalizer, classes),
        applied,
    )


def apply(normalizer: FittedNormalizer, proba: Any) -> Applied:
    """Apply a fitted transformer to what its `transform` takes."""
    kind, before = kind_of(normalizer), read_before(normalizer, proba)
    after = np.asarray(normalizer.transform(proba))
    return Applied(before, after, kind.decide(before), decision_codes(normalizer, proba))


def class_names(normalizer: FittedNormalizer, predictions: Predictions) -> np.ndarray:
    """Return the names of the classes: the model's or, where it has only numbers, the file's."""
    own = np.asarray(normalizer.classes_)
    if own.dtype.kind in "iu" and np.array_equal(own, np.arange(own.size)):
        return np.asarray(predictions.classes)
    return own


def purpose_of(normalizer: FittedNormalizer, scoring: Any = None) -> Purpose:
    """Return what decisions are judged by: as asked, as tuned for, or as usual."""
    kind, classes = kind_of(normalizer), np.asarray(normalizer.classes_)
    if scoring is None:
        own = getattr(normalizer, "scoring", None), getattr(normalizer, "costs", None)
        return resolve_purpose(*own, kind, classes)
    return resolve_purpose(scoring, None, kind, classes)


def _compare(truth: np.ndarray, applied: Applied, score: Any, **how: Any) -> Verdict:
    sides = (applied.before, applied.after) if score.needs == "proba" else applied[2:]
    return compare_predictions(truth, *sides, scoring=score, **how)


def _hurt(
    purpose: Purpose, applied: Applied, truth: np.ndarray, classes: np.ndarray
) -> tuple[Caution, ...]:
    """Whether a class is given up, or balanced accuracy falls, for another purpose."""
    aims_elsewhere = purpose.costs is not None or purpose.score.name == "balanced_accuracy"
    if purpose.kind.is_multilabel or aims_elsewhere:
        return ()
    weight = np.ones(len(truth))
    balanced = applied.after * balancing_weights(truth, weight, classes.size)
    rows = Labelled(applied.before, truth, weight, classes)
    found = hurt_classes(rows, applied.old, applied.new, balanced.argmax(axis=1))
    return () if found is None else (found,)


def seen_before(normalizer: FittedNormalizer, proba: np.ndarray) -> tuple[Caution, ...]:
    """Return a caution if a normalizer was tuned on these rows, or on many of them."""
    share = share_seen(getattr(normalizer, "seen_rows_", np.empty(0, dtype=np.uint64)), proba)
    if share < MANY_SEEN:
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
    return (Caution("tuned_on_these_rows", text, share, serious=True),)


def _n_wrong(truth: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """Number of wrong decisions in each row."""
    return np.count_nonzero((decided != truth).reshape(len(truth), -1), axis=1)


def check_kind(predictions: Predictions, normalizer: FittedNormalizer) -> None:
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
