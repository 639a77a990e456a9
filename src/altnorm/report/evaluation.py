"""What a fitted transformer does to predictions: before and after, scores and verdict by labels.

`evaluate` judges it on labelled rows; a `Case` holds all that a report shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.words import percent
from altnorm.decisions.decision import class_decisions, decision_codes
from altnorm.decisions.purpose import purpose_of
from altnorm.estimator.base import ProbabilityTransformer, chosen_model
from altnorm.estimator.drift import Drift
from altnorm.estimator.explanation import Explanation
from altnorm.estimator.kinds import FittedModel, LabelKind, kind_of
from altnorm.estimator.reading import read_on_host
from altnorm.evidence.folds import number_groups
from altnorm.evidence.promise import Kept, check_promise
from altnorm.evidence.scores import resolve_scoring
from altnorm.evidence.seen import share_seen
from altnorm.evidence.suspicion import Labelled
from altnorm.evidence.verdict import SIGNIFICANCE, Caution, Verdict, compare_predictions
from altnorm.io.labels import names_of
from altnorm.io.predictions import Predictions
from altnorm.report.measures import Reliability, class_changes, reliability

MANY_SEEN = 0.2  # share of the rows
MAX_LOSING = 4  # classes that a sentence names
TESTED_BEFORE = "Before: the most probable class of predictions as they came, whatever it costs."


class Applied(NamedTuple):
    """Probabilities and decisions before and after an adjustment."""

    before: np.ndarray  # (n, m)
    after: np.ndarray  # (n, m)
    old: np.ndarray  # (n,) columns, or (n, m) 0 and 1: what `before` says by itself
    new: np.ndarray  # likewise; m for a row that is left to a person
    truth: np.ndarray | None = None  # labels, where there are any that it has not seen
    undecided: np.ndarray | None = None  # (n,) booleans: left to a person for a target accuracy

    @property
    def left(self) -> np.ndarray:
        """Rows that are left to a person.

        Rows that are left for a target accuracy still have a class in `new`.
        """
        return self.unscored if self.undecided is None else np.flatnonzero(self.undecided)

    @property
    def unscored(self) -> np.ndarray:
        """Rows for which no class is decided."""
        return np.flatnonzero(self.new == self.before.shape[1] if self.new.ndim == 1 else [])

    def only_losing(self, names: Sequence[str]) -> str:
        """Say which classes have rows broken and none fixed, more of them than chance brings about.

        Empty if none does.
        """
        if self.truth is None:
            return ""
        fixed, broken = class_changes(self.old, self.new, self.before.shape[1], self.truth)
        losing = (fixed == 0) & (fixed.size * 0.5**broken < SIGNIFICANCE)  # by a sign test
        order = [j for j in np.argsort(-broken, kind="stable").tolist() if losing[j]]
        shown = [f"{names[j]}: 0 fixed, {broken[j]:,} broken" for j in order[:MAX_LOSING]]
        more = f"; and {len(order) - MAX_LOSING} more" if len(order) > MAX_LOSING else ""
        verb = "One class only loses" if len(order) == 1 else f"{len(order)} classes only lose"
        return f"{verb} ({'; '.join(shown)}{more})." if order else ""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a fitted transformer does to labelled predictions.

    A row with several labels is fixed if fewer of its label decisions are wrong than before, and
    broken if more are. One that is left to a person is neither.
    """

    verdict: Verdict  # by the score that was asked for
    scores: list[Verdict]  # by other common scores, log loss among them
    reliability: tuple[Reliability, Reliability]  # before and after
    fixed: np.ndarray  # row numbers
    broken: np.ndarray
    ids: np.ndarray  # of all rows: theirs, or their numbers
    applied: Applied
    kept: Kept | None = None  # whether the promise of a target accuracy holds here


def evaluate(model: FittedModel, predictions: Predictions, *, scoring: Any = None) -> Evaluation:
    """Compare labelled predictions before and after an adjustment.

    Every row has a label, and columns are in the order of ``model.classes_``. Where the
    predictions say which rows belong together, the evidence counts groups. Without `scoring` the
    purpose of the model judges, or else accuracy (micro-F1 with several labels).
    """
    check_kind(predictions, model)
    truth = predictions.codes
    applied = apply(model, predictions.proba, truth)
    purpose = purpose_of(model, scoring)
    kind, asked = purpose.kind, purpose.score
    # With rows left to a person, what other scores would count is not defined.
    names = ("neg_log_loss",) if applied.unscored.size else kind.scores
    others = [resolve_scoring(name, kind.is_multilabel) for name in names if name != asked.name]
    sides = {"proba": (applied.before, applied.after), "labels": (applied.old, applied.new)}
    person = None if kind.is_multilabel else applied.before.shape[1]
    verdict, *scores = (
        compare_predictions(
            truth, *sides[score.needs], scoring=score, groups=predictions.groups, person=person
        )
        for score in (asked, *others)
    )
    rows = Labelled(applied.before, truth, np.ones(len(truth)), class_names(model, predictions))
    price = purpose.price(rows, applied.old, applied.new, applied.after)
    cautions = [_seen_before(model, applied.before), price]
    fewer = _n_wrong(truth, applied.old) - _n_wrong(truth, applied.new)
    fewer[applied.unscored] = 0
    return Evaluation(
        verdict.with_cautions(cautions),
        scores,
        (reliability(applied.before, truth), reliability(applied.after, truth)),
        np.flatnonzero(fewer > 0),
        np.flatnonzero(fewer < 0),
        np.arange(len(truth)) if predictions.ids is None else predictions.ids,
        applied,
        _hold_to_promise(model, applied, predictions.groups),
    )


