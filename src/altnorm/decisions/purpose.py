"""Which rule a score, or a table of costs, asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.validation import check_unmasked
from altnorm.decisions.decision import HALF, Decision
from altnorm.decisions.weights import balancing_weights, fit_weights
from altnorm.estimator.kinds import LabelKind, kind_of
from altnorm.evidence.cautions import hurt_classes
from altnorm.evidence.paired import derivative
from altnorm.evidence.scores import Score, cost_score, resolve_scoring
from altnorm.evidence.suspicion import Labelled
from altnorm.evidence.verdict import Caution
from altnorm.families.thresholds import common_threshold, rows_threshold, shrunk_thresholds

_TUNED = ("balanced_accuracy", "matthews_corrcoef")  # and F-scores: they ask for weights
_LARGEST = 1e15  # cost beside which a cost of 1 is not lost in rounding


@dataclass(frozen=True)
class Purpose:
    """A goal: the score that judges decisions, and the rule that it asks for."""

    score: Score
    kind: LabelKind
    costs: np.ndarray | None = None  # (m, m) or (m, m + 1), of decisions for true classes (rows)

    @property
    def is_argmax(self) -> bool:
        """Whether the most probable class is the decision, whatever the labels say."""
        tuned = self.score.name in _TUNED or self.score.f_beta is not None
        return not self.kind.is_multilabel and self.costs is None and not tuned

    @property
    def weights_are_known(self) -> bool:
        """Whether the goal itself says how classes are weighed, and not the labels."""
        return self.costs is not None or self.score.name == "balanced_accuracy"

    def untouched(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Decision:
        """Return the rule of decisions as they came; with costs, that or the one of least cost."""
        plain = self.most_probable(proba, labels, weight)
        if self.costs is None:
            return plain
        least = Decision("costs", self.costs, on_input=True)
        scores = [self.score(labels, rule.codes(proba), weight) for rule in (plain, least)]
        return least if scores[1] > scores[0] else plain

    def most_probable(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Decision:
        """Return the most probable class, or labels above 0.5, and their worth."""
        if self.costs is not None:
            return Decision("costs", 1 - np.eye(proba.shape[1]), -self.costs, on_input=True)
        values = HALF if self.kind.is_multilabel else 1.0
        return replace(self._rule(values, proba, labels, weight), on_input=True)

    def fit(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Decision:
        """Fit the rule to labelled rows, calibrated by fits that they had no part in."""
        if self.costs is not None:
            return Decision("costs", self.costs)
        find = self._thresholds if self.kind.is_multilabel else self._weights
        return self._rule(find(proba, labels, weight), proba, labels, weight)

    def price(
        self, rows: Labelled, before: np.ndarray, after: np.ndarray, proba: np.ndarray
    ) -> Caution | None:
        """Say whether decisions from `proba` serve this purpose at the expense of another."""
        if self.kind.is_multilabel or self.weights_are_known:
            return None
        balanced = proba * balancing_weights(rows.labels, rows.weight, rows.classes.size)
        return hurt_classes(rows, before, after, balanced.argmax(axis=1))

    def _rule(
        self, values: Any, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray
    ) -> Decision:
        m, kind = proba.shape[1], "thresholds" if self.kind.is_multilabel else "weights"
        rule = Decision(kind, np.full(m, values, dtype=float))
        return replace(rule, worth=self._worth(rule.codes(proba), labels, weight, m))

    def _weights(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Any:
        if self.score.name == "balanced_accuracy":
            return balancing_weights(labels, weight, proba.shape[1])
        if self.is_argmax or self.score.of_counts is None:
            return 1.0
        return fit_weights(proba, labels, weight, self.score.of_counts)

    def _thresholds(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Any:
        if self.score.name == "f1_samples":
            return rows_threshold(proba, labels, weight)
        if self.score.f_beta is None:
            return HALF
        beta = self.score.f_beta.beta
        common = common_threshold(proba, labels, weight, beta)
        if self.score.f_beta.average == "micro":
            return common
        return shrunk_thresholds(proba, labels, weight, common, beta=beta)

    def _worth(
        self, decided: np.ndarray, labels: np.ndarray, weight: np.ndarray, m: int
    ) -> np.ndarray | None:
        """What a row's decision adds to the score: its derivative by hits and by predictions."""
        score = self.score
        if score.counts is None or score.of_counts is None:
            return None
        # Row sums are counted over all labels, class sums for each.
        sums = np.asarray(weight @ score.counts(labels, decided, m)).ravel()
        by_hit, by_predicted, _ = np.split(weight.sum() * derivative(score.of_counts, sums), 3)
        if not self.kind.is_multilabel:
            return np.stack([by_hit, by_predicted], axis=1)
        worth = np.zeros((m, 2, 2))
        worth[:, 1, 1] = by_hit + by_predicted
        worth[:, 0, 1] = by_predicted
        return worth


