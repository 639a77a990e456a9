"""The choice: probabilities as the labels ask for, and decisions on evidence.

Probabilities need no test. The candidate of lowest cross-fitted log loss, or a simpler one that is
as good, is mixed with the temperature and the rows as they came (:mod:`altnorm.adjuster.mixture`).

Decisions change on evidence alone. One trial, for every purpose: the rule that the purpose asks
for, on the mixture. It is adopted if the score rises and

- the score's own paired test says so, or
- the log loss is lower than it could be if the decisions as they came were right
  (:mod:`altnorm.adjuster.baseline`), on all rows and on those that gain or lose, each by how much.
  With several labels per row most of it is that of labels whose decision stays, so that there only
  the score's own test counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2_contingency
from sklearn.metrics.cluster import contingency_matrix

from altnorm.adjuster.baseline import as_if_right
from altnorm.adjuster.candidates import Candidate, Competitors, CrossFitter, score_rows, to_scores
from altnorm.adjuster.mixture import CrossMixture, Mixture, no_mixture
from altnorm.adjuster.validation import Validation
from altnorm.decisions.decision import Decision
from altnorm.evidence import likeness
from altnorm.evidence.folds import deal_clusters
from altnorm.evidence.gates import Gate, Gates
from altnorm.evidence.paired import Paired, attribute_gain, paired_test
from altnorm.evidence.scores import NEG_LOG_LOSS
from altnorm.evidence.verdict import Caution, Verdict, count_changes

AS_GOOD = 0.5  # standard errors of log loss within which a simpler candidate is as good as the best
# One-sided level of the log loss on the rows that gain or lose, each by how much: five rows of a
# rare class may carry a score. They are few, and it comes on top of the test on all rows and of a
# score that rises.
CHANGED_LEVEL = 0.05
# Standard errors by which a gain must still be there when like rows are kept together.
ONE_ERROR = 1.0
# Clusters of like rows per class, and their largest size: more than most cases have copies.
CLASS_PARTS, MOST_CLUSTER_ROWS = 5, 120
# Share of a gain below which most of it is gone, and standard errors that make that clear.
LOST, CLEAR = 0.5, 2.5


class Evidence:
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
        self.untouched = data.purpose.untouched(data.proba, data.labels, data.weight)
        self.before = self.untouched.codes(data.proba)

    def log_loss_test(
        self, log_p: np.ndarray, baseline: np.ndarray, only: np.ndarray | None = None
    ) -> Paired:
        """Test whether log-probabilities of labels are higher than others, on some rows only."""
        weight = self.data.weight
        rows = weight / weight.sum() * (log_p - baseline)
        if only is not None:
            return paired_test(rows * only, weight, self.clusters)
        return paired_test(rows, weight, self.clusters, surplus=self._shared_counts())

    def _shared_counts(self) -> float:
        """Log loss, per row, that folds of equal class counts tell each other.

        A fit outside such a fold knows the class shares inside, which is worth half a nat for each
        class but one. Where counts differ as by chance, there is nothing to know.
        """
        if self.data.kind.is_multilabel:
            return 0.0
        counts = contingency_matrix(self.folds, self.data.labels)
        test = chi2_contingency(counts, correction=False)
        uneven = float(test.statistic) / max(test.dof, 1)  # by chance it is 1
        return max(0.0, 1 - uneven) * (counts.shape[1] - 1) / (2 * self.folds.size)

    def trial(self, mixture: CrossMixture) -> MixtureTrial:
        """Put the decisions that the purpose makes of a mixture to the test."""
        proba, rules = mixture.proba, self.rules(mixture.proba)
        codes = np.empty_like(self.before)
        for k, rule in enumerate(rules):
            codes[self.folds == k] = rule.codes(proba[self.folds == k])
        return MixtureTrial(**vars(self.compare(codes, proba)), mixture=mixture, rules=rules)

    def compare(self, codes: np.ndarray, proba: np.ndarray) -> Trial:
        """Test decisions, or probabilities where the score looks at these."""
        score, data = self.data.purpose.score, self.data
        scored = (data.proba, proba) if score.needs == "proba" else (self.before, codes)
        rows = np.zeros(len(codes))
        if not np.array_equal(*scored):
            rows = attribute_gain(score, data.labels, *scored, data.weight, data.blocks())
        test = paired_test(rows, data.weight, self.clusters, worst=self._worst_row(rows))
        return Trial(self, codes, rows, test, scored)

    def _worst_row(self, rows: np.ndarray) -> float:
        """What one more row could cost beyond the largest loss among the rows.

        That one is in the standard error already; what the sample happens to lack is not.
        """
        if self.data.purpose.score.needs == "proba":
            return 0.0
        worst = self.untouched.worst_row() / rows.size
        return max(worst + float(rows.min(initial=0.0)), 0.0)

    def rules(self, proba: np.ndarray) -> list[Decision]:
        """The rule for each fold, as the rows of the others give it."""
        data, purpose = self.data, self.data.purpose
        n_folds = int(self.folds.max()) + 1
        if purpose.is_argmax or purpose.costs is not None:  # whatever the rows
            return n_folds * [purpose.fit(proba, data.labels, data.weight)]
        outside = (self.folds != k for k in range(n_folds))
        return [purpose.fit(proba[o], data.labels[o], data.weight[o]) for o in outside]


@dataclass(frozen=True, eq=False)
class Trial:
    """Decisions, cross-fitted, and what they gain."""

    evidence: Evidence
    codes: np.ndarray
    rows: np.ndarray  # (n,) what each row adds to the gain
    test: Paired
    scored: tuple[np.ndarray, np.ndarray]  # before and after, as the score needs them

    @cached_property
    def gates(self) -> Gates:
        """What must hold, in the order of deciding."""
        return Gates(self._gates())

    def _gates(self) -> list[Gate]:
        level, test = self.evidence.significance, self.test
        return [
            Gate("rise", test.gain > 0, test.gain, 0.0),
            Gate("score", test.one_sided < level, test.one_sided, level, "score"),
        ]

    @property
    def accepted(self) -> bool:
        """Whether the score rises and there is evidence for it."""
        return self.gates.passed

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
        data = self.evidence.data
        return paired_test(self.rows - other.rows, data.weight, self.evidence.clusters)

    @cached_property
    def verdict(self) -> Verdict:
        """The evidence, in the user's units."""
        data, score = self.evidence.data, self.evidence.data.purpose.score
        before, after = (score(data.labels, pred, data.weight) for pred in self.scored)
        person = None if data.kind.is_multilabel else data.proba.shape[1]
        changes = count_changes(data.labels, self.evidence.before, self.codes, person)
        return Verdict(
            score.name,
            before,
            after,
            *self.test,
            len(data.proba),
            **changes._asdict(),
            adopted=self.accepted,
            reason=self.reason,
            significance=self.evidence.significance,
            in_points=score.in_points,
            multilabel=data.kind.is_multilabel,
            is_decision=True,
            evidence=self.gates.route if self.accepted else "",
            gates=self.gates,
        )


