"""The choice: which probabilities, which decisions, and what the evidence for them is.

Probabilities first: the candidate of least cross-fitted log loss, if that is proved to be below a
temperature's. Then the decision that the purpose asks for, on these probabilities. It is adopted if
the cross-fitted score of the purpose rises and there is evidence:

- Where the most probable class is decided, the log loss must be lower on the rows whose decision
  changes, too. Most of what can be gained in log loss may be gained by other confidence alone; on
  these rows it cannot.
- Rules that look at labels, and methods' own decisions, stand a paired test of the score itself.

So what is tested is what is applied. Where the likeliest candidate is a poor decider, another may
take its place, if its score proves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from altnorm.adjuster.alternating_paths import Setting
from altnorm.adjuster.candidates import Candidate, Competitors, CrossFitter
from altnorm.adjuster.validation import Validation
from altnorm.decisions.decision import Decision
from altnorm.evidence.folds import (
    CLUSTER_ROWS,
    deal_clusters,
    has_near_copies,
    like_clusters,
    like_rows,
)
from altnorm.evidence.paired import Paired, attribute_gain, paired_test
from altnorm.evidence.scores import NEG_LOG_LOSS
from altnorm.evidence.verdict import Caution, Verdict, count_changes

ONE_ERROR = 1.0
"""Standard errors by which the score must rise where the probabilities are proved to be better: the
usual one-standard-error rule."""

CHANGED_LEVEL = 0.1
"""One-sided level of the test on the rows whose decision changes. They are few, and it comes on top
of the test on all rows."""


class Judge:
    """Compares cross-fitted probabilities and decisions with those that came in.

    Rules that look at labels are fitted outside of each fold; `significance` is one-sided.
    """

    def __init__(
        self,
        data: Validation,
        folds: np.ndarray,
        significance: float,
        clusters: list[np.ndarray] | None = None,
    ) -> None:
        self.data, self.folds, self.significance = data, folds, significance
        self.clusters = data.clusters() if clusters is None else clusters
        self.plain = data.purpose.plain(data.proba, data.labels, data.weight)
        self.before = self.plain.codes(data.proba)

    def log_loss_test(
        self, candidate: Candidate, other: Candidate, only: np.ndarray | None = None
    ) -> Paired:
        """Test whether the log loss of a candidate is below that of another, on some rows only."""
        weight = self.data.weight
        rows = weight / weight.sum() * (candidate.log_p - other.log_p)
        return paired_test(rows if only is None else rows * only, weight, self.clusters)

    def proves(self, test: Paired) -> bool:
        """Whether a gain is significant."""
        return test.gain > 0 and test.one_sided < self.significance

    def trial(self, candidate: Candidate, mildest: Candidate) -> Trial:
        """Put the decisions that the purpose makes of a candidate's probabilities to the test."""
        proba, purpose = candidate.proba(), self.data.purpose
        codes = self.decide(proba)
        proved = self.proves(self.log_loss_test(candidate, mildest))
        if purpose.is_argmax and proved:
            changed = self.log_loss_test(candidate, mildest, only=codes != self.before)
            proved = changed.gain > 0 and changed.one_sided < CHANGED_LEVEL
        by_proba = purpose.score.needs == "proba"
        scored = (self.data.proba, proba) if by_proba else (self.before, codes)
        return self.compare(candidate, codes, scored, proved=proved)

    def best_setting(self, tried: dict[Setting, np.ndarray], rows: Any = slice(None)) -> Setting:
        """Return the setting whose decisions score best on some rows; of equals the mildest."""
        data, score = self.data, self.data.purpose.score
        known = data.labels[rows], data.weight[rows]

        def order(setting: Setting) -> tuple[float, ...]:
            return (-score(known[0], tried[setting][rows], known[1]), *setting.severity())

        return min(tried, key=order)

    def compare(
        self,
        candidate: Candidate,
        codes: np.ndarray,
        scored: tuple[np.ndarray, np.ndarray],
        *,
        proved: bool = False,
        rule: Decision | None = None,
    ) -> Trial:
        """Test a candidate's decisions, given what the score looks at before and after."""
        if np.array_equal(*scored):
            rows = np.zeros(len(codes))
        else:
            known = self.data.labels, *scored, self.data.weight
            rows = attribute_gain(self.data.purpose.score, *known, self.data.blocks())
        test = paired_test(rows, self.data.weight, self.clusters)
        return Trial(self, candidate, codes, rows, test, proved, scored, rule)

    def decide(self, proba: np.ndarray) -> np.ndarray:
        """Decide each row by the rule that the rows of the other folds give."""
        data, purpose = self.data, self.data.purpose
        if purpose.is_argmax or purpose.costs is not None:
            return purpose.fit(proba, data.labels, data.weight).codes(proba)
        codes = np.empty_like(self.before)
        for k in range(int(self.folds.max()) + 1):
            inside = self.folds == k
            known = proba[~inside], data.labels[~inside], data.weight[~inside]
            codes[inside] = purpose.fit(*known).codes(proba[inside])
        return codes


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate's decisions, cross-fitted, and what they gain."""

    judge: Judge
    candidate: Candidate
    codes: np.ndarray
    rows: np.ndarray  # (n,) what each row adds to the gain
    test: Paired
    proved: bool  # whether its probabilities are: on all rows and, if that decides, changed ones
    scored: tuple[np.ndarray, np.ndarray]  # before and after, as the score needs them
    rule: Decision | None = None  # where it is not the purpose's

    @property
    def accepted(self) -> bool:
        """Whether the score rises and there is evidence for it."""
        purpose = self.judge.data.purpose
        if not self.test.gain > 0:
            return False
        if self.rule is None and purpose.is_argmax and purpose.score.needs == "labels":
            return self.proved
        from_probabilities = self.proved and self.test.errors >= ONE_ERROR
        return from_probabilities or self.judge.proves(self.test)

    @property
    def reason(self) -> str:
        """Why it is not accepted, as a code; empty if it is."""
        if np.array_equal(*self.scored):
            return "identical"
        if self.accepted:
            return ""
        return "not_significant" if self.test.gain > 0 else "no_gain"

    def against(self, other: Trial) -> Paired:
        """Test whether its decisions are better than another trial's."""
        rows, data = self.rows - other.rows, self.judge.data
        return paired_test(rows, data.weight, self.judge.clusters)

    @cached_property
    def verdict(self) -> Verdict:
        """The evidence, in the user's units."""
        data, score = self.judge.data, self.judge.data.purpose.score
        before, after = (score(data.labels, pred, data.weight) for pred in self.scored)
        return Verdict(
            score.name,
            before,
            after,
            *self.test,
            len(data.proba),
            *self._counts(),
            adopted=self.accepted,
            reason=self.reason,
            significance=self.judge.significance,
            in_points=score.in_points,
            multilabel=data.kind.is_multilabel,
            is_decision=True,
            evidence=self._evidence(),
            n_left=int(self._left().sum()),
        )

    def _left(self) -> np.ndarray:
        """Which rows are left to a person."""
        one_class = not self.judge.data.kind.is_multilabel
        return (self.codes == self.judge.data.proba.shape[1]) & one_class

    def _counts(self) -> tuple[int, int, int]:
        """Decisions changed, fixed and broken; a row that is left to a person is neither."""
        kept = ~self._left()
        known = self.judge.data.labels, self.judge.before, self.codes
        if kept.all():
            return count_changes(*known)
        changed, fixed, broken = count_changes(*(part[kept] for part in known))
        return changed + int((~kept).sum()), fixed, broken

    def _evidence(self) -> str:
        """What the evidence is, as a code: the score's own test, or the probabilities."""
        if not self.accepted:
            return ""
        return "score" if self.judge.proves(self.test) else "log_loss"

    def decision(self) -> Decision:
        """Fit the rule to all cross-fitted rows."""
        data = self.judge.data
        if self.rule is not None:
            return self.rule
        return data.purpose.fit(self.candidate.proba(), data.labels, data.weight)