def _hold_to_promise(model: FittedModel, applied: Applied, groups: Any) -> Kept | None:
    promise = getattr(getattr(model, "verdict_", None), "promise", None)
    if promise is None or applied.undecided is None:
        return None
    right = applied.new == applied.truth
    units = None if groups is None else number_groups(groups, np.ones(right.size, dtype=bool))
    return check_promise(promise, ~applied.undecided, right, units)


def apply(model: FittedModel, proba: Any, truth: np.ndarray | None = None) -> Applied:
    """Apply a fitted transformer to what its `transform` takes."""
    rows = read_on_host(model, proba)
    kind, before = rows.kind, rows.proba
    after = np.asarray(model.transform(proba))
    new, undecided = class_decisions(model, proba), None
    if getattr(model, "target_accuracy", None) is not None:
        undecided = decision_codes(model, proba) == before.shape[1]
    return Applied(before, after, kind.decide(before), new, truth, undecided)


def class_names(model: FittedModel, predictions: Predictions) -> np.ndarray:
    """Return the names of the classes: the model's or, where it has only numbers, the file's."""
    classes = np.asarray(model.classes_)
    is_numbered = classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(classes.size))
    return np.asarray(predictions.classes if is_numbered else classes)


def _seen_before(model: FittedModel, proba: np.ndarray) -> Caution | None:
    """Return a caution if a model was tuned on these rows, or on many of them."""
    share = share_seen(getattr(model, "seen_rows_", np.empty(0, dtype=np.uint64)), proba)
    if share < MANY_SEEN:
        return None
    those = (
        "These are the rows"
        if share > 0.99
        else f"About {percent(share, 0)} of these rows are among those"
    )
    text = (
        f"{those} that the model was tuned on, so the result is too good. Judge it on rows that it "
        "has not seen; the verdict of tuning is cross-fitted and allows for this."
    )
    return Caution("tuned_on_these_rows", text, share, serious=True)


def _n_wrong(truth: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """Number of wrong decisions in each row."""
    return np.count_nonzero((decided != truth).reshape(len(truth), -1), axis=1)


def check_kind(predictions: Predictions, model: FittedModel) -> None:
    """Raise unless the predictions are of the kind that the model was fitted on."""
    needs, labels = kind_of(model).words, predictions.kind.words
    if predictions.labels is not None and labels != needs:
        rule = f"The model is for {needs.problem} problems, and the labels are {labels.labels}"
        remedy = "Tune a model with or without --multilabel, as the labels need."
        raise InputError(rule, remedy=remedy, value=labels.labels, code="multilabel")
    if predictions.input != model.input:
        words = {"proba": "probabilities", "logits": "logits"}
        rule = f"The model was fitted on {words[model.input]}, and the file holds "
        rule += words[predictions.input]
        remedy = "Give it the same kind of file."
        raise InputError(rule, remedy=remedy, value=predictions.input, code="input_kind")


# What a report is about.


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted transformer, predictions, and what the one does to the other."""

    model: FittedModel
    chosen: Any  # what corrects the probabilities: the model itself unless it was tuned
    kind: LabelKind
    classes: np.ndarray  # names
    names: list[str]  # what decisions are called, the last one a person
    applied: Applied
    explanation: Explanation  # which decisions changed, and why
    evaluation: Evaluation | None  # where there are labels that the model has not seen
    judged: Applied | None  # to rows whose labels may be looked at: tested, or cross-fitted
    drift: Drift | None  # None if the model cannot say
    seen: bool  # whether the model was fitted on these predictions

    @property
    def tuned(self) -> Verdict | None:
        """What tuning found, on validation data."""
        verdict: Verdict | None = getattr(self.model, "verdict_", None)
        return verdict

    @property
    def tested(self) -> Verdict | None:
        """What the labels of these predictions say."""
        return None if self.evaluation is None else self.evaluation.verdict


def read_case(
    model: FittedModel, predictions: Predictions, *, scoring: Any = None, seen: bool = False
) -> Case:
    """Apply the model; evaluate it where there are labels that it has not seen."""
    check_kind(predictions, model)
    evaluation, judged, classes = None, None, class_names(model, predictions)
    if predictions.labels is not None and not seen:
        evaluation = evaluate(model, predictions, scoring=scoring)
        applied = judged = evaluation.applied
    else:
        # Labels that tuning has used would show the model better than it is.
        applied = apply(model, predictions.proba)
        judged = _cross_fitted(model) if seen else None
    kind = kind_of(model)
    explanation = Explanation.from_decisions(
        (applied.before, applied.after),
        (applied.old, applied.new),
        kind.ambiguity(applied.before, k_max=getattr(model, "k_max", 10)),
        classes,
    )
    return Case(
        model,
        chosen_model(model),
        kind,
        classes,
        [*names_of(classes), "left to a person"],
        applied,
        explanation,
        evaluation,
        judged,
        model.drift(predictions.proba) if isinstance(model, ProbabilityTransformer) else None,
        seen,
    )


def _cross_fitted(model: Any) -> Applied | None:
    """The rows that the verdict rests on; None where the model comes from a file."""
    judged = getattr(model, "_judged", None)
    if judged is None:
        return None
    untouched = kind_of(model).decide(judged.before)
    return Applied(judged.before, judged.after, untouched, judged.decided, judged.labels)
