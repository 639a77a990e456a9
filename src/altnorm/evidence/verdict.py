"""Whether predictions are better after an adjustment: gain, interval, rows fixed and broken.

A decision (may this be applied?) and a test result (was it better on these rows?) come from the
same numbers and need other words: labels that do not settle a question revoke no decision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from altnorm._base import words
from altnorm._base.errors import InputError
from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.words import Figures
from altnorm.estimator.kinds import kind_of_labels
from altnorm.evidence.drawing import LOW, draw_coverage, draw_gain, find_axes
from altnorm.evidence.folds import number_blocks, number_groups
from altnorm.evidence.gates import Gate, Gates
from altnorm.evidence.paired import attribute_gain, paired_test
from altnorm.evidence.promise import Promise
from altnorm.evidence.scores import resolve_scoring

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIGNIFICANCE = 0.05  # level of a comparison that decides nothing, two-sided
REASONS = {  # why an adjustment was not adopted, in words
    "identical": "nothing changed",
    "not_chosen": "another family was chosen",
    "no_gain": "the score did not improve",
    "not_significant": "the evidence is too weak",
    "near_copies": "the gain is not proved when near copies of a row are kept in one fold",
    "suspect_input": "the input is probably wrong",
    "too_few_labels": "too few labels per class",
    "too_much_work": "too many rows and classes",
    "too_many_classes": "too many classes",
    "several_labels": "only for one class per row",
}
NOT_TRIED = ("too_few_labels", "too_much_work", "too_many_classes", "several_labels")
OUTCOMES = {
    "adopted": "Adopted",
    "not_adopted": "Not adopted",
    "not_tried": "Not tried",
    "better": "Better",
    "worse": "Worse",
    "unchanged": "No change",
    "open": "Not settled by these data",
}


@storable
@dataclass(frozen=True)
class Caution:
    """Something that a verdict cannot see, or that a reader should know.

    Attributes
    ----------
    code : str
        A name that stays the same when the wording changes.
    text : str
        One sentence.
    value : float
        The number that raised it.
    serious : bool
        Whether it belongs to the first line of a verdict.
    """

    code: str
    text: str
    value: float
    serious: bool = False

    def __str__(self) -> str:
        return self.text

    def _check_fitted(self, fields: Fields) -> None:
        """Types are all there is to check."""


@storable
@dataclass(frozen=True, repr=False)
class Verdict:
    """What a paired comparison of predictions before and after an adjustment came to.

    Attributes
    ----------
    scoring : str
        Name of the score; larger is better.
    before, after, gain : float
        The two scores and ``after - before``, in the score's own units.
    p_value : float
        Two-sided: how probable a difference at least this large, for better or worse, would be if
        there were none. It belongs to the interval: below 0.05 exactly where that excludes 0.
    ci_low, ci_high : float
        Two-sided interval for the gain, with 95 % confidence.
    std_error : float
        Standard error of the gain.
    n_rows, n_changed, n_fixed, n_broken : int
        Rows compared; decisions that changed; those that went from wrong to right, and from right
        to wrong. A row has one decision, or in multi-label problems one for each label.
    adopted : bool
        Whether this is applied or, of a comparison, whether it is clearly better.
    significance : float
        The level of the test.
    in_points : bool
        Whether `str` tells differences in points (hundredths).
    reason : str
        Why it was not adopted, as a code, a key of ``REASONS``; empty if it was.
    cautions : tuple of Caution
        What the evidence cannot see, each with its number.
    multilabel : bool
        Whether there are several labels per row.
    is_decision : bool
        Whether this decided what is applied, as `verdict_` does. Otherwise it is the result of a
        test, which revokes nothing: `str` uses other words.
    evidence : {"", "score", "log_loss"}
        What an adopted change rests on: the test of the score itself, or that of the
        probabilities, in `calibration_`.
    n_left : int
        Changed rows that are left to a person.
    gates : Gates
        What had to hold, in the order of deciding, each with its number. A change is adopted if all
        that must hold does, and one of the two kinds of evidence is there.
    insisted : bool
        Whether it is applied all the same, because of ``insist=True``.
    promise : Promise or None
        With `target_accuracy`: the share of the rows that is decided, and how many of these
        decisions are right. The other fields are about all rows, as if none were left to a person.
    """

    scoring: str
    before: float
    after: float
    gain: float
    p_value: float
    ci_low: float
    ci_high: float
    std_error: float
    n_rows: int
    n_changed: int
    n_fixed: int
    n_broken: int
    adopted: bool
    significance: float = SIGNIFICANCE
    in_points: bool = True
    reason: str = ""
    cautions: tuple[Caution, ...] = ()
    multilabel: bool = False
    is_decision: bool = False
    evidence: str = ""
    n_left: int = 0
    gates: Gates = field(default_factory=Gates)
    insisted: bool = False
    promise: Promise | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gates", Gates(self.gates))  # a model file holds a plain tuple

    def __bool__(self) -> bool:
        return self.adopted

    def __repr__(self) -> str:
        numbers = f"gain={self.gain:.4g}, p_value={self.p_value:.2g}, n_rows={self.n_rows}"
        return f"Verdict(adopted={self.adopted}, scoring={self.scoring!r}, {numbers})"

    def _check_fitted(self, fields: Fields) -> None:
        fields.choice("reason", ("", *REASONS))
        fields.choice("evidence", ("", "score", "log_loss"))
        for name in ("n_rows", "n_changed", "n_fixed", "n_broken", "n_left"):
            fields.number(name, 0)
        # A score that is not a number for these rows proves nothing, and then no number does.
        if self.adopted or (math.isfinite(self.before) and math.isfinite(self.after)):
            for name in ("before", "after", "gain", "ci_low", "ci_high"):
                fields.number(name)
            fields.number("std_error", 0)
            fields.number("p_value", 0, 1)
        fields.number("significance", 0, 1)
        fields.sequence("cautions", Caution)
        fields.sequence("gates", Gate)
        if fields.get("promise") is not None:
            fields.record("promise", Promise)

    @property
    def reason_text(self) -> str:
        """Why it was not adopted, in words; empty if it was."""
        return REASONS[self.reason] if self.reason else ""

    @property
    def n_still_wrong(self) -> int:
        """Decisions that changed and were wrong before and after."""
        return max(0, self.n_changed - self.n_fixed - self.n_broken - self.n_left)

    def __str__(self) -> str:
        result = outcome(self)
        if result == "not_tried":
            return f"{OUTCOMES[result]}: {self.reason_text}."
        numbers = score_figures(self)
        as_published = any(caution.code == "in_sample" for caution in self.cautions)
        is_untested = _applies_probabilities(self) or as_published
        word = "Applied" if is_untested else OUTCOMES[result]
        start = f"{word}: {numbers.name}"
        if self.reason == "identical":
            parts = [f"{start} stays at {numbers.before}", "no decision changes"]
        else:
            lower = ", lower is better" if numbers.lower else ""
            change = f"{numbers.before} -> {numbers.after} ({numbers.change_and_unit}{lower}"
            interval = f"95% interval {numbers.low} to {numbers.high}"
            # One number of evidence: where that is the log loss, its own comes with it.
            p_value = "" if self.evidence == "log_loss" else f", {numbers.p_value}"
            parts = [f"{start} {change}, {interval}{p_value})"]
            if self.n_changed or not numbers.lower:  # probabilities may change without a decision
                parts.append(change_words(self))
        parts += remarks(self)
        if self.insisted:
            parts.append("applied all the same, because of insist=True")
        elif result == "not_adopted" and self.reason not in ("identical", "not_chosen"):
            parts.append(kept_words(self))
        sentences = "; ".join(parts) + "."
        return sentences if self.promise is None else f"{sentences} {self.promise}"

    def _repr_html_(self) -> str:
        gates = self.gates.to_html() if self.gates else ""
        return words.html_card(str(self), [c.text for c in self.cautions], gates)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the gain with its interval on `ax`, or new axes; needs the extra `display`.

        With `target_accuracy`, the accuracy among the rows decided against their share. Returns the
        matplotlib axes.
        """
        if self.promise is not None:
            axes, promise = find_axes(ax), self.promise
            curves = promise.coverage_before, promise.coverage
            draw_coverage(axes, *curves, target=promise.target, share=promise.share)
            return axes
        axes, title = find_axes(ax, height=LOW), str(self).partition(" (")[0]
        draw_gain(axes, score_figures(self), title, change_words(self) if self.n_changed else "")
        return axes

    def with_cautions(self, cautions: Iterable[Caution | None]) -> Verdict:
        """Return the same verdict with cautions, those of them that there are."""
        return replace(self, cautions=tuple(c for c in cautions if c is not None))

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; what is not finite becomes None."""
        cautions = [_plain(caution) for caution in self.cautions]
        promise = None if self.promise is None else self.promise.to_dict()
        gates = [dict(vars(gate)) for gate in self.gates]
        records = {"cautions": cautions, "gates": gates, "promise": promise}
        return {**_plain(self), **records}


def _plain(record: Verdict | Caution) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in vars(record).items()
    }


def outcome(verdict: Verdict) -> str:
    """Return the key of `OUTCOMES` that a verdict comes to."""
    if verdict.reason in NOT_TRIED:
        return "not_tried"
    if verdict.is_decision:
        return "adopted" if verdict.adopted else "not_adopted"
    if verdict.adopted:
        return "better"
    if verdict.reason == "identical":
        return "unchanged"
    clear = verdict.gain < 0 and verdict.p_value < verdict.significance
    return "worse" if clear else "open"


def score_figures(verdict: Verdict) -> Figures:
    """Return the numbers of a verdict as text."""
    return words.figures(
        verdict.scoring,
        verdict.before,
        verdict.after,
        (verdict.ci_low, verdict.ci_high),
        verdict.p_value,
        in_points=verdict.in_points,
        multilabel=verdict.multilabel,
    )


def family_words(verdict: Verdict, share: float | None = None) -> str:
    """Say how a family compares with a temperature; the one chosen has a share in the mixture."""
    if outcome(verdict) == "not_tried":
        return f"not tried: {verdict.reason_text}"
    if share is not None:
        part = words.percent(share, 0) if share >= words.VISIBLE else "under 1%"
        return f"chosen, {part} of the mixture"
    if verdict.gain <= 0:
        return "no better than a temperature"
    return f"{'' if verdict.ci_low > 0 else 'not clearly '}better than a temperature"


def change_words(verdict: Verdict) -> str:
    """Say how many decisions change, and what became of them; the parts add up."""
    if not verdict.n_changed:
        return "no decision changes"
    kind = kind_of_labels(verdict.multilabel).words
    total = verdict.n_fixed + verdict.n_broken + verdict.n_still_wrong + verdict.n_left
    rest, left = kind.still_wrong.format(verdict.n_still_wrong), ""
    if verdict.n_left or verdict.scoring == "neg_mean_cost":  # others may have been left before
        rest = rest.replace("wrong", "not right")
    if verdict.n_left:
        left = f", {verdict.n_left:,} left to a person"
    return (
        f"{words.plural(total, kind.changed)} changed: {verdict.n_fixed:,} fixed, "
        f"{verdict.n_broken:,} broken{rest}{left}"
    )


def rise_words(verdict: Verdict) -> str:
    """Say how a score rises or falls."""
    numbers = score_figures(verdict)
    if not numbers.changed:
        return f"{numbers.name} stays at {numbers.before}"
    verb = "falls" if (verdict.gain > 0) == numbers.lower else "rises"
    return f"{numbers.name} {verb} from {numbers.before} to {numbers.after}"


def kept_words(verdict: Verdict) -> str:
    """Say what becomes of decisions where the correction is not adopted; costs count even so."""
    if verdict.scoring == "neg_mean_cost":
        return "decisions are made without the correction"
    if verdict.promise is not None:  # rows may be left to a person even so
        return "the class of each row stays as it was"
    return "your decisions stay as they were"


def remarks(verdict: Verdict) -> Iterator[str]:
    """What belongs to the first line: what the evidence is, why not, and what is lost."""
    if verdict.is_decision and verdict.reason and verdict.reason != "identical":
        yield verdict.reason_text
    if verdict.evidence == "log_loss":
        yield evidence_words(verdict)
    if _applies_probabilities(verdict) and not verdict.ci_low > 0:
        yield (
            "but on these labels it rises"
            if verdict.ci_high < 0
            else "but these labels do not show that it falls"
        )
    for caution in verdict.cautions:
        if caution.serious:
            text = caution.text[0].lower() + caution.text[1:].rstrip(".")
            yield f"but {text}" if verdict.adopted else text


def evidence_words(verdict: Verdict) -> str:
    """Say what a change rests on where that is not the test of the score itself."""
    if verdict.evidence != "log_loss":
        return ""
    p_value = words.p_words(verdict.gates.largest_p("log_loss"))
    return (
        f"the evidence is the log loss (one-sided {p_value}), so the size of the gain is uncertain"
    )


def _applies_probabilities(verdict: Verdict) -> bool:
    """Whether it is about probabilities that are applied, which takes no test."""
    if not verdict.is_decision or not verdict.adopted or verdict.reason == "identical":
        return False
    return verdict.scoring == "neg_log_loss" and not verdict.gates


def compare_predictions(
    truth: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    *,
    scoring: Any = None,
    groups: Any = None,
    person: int | None = None,
) -> Verdict:
    """Say whether predictions are better after an adjustment than before, and how sure that is.

    `truth` are class codes (n,), or 0 and 1 (n, m). Predictions are probabilities or, where the
    score looks at decisions alone, these in the form of `truth`; the code `person` is that of rows
    that are left to one. With `groups`, which say which rows belong together, the evidence counts
    groups.
    """
    n, kind = len(truth), kind_of_labels(truth.ndim == 2)
    score = resolve_scoring(scoring, kind.is_multilabel)
    # Integers and truth values are decisions; probabilities have a decimal point.
    decided = [p if p.dtype.kind in "biu" else kind.decide(p) for p in (before, after)]
    old, new = (before, after) if score.needs == "proba" else decided
    units = None if groups is None else _units(groups, n)
    blocks, weight = number_blocks(n, units), np.ones(n)
    rows = attribute_gain(score, truth, old, new, weight, blocks)
    # A score that can only be called is known by blocks, of whole groups.
    clusters = [blocks] if score.function is not None else [] if units is None else [units]
    test = paired_test(rows, weight, clusters)
    reason = "" if test.p_value < SIGNIFICANCE else "not_significant"
    if not test.gain > 0:  # a gain of NaN is no gain either
        reason = "identical" if np.array_equal(old, new) else "no_gain"
    return Verdict(
        score.name,
        score(truth, old),
        score(truth, new),
        *test,
        n,
        **count_changes(truth, decided[0], decided[1], person)._asdict(),
        adopted=not reason,
        reason=reason,
        in_points=score.in_points,
        multilabel=kind.is_multilabel,
    )


def _units(groups: Any, n_rows: int) -> np.ndarray:
    """Number of the group of each row; there must be some to compare."""
    units = number_groups(groups, np.ones(n_rows, dtype=bool))
    if units.max() == 0:
        rule, offender = "A comparison needs at least 2 groups", f"all {n_rows} rows are of one"
        remedy = "Pass no groups if its rows are independent."
        raise InputError(rule, offender, remedy, value=1, code="groups")
    return units


class Changes(NamedTuple):
    """Numbers of decisions, as in a verdict."""

    n_changed: int
    n_fixed: int
    n_broken: int
    n_left: int


def count_changes(
    truth: np.ndarray, old: np.ndarray, new: np.ndarray, person: int | None = None
) -> Changes:
    """Decisions changed, fixed and broken: one per row, or one per label of a row.

    The code `person` leaves a row to a person: that is neither fixed nor broken.
    """
    changed = old != new
    left = changed & (new == person) if person is not None else np.zeros_like(changed)
    fixed, broken = changed & (new == truth), changed & (old == truth) & ~left
    return Changes(*(int(rows.sum()) for rows in (changed, fixed, broken, left)))