class Choice(NamedTuple):
    """What is applied, and the trial that led to it."""

    candidate: Candidate  # whose probabilities are applied
    decision: Decision
    trial: Trial
    mildest: Candidate  # what the probabilities had to beat
    adopted: bool


def choose(
    judge: Judge, fitter: CrossFitter, competitors: Competitors, *, calibrate: bool
) -> Choice:
    """Choose probabilities, then decisions.

    Where no family describes the classifier well, the likeliest need not decide best. Another takes
    over if its score is proved to be better than that of the predictions and of the likeliest.
    Alternating normalization was made for decisions, so its own compete as well.

    Where the decisions are not adopted, the probabilities fall back to the temperature: it changes
    no decision.
    """
    untouched, temperature = competitors.untouched, competitors.temperature
    weight = judge.data.weight
    mildest = min((untouched, temperature), key=lambda c: c.log_loss(weight))
    trial = _main_trial(judge, competitors, mildest)
    for rival in _other_families(judge, competitors, mildest, trial):
        # A likelier candidate decides otherwise, so that here likelihood is not evidence enough.
        proved = judge.proves(rival.test) and judge.proves(rival.against(trial))
        if rival.accepted and proved:
            trial = rival
    highest = mildest.log_loss(weight) if calibrate else np.inf
    trial = _own_decisions(judge, fitter, competitors, trial, highest_loss=highest)
    fallback = mildest if calibrate else untouched
    if not trial.accepted:
        return Choice(fallback, judge.plain, trial, mildest, adopted=False)
    kept = trial.candidate.family not in ("none", "temperature")
    applied = trial.candidate if kept else fallback
    return Choice(applied, trial.decision(), trial, mildest, adopted=True)