@dataclass(frozen=True, eq=False)
class MixtureTrial(Trial):
    """Decisions made of a mixture, whose log loss is evidence, too."""

    mixture: CrossMixture
    rules: Sequence[Decision]  # that made them of it, for each fold

    @cached_property
    def baseline_log_p(self) -> np.ndarray:
        """Log-probabilities of labels as if the decisions as they came were right."""
        data, purpose = self.evidence.data, self.evidence.data.purpose
        weighs_classes = not purpose.is_argmax and self.evidence.untouched.is_argmax
        class_weights = [rule.class_weights for rule in self.rules]
        if not weighs_classes or any((weights <= 0).any() for weights in class_weights):
            return self.mixture.baseline_log_p
        return as_if_right(
            to_scores(data, data.proba),
            data.labels,
            data.weight,
            self.evidence.folds,
            class_weights,
            is_known=purpose.weights_are_known,
        )

    @property
    def log_loss_rows(self) -> np.ndarray:
        """What each row adds to the gain in log loss."""
        return self.evidence.data.weight * (self.mixture.log_p - self.baseline_log_p)

    def _gates(self) -> list[Gate]:
        gates = super()._gates()
        # With several labels most of the log loss is that of labels whose decision stays.
        if self.evidence.data.kind.is_multilabel:
            return gates
        # Rows that stay wrong may gain log loss in classes that the decision is not about.
        for name, only, level in (
            ("log_loss", None, self.evidence.significance),
            ("changed_rows", self._sizes(), CHANGED_LEVEL),
        ):
            test = self.evidence.log_loss_test(self.mixture.log_p, self.baseline_log_p, only)
            gates.append(Gate(name, test.one_sided < level, test.one_sided, level, "log_loss"))
        return gates

    def _sizes(self) -> np.ndarray:
        """How much each row gains or loses; of a score that tells no rows apart, whether it may."""
        changed = self.codes != self.evidence.before
        if self.evidence.data.purpose.score.function is not None:
            return changed & (self.rows != 0)
        sizes = np.abs(self.rows) / self.evidence.data.weight
        return np.asarray(sizes / max(float(sizes.max()), np.finfo(np.float64).tiny))

    def decision(self) -> Decision:
        """Fit the rule to all cross-fitted rows."""
        data = self.evidence.data
        return data.purpose.fit(self.mixture.proba, data.labels, data.weight)


