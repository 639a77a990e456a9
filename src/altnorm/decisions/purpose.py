"""Which rule a score, or a table of costs, asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.validation import check_unmasked
from altnorm.decisions.decision import Decision
from altnorm.decisions.weights import balancing_weights, fit_weights
from altnorm.evidence.paired import derivative
from altnorm.evidence.scores import Score, cost_score, resolve_scoring
from altnorm.families.thresholds import common_threshold, rows_threshold, shrunk_thresholds
from altnorm.method.kinds import LabelKind

HALF = 0.5
"""The threshold of a label where errors of both kinds count alike."""

_LARGEST = 1e15  # cost beside which a cost of 1 is not lost in rounding


@dataclass(frozen=True)
class Purpose:
    """What decisions are for: the score that judges them, and the rule that it asks for."""

    score: Score
    kind: LabelKind
    costs: np.ndarray | None = None  # (m, m) or (m, m + 1), of decisions for true classes (rows)

    @property
    def is_argmax(self) -> bool:
        """Whether the most probable class is the decision, whatever the labels say."""
        return not self.kind.is_multilabel and self.costs is None and not self._is_tuned()

    def plain(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Decision:
        """Return the rule that needs no purpose: the most probable class, labels above 0.5.

        What its decisions are worth is the purpose's to say.
        """
        m = proba.shape[1]
        if self.kind.is_multilabel:
            return self._valued("thresholds", np.full(m, HALF), proba, labels, weight)
        if self.costs is not None:
            return Decision("costs", 1 - np.eye(m), -self.costs)
        return self._valued("weights", np.ones(m), proba, labels, weight)

    def fit(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Decision:
        """Fit the rule to labelled rows, calibrated by fits that they had no part in."""
        known = proba, labels, weight
        if self.costs is not None:
            return Decision("costs", self.costs)
        if self.kind.is_multilabel:
            values = np.broadcast_to(self._thresholds(*known), (proba.shape[1],))
            return self._valued("thresholds", np.array(values, dtype=float), *known)
        if self._is_tuned():
            return self._valued("weights", self._weights(*known), *known)
        return self.plain(*known)

    def _valued(
        self,
        kind: str,
        values: np.ndarray,
        proba: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray,
    ) -> Decision:
        """A rule, and what its decisions are worth."""
        decided = Decision(kind, values).codes(proba)
        return Decision(kind, values, self._worth(decided, labels, weight, proba.shape[1]))

    def _is_tuned(self) -> bool:
        return self.score.name in _TUNED or self.score.f_beta is not None

    def _weights(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
        if self.score.name == "balanced_accuracy":
            return balancing_weights(labels, weight, proba.shape[1])
        assert self.score.of_counts is not None
        return fit_weights(proba, labels, weight, self.score.of_counts)

    def _thresholds(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Any:
        if self.score.name == "f1_samples":
            return rows_threshold(proba, labels, weight)
        if self.score.f_beta is None:
            return HALF
        known, beta = (proba, labels, weight), self.score.f_beta.beta
        common = common_threshold(*known, beta)
        is_micro = self.score.f_beta.average == "micro"
        return common if is_micro else shrunk_thresholds(*known, common, beta=beta)

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


_TUNED = ("balanced_accuracy", "matthews_corrcoef")


def resolve_purpose(scoring: Any, costs: Any, kind: LabelKind, classes: np.ndarray) -> Purpose:
    """Return the purpose that the settings `scoring` and `costs` of an estimator stand for."""
    if costs is None:
        return Purpose(resolve_scoring(scoring, kind.is_multilabel, classes=classes), kind)
    if scoring is not None:
        raise InputError(
            "`scoring` and `costs` are two ways to state a purpose",
            "both are given",
            "Pass one of them.",
            code="parameter",
        )
    if kind.is_multilabel:
        raise InputError(
            "`costs` are for problems with one class per row",
            f"`multilabel` is {kind.multilabel!r}",
            "Pass for example scoring='f1_micro'.",
            value=kind.multilabel,
            code="parameter",
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
        raise InputError(
            f"`costs` must be finite, and at most {_LARGEST:.0e} in size",
            f"row {row}, column {column} is {table[row, column]}",
            "Pass a large number for a decision that must not be taken.",
            value=float(table[row, column]),
            code="costs",
        )
    return table


def _as_table(costs: Any) -> np.ndarray:
    check_unmasked(costs, "costs")
    try:
        return np.array(costs)
    except ValueError as error:  # NumPy's words for rows of different length
        raise InputError(
            "`costs` must be a table with rows of the same length",
            str(error).split(". ")[0].rstrip("."),
            "Pass a row for each true class, with a column for each decision.",
            code="costs",
        ) from error


def _from_mapping(costs: Mapping[Any, Any], classes: np.ndarray) -> np.ndarray:
    """Return 0 for right and 1 for wrong decisions, but for the costs that are given.

    The decision None is to leave the row to a person.
    """
    names = {str(name): j for j, name in enumerate(classes.tolist())}
    m = classes.size
    with_person = any(_is_pair(key) and key[1] is None for key in costs)
    table: list[list[Any]] = (1.0 - np.eye(m, m + with_person)).tolist()
    for key, cost in costs.items():
        known = _is_pair(key) and str(key[0]) in names
        if not known or (key[1] is not None and str(key[1]) not in names):
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