def refuse(
    judge: Judge, competitors: Competitors, choice: Choice, *, calibrate: bool, reason: str
) -> Choice:
    """Return the choice to change no decision, and nothing at all where the input looks wrong."""
    untouched = reason == "suspect_input" or not calibrate
    candidate = competitors.untouched if untouched else choice.mildest
    return choice._replace(candidate=candidate, decision=judge.plain, adopted=False)


def try_likeness(judge: Judge, fitter: CrossFitter, choice: Choice) -> tuple[Caution | None, str]:
    """Say whether the gain is still there when like rows are kept together, and why to refuse it.

    One standard error will do, unless rows have near copies: there it must be proved. The reason
    is a code, and empty if nothing speaks against it.
    """
    data, trial = judge.data, choice.trial
    n_folds = int(judge.folds.max()) + 1
    if not trial.accepted or data.groups is not None or len(data.proba) < CLUSTER_ROWS * n_folds:
        return None, ""
    rows = like_rows(fitter.rows, odds=data.kind.is_multilabel)
    clusters = like_clusters(rows, n_folds)
    folds = deal_clusters(clusters, n_folds)
    again = fitter.on(folds).again(trial.candidate)
    gain = Judge(data, folds, judge.significance, [clusters]).trial(again, again).test
    if judge.proves(gain):
        return None, ""
    near = has_near_copies(rows)
    if gain.errors >= ONE_ERROR and not near:
        return None, ""
    text = (
        f"The gain is not {'proved' if near else 'there'} when like rows are kept together in the "
        "cross-validation: it may rest on rows that resemble each other. Look at a test set."
    )
    return Caution("likeness", text, gain.gain, serious=near), "near_copies" if near else ""


def _main_trial(judge: Judge, competitors: Competitors, mildest: Candidate) -> Trial:
    if not competitors.others:
        return judge.trial(mildest, mildest)
    best = min(competitors.others, key=lambda c: c.log_loss(judge.data.weight))
    purpose = judge.data.purpose
    # With the most probable class there would be nothing to tell of a temperature.
    tells = purpose.is_argmax and purpose.score.needs == "labels"
    proved = judge.proves(judge.log_loss_test(best, mildest))
    return judge.trial(best if proved or tells else mildest, mildest)