def choose(evidence: Evidence, fitter: CrossFitter, competitors: Competitors) -> MixtureTrial:
    """Choose probabilities, then put decisions to the test."""
    candidates = competitors.candidates or [fitter.temperature]
    best = simplest_of_best(candidates, evidence.data.weight)
    return evidence.trial(CrossMixture(fitter, best))


def simplest_of_best(candidates: list[Candidate], weight: np.ndarray) -> Candidate:
    """Return the candidate of lowest log loss, or a simpler one that is as good."""
    best = min(candidates, key=lambda each: each.log_loss(weight))
    for candidate in candidates:
        behind = weight / weight.sum() * (best.log_p - candidate.log_p)
        spread = behind - behind.mean()
        if behind.sum() <= AS_GOOD * np.sqrt(float(spread @ spread)):
            return candidate
    return best


class Outcome(NamedTuple):
    """What is applied, fitted on all rows."""

    model: Any
    mixture: Mixture
    decision: Decision
    family: str | None
    proba: np.ndarray  # (n, m) cross-fitted
    log_p: np.ndarray  # (n,) of each row's label


def conclude(trial: MixtureTrial, *, applied: bool, nothing: bool) -> Outcome:
    """Fit what is applied: decisions and probabilities, probabilities alone, or nothing."""
    evidence, data, mixture = trial.evidence, trial.evidence.data, trial.mixture
    if nothing:
        untouched = mixture.untouched
        fitted = untouched.fit().model, no_mixture(data.kind.is_multilabel)
        return Outcome(*fitted, evidence.untouched, None, untouched.proba(), untouched.log_p)
    decision = trial.decision() if applied else evidence.untouched
    keeps = not applied and data.purpose.is_argmax
    fitted = mixture.fit(keeps=keeps)  # first, while there are fewer rows in memory
    proba, log_p = mixture.proba, mixture.log_p
    if keeps:
        proba = mixture.keeping(evidence.before)
        log_p = score_rows(data.labels, proba)
    return Outcome(*fitted, decision, mixture.candidate.family, proba, log_p)