def purpose_of(model: Any, scoring: Any = None) -> Purpose:
    """Return what decisions are judged by: as asked, as the model is tuned for, or as usual."""
    costs = None
    if scoring is None:
        scoring, costs = (getattr(model, name, None) for name in ("scoring", "costs"))
    if scoring is None and costs is None and hasattr(model, "verdict_"):
        scoring = _score_by_name(model.verdict_.scoring, kind_of(model), model.classes_)
    return resolve_purpose(scoring, costs, kind_of(model), np.asarray(model.classes_))


def _score_by_name(name: str, kind: LabelKind, classes: np.ndarray) -> Score:
    """Return the score that a model was tuned for; its file holds the name, not a function."""
    try:
        return resolve_scoring(name, kind.is_multilabel, classes=classes)
    except InputError as error:
        rule, offender = "A model file holds no score of one's own", f"this one is {name!r}"
        remedy = "Pass it again: model.set_params(scoring=...)."
        raise InputError(rule, offender, remedy, value=name, code="score_of_file") from error


def resolve_purpose(scoring: Any, costs: Any, kind: LabelKind, classes: np.ndarray) -> Purpose:
    """Return the purpose that the settings `scoring` and `costs` of an estimator stand for."""
    if costs is None:
        return Purpose(resolve_scoring(scoring, kind.is_multilabel, classes=classes), kind)
    if scoring is not None:
        rule = "`scoring` and `costs` are two ways to state a goal"
        raise InputError(rule, "both are given", "Pass one of them.", code="parameter")
    if kind.is_multilabel:
        raise InputError(
            "`costs` are for problems with one class per row",
            f"`multilabel` is {kind.multilabel!r}",
            value=kind.multilabel,
            code="parameter",
            parameter="scoring",
            example="f1_micro",
        )
    table = read_costs(costs, classes)
    return Purpose(cost_score(table), kind, table)


def read_costs(costs: Any, classes: np.ndarray) -> np.ndarray:
    """Return the table of costs, (m, m) or (m, m + 1), that the setting stands for."""
    m = classes.size
    table = _from_mapping(costs, classes) if isinstance(costs, Mapping) else _as_table(costs)
    if table.dtype.kind not in "iuf" or table.shape not in ((m, m), (m, m + 1)):
        raise InputError(
            f"`costs` must be a table of numbers with a row for each of the {m} true classes and a "
            f"column for each decision: shape ({m}, {m}), or ({m}, {m + 1}) with the cost of "
            "leaving a row to a person last",
            f"its shape is {table.shape} and its dtype {table.dtype}",
            "Pass such a table, or a mapping {(true, decision): cost}.",
            value=table.shape,
            code="costs",
        )
    table = table.astype(np.float64)
    wrong = np.argwhere(~(np.abs(table) <= _LARGEST))
    if wrong.size:
        row, column = wrong[0]
        rule = f"`costs` must be finite, and at most {_LARGEST:.0e} in size"
        offender = f"row {row}, column {column} is {table[row, column]}"
        remedy = "Pass a large number for a decision that must not be taken."
        value = float(table[row, column])
        raise InputError(rule, offender, remedy, value=value, code="costs")
    return table


def _as_table(costs: Any) -> np.ndarray:
    check_unmasked(costs, "costs")
    try:
        return np.array(costs)
    except ValueError as error:  # NumPy's words for rows of different length
        rule = "`costs` must be a table with rows of the same length"
        offender = str(error).split(". ")[0].rstrip(".")
        remedy = "Pass a row for each true class, with a column for each decision."
        raise InputError(rule, offender, remedy, code="costs") from error


def _from_mapping(costs: Mapping[Any, Any], classes: np.ndarray) -> np.ndarray:
    """Return 0 for right and 1 for wrong decisions, but for the costs that are given.

    The decision None is to leave the row to a person.
    """
    names = {str(name): j for j, name in enumerate(classes.tolist())}
    m = classes.size
    with_person = any(_is_pair(key) and key[1] is None for key in costs)
    table: list[list[Any]] = (1.0 - np.eye(m, m + with_person)).tolist()
    for key, cost in costs.items():
        is_class = _is_pair(key) and str(key[0]) in names
        if not is_class or (key[1] is not None and str(key[1]) not in names):
            raise InputError(
                "A key of `costs` must be (true class, decision), both out of the classes; the "
                "decision None leaves the row to a person",
                f"{key!r} is not",
                f"The classes are {', '.join(list(names)[:8])}{', ...' if m > 8 else ''}.",
                value=key,
                code="costs",
            )
        table[names[str(key[0])]][m if key[1] is None else names[str(key[1])]] = cost
    return _as_table(table)


def _is_pair(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 2