def _other_families(
    judge: Judge, competitors: Competitors, mildest: Candidate, trial: Trial
) -> Iterator[Trial]:
    """Put the decisions of the candidates to the test that are not the likeliest."""
    if judge.data.purpose.score.needs == "proba":
        return
    for candidate in competitors.others:
        if candidate is not trial.candidate and judge.proves(
            judge.log_loss_test(candidate, mildest)
        ):
            yield judge.trial(candidate, mildest)


def _own_decisions(
    judge: Judge,
    fitter: CrossFitter,
    competitors: Competitors,
    trial: Trial,
    *,
    highest_loss: float,
) -> Trial:
    """Put alternating normalization's own decisions in the place of a trial if they are better.

    Each fold is judged under the setting that is best on the others. Probabilities of a higher loss
    than a temperature's are no option; they take longest to work out, and so they come last.
    """
    tried, data = competitors.own_decisions, judge.data
    if not tried or data.purpose.score.needs == "proba":
        return trial
    codes = np.empty_like(judge.before)
    for k in range(int(judge.folds.max()) + 1):
        inside = judge.folds == k
        codes[inside] = tried[judge.best_setting(tried, ~inside)][inside]
    # Whatever the purpose's rule is.
    own = judge.compare(competitors.untouched, codes, (judge.before, codes), rule=judge.plain)
    better = not trial.accepted or own.against(trial).errors >= ONE_ERROR
    if not (own.accepted and better):
        return trial
    best = judge.best_setting(tried)
    known = (one for one in competitors.others if one.params == best._asdict())
    candidate = next(known, None) or fitter.at_setting(best)
    return (
        trial
        if candidate.log_loss(data.weight) > highest_loss
        else replace(own, candidate=candidate)
    )


def log_loss_verdict(
    judge: Judge, candidate: Candidate, other: Candidate, *, adopted: bool
) -> Verdict:
    """Compare the log loss of two candidates; larger is better, so both are negative."""
    test, weight = judge.log_loss_test(candidate, other), judge.data.weight
    reason = "" if adopted else "no_gain" if test.gain <= 0 else "not_significant"
    before, after = -other.log_loss(weight), -candidate.log_loss(weight)
    same = candidate is other
    return Verdict(
        NEG_LOG_LOSS.name,
        before,
        after,
        *test,
        len(judge.data.proba),
        n_changed=0,
        n_fixed=0,
        n_broken=0,
        adopted=adopted,
        reason="identical" if same else reason,
        significance=judge.significance,
        in_points=False,
        multilabel=judge.data.kind.is_multilabel,
        is_decision=True,
    )


def family_verdicts(
    judge: Judge, competitors: Competitors, mildest: Candidate
) -> dict[str, Verdict]:
    """Compare the log loss of each family with that of a temperature."""
    weight, found = judge.data.weight, dict[str, Verdict]()
    for candidate in sorted(competitors.others, key=lambda c: -c.log_loss(weight)):
        passes = judge.proves(judge.log_loss_test(candidate, mildest))
        found[candidate.family] = log_loss_verdict(judge, candidate, mildest, adopted=passes)
    nothing = log_loss_verdict(judge, mildest, mildest, adopted=False)
    for name, reason in competitors.skipped.items():
        found[name] = replace(nothing, reason=reason)
    return found


def candidates_table(candidates: list[Candidate], weight: np.ndarray) -> dict[str, np.ndarray]:
    """The candidates as a table, one entry each; what a family lacks is NaN or empty."""
    names = dict.fromkeys(name for candidate in candidates for name in candidate.params)
    texts = {"reference": "", "penalty": ""}
    table = {"family": np.array([candidate.family for candidate in candidates])}
    for name in names:
        missing = texts.get(name, np.nan)
        table[name] = np.array([candidate.params.get(name, missing) for candidate in candidates])
    table["log_loss"] = np.array([candidate.log_loss(weight) for candidate in candidates])
    return table