def try_likeness(fitter: CrossFitter, trial: MixtureTrial) -> Caution | None:
    """Look for copies, and say whether the gain is still there when like rows are kept together.

    Clusters of like rows are small beside classes, so that leaving them out hides none. From rows
    of which it is serious nothing should be learnt, unless groups are passed.
    """
    data, n_folds = fitter.data, int(fitter.folds.max()) + 1
    n_rows, n_classes = data.proba.shape
    if data.groups is not None or n_rows < likeness.CLUSTER_ROWS * n_folds:
        return None
    rows = likeness.like_rows(fitter.rows, odds=data.kind.is_multilabel)
    n_blocks = 0 if data.kind.is_multilabel else likeness.repeats_in_blocks(rows, data.classes)
    wrong = (data.kind.decide(data.proba) != data.labels).reshape(n_rows, -1).any(axis=1)
    copies = likeness.look_for_copies(rows, data.labels, float(wrong.mean()))
    n_copies = n_blocks or copies.per_case
    if n_copies > 1:
        order = ", one block after another" if n_blocks else ""
        text = (
            f"The rows look like about {n_copies} noisy copies of each of a few cases{order}. Pass "
            "groups that say which rows belong together."
        )
        return Caution("likeness", text, float(n_copies), serious=True)
    if not trial.accepted:
        return None
    size = n_rows // (CLASS_PARTS * n_classes)
    size = min(max(size, likeness.CLUSTER_ROWS), MOST_CLUSTER_ROWS)
    clusters = likeness.like_clusters(rows, n_folds, size)
    del rows  # as large as the data
    again = _trial_by_clusters(fitter, trial, clusters)
    is_lost = again.test.gain < LOST * trial.test.gain and again.against(trial).errors < -CLEAR
    if again.test.errors >= ONE_ERROR and not is_lost:
        return None
    text = (
        f"{'Most of the gain is gone' if is_lost else 'The gain is not there'} when like rows are "
        "kept together in the cross-validation: it may rest on rows that resemble each other. Pass "
        "groups that say which rows belong together, or look at a test set."
    )
    # Of bent lines most may go as well where clusters leave out whole regions: that alone is told.
    return Caution("likeness", text, again.test.gain, serious=is_lost and copies.may_be)


def _trial_by_clusters(fitter: CrossFitter, trial: MixtureTrial, clusters: np.ndarray) -> Trial:
    """Put the choice to the test again, on folds that hold whole clusters."""
    folds = deal_clusters(clusters, int(fitter.folds.max()) + 1)
    again = fitter.on(folds)
    evidence = Evidence(fitter.data, folds, trial.evidence.significance, [clusters])
    return evidence.trial(CrossMixture(again, again.again(trial.mixture.candidate)))


def log_loss_verdict(
    evidence: Evidence, log_p: np.ndarray, other: np.ndarray, *, adopted: bool
) -> Verdict:
    """Compare the log loss of two ways; larger is better, so both are negative."""
    test, weight = evidence.log_loss_test(log_p, other), evidence.data.weight
    reason = "" if adopted else "no_gain" if test.gain <= 0 else "not_chosen"
    before, after = (float(np.average(each, weights=weight)) for each in (other, log_p))
    return Verdict(
        NEG_LOG_LOSS.name,
        before,
        after,
        *test,
        len(evidence.data.proba),
        n_changed=0,
        n_fixed=0,
        n_broken=0,
        adopted=adopted,
        reason="identical" if log_p is other else reason,
        significance=evidence.significance,
        in_points=False,
        multilabel=evidence.data.kind.is_multilabel,
        is_decision=True,
    )


def family_verdicts(trial: MixtureTrial, competitors: Competitors) -> dict[str, Verdict]:
    """Compare the log loss of each family with that of a temperature."""
    evidence, verdicts = trial.evidence, dict[str, Verdict]()
    weight, baseline = evidence.data.weight, trial.mixture.temperature.log_p
    for candidate in sorted(competitors.candidates, key=lambda each: -each.log_loss(weight)):
        is_chosen = candidate.family == trial.mixture.candidate.family
        verdicts[candidate.family] = log_loss_verdict(
            evidence, candidate.log_p, baseline, adopted=is_chosen
        )
    nothing = log_loss_verdict(evidence, baseline, baseline, adopted=False)
    for name, reason in competitors.skipped.items():
        verdicts[name] = replace(nothing, reason=reason)
    return verdicts


def candidates_table(candidates: list[Candidate], weight: np.ndarray) -> dict[str, np.ndarray]:
    """The candidates as a table, one entry each; what a family lacks is NaN or empty."""
    names = dict.fromkeys(name for candidate in candidates for name in candidate.params)
    table = {"family": np.array([candidate.family for candidate in candidates])}
    for name in names:
        missing = "" if name == "reference" else np.nan
        table[name] = np.array([candidate.params.get(name, missing) for candidate in candidates])
    table["log_loss"] = np.array([candidate.log_loss(weight) for candidate in candidates])
    return table
