"""From probabilities to decisions: the rule that a score, or a table of costs, asks for.

A `Decision` is what a fitted model decides with; a `Purpose` says which one, and fits it to labels:
class weights in `weights`, thresholds of labels in :mod:`altnorm.families`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from altnorm._base.arrays import Array, as_array, column_of_max, on_host, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.labels import class_codes
from altnorm._base.persistence import storable
from altnorm._base.specs import array, declare, one_of, rule
from altnorm._base.validation import check_unmasked
from altnorm.decisions.weights import balancing_weights, fit_weights
from altnorm.evidence.cautions import Labelled, hurt_classes
from altnorm.evidence.paired import derivative
from altnorm.evidence.scores import Score, cost_score, resolve_scoring
from altnorm.evidence.verdict import Caution
from altnorm.families.thresholds import common_threshold, rows_threshold, shrunk_thresholds
from altnorm.method.kinds import FittedNormalizer, LabelKind, kind_of

HALF = 0.5
"""The threshold of a label where errors of both kinds count alike."""

_TUNED = ("balanced_accuracy", "matthews_corrcoef")  # and F-scores: they ask for weights
_LARGEST = 1e15  # cost beside which a cost of 1 is not lost in rounding


@storable
@dataclass(frozen=True, eq=False)
class Decision:
    r"""The rule from the probabilities of a row to its decision.

    =============  =========================================================================
    `kind`         decision on a row of probabilities p
    =============  =========================================================================
    "weights"      the class of largest :math:`w_j p_j`, `values` (m,); all 1 for accuracy
    "costs"        the decision of least :math:`\sum_j p_j C_{jd}`, `values` (m, k); a column
                   more than there are classes stands for leaving the row to a person
    "thresholds"   every label with :math:`p_j > t_j`, `values` (m,)
    =============  =========================================================================

    Of equally good classes the first is taken.

    Parameters
    ----------
    kind : {"weights", "costs", "thresholds"}
        The kind of rule.
    values : ndarray
        Its numbers.
    worth : ndarray, optional
        What decisions are worth, in the units of the purpose's score; None: 1 if right. For
        weights, (m, 2): what a right decision for a class adds, and what any decision for it does.
        For costs, (m, k), the costs' negative. For thresholds, (m, 2, 2): of each label, no and
        yes if it is not there and if it is. Of scores that do not add up over rows, such as F1,
        the derivative at the labels that the rule was fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.decisions import Decision
    >>> rare_counts_more = Decision("weights", np.array([1.0, 3.0]))
    >>> rare_counts_more.codes(np.array([[0.7, 0.3], [0.9, 0.1]]))
    array([1, 0])
    """

    kind: str
    values: np.ndarray
    worth: np.ndarray | None = None

    _fields: ClassVar = declare(
        kind=one_of(("weights", "costs", "thresholds")),
        values=(array("f", ("m",)) | array("f", ("m", "outcomes")))
        & rule("a table for costs alone", lambda v, has: (v.ndim == 2) == (has.kind == "costs")),
        worth=array("f", ("m", "any")) | array("f", ("m", 2, 2)) | None,
    )

    @property
    def is_argmax(self) -> bool:
        """Whether the most probable class is what is decided."""
        if self.kind == "costs":  # every mistake costs the same
            return np.array_equal(self.values, 1 - np.eye(len(self.values)))
        return self.kind == "weights" and bool((self.values == self.values[0]).all())

    @property
    def leaves_rows(self) -> bool:
        """Whether rows may be left to a person."""
        return self.kind == "costs" and self.values.shape[1] > self.values.shape[0]

    def codes(self, proba: Array) -> np.ndarray:
        """Decide: the column of each row's class, m where it is left to a person; or 0 and 1."""
        if self.kind == "thresholds":
            return (to_numpy(proba) > self.values).astype(np.int8)
        if self.is_argmax:
            return column_of_max(proba)
        return column_of_max(rate(self.kind, as_array(self.values, proba), proba))

    def names(self, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return the classes that codes stand for, None where a row is left to a person."""
        if self.kind == "thresholds":
            return codes
        if not self.leaves_rows:
            return classes[codes]
        return np.array([*classes.tolist(), None], dtype=object)[codes]

    def table(self, *, person: bool = False) -> np.ndarray:
        """Return what a decision (columns) is worth for a true class (rows), or for each label.

        With several labels per row, (m, 2, 2). With `person`, a column more for rows that are left
        to one, worth nothing.
        """
        m = len(self.values)
        if self.kind == "weights":
            plain = np.tile([1.0, 0.0], (m, 1))
            hit, predicted = (plain if self.worth is None else self.worth).T
            return np.pad(np.diag(hit) + predicted, ((0, 0), (0, int(person))))
        if self.worth is not None:
            return self.worth
        return np.tile(np.eye(2) / m, (m, 1, 1)) if self.kind == "thresholds" else -self.values

    def __repr__(self) -> str:
        if self.is_argmax:
            return "Decision(the most probable class)"
        shown = np.array2string(self.values, precision=3, threshold=6, separator=", ")
        return f"Decision({self.kind}={' '.join(shown.split())})"


def decision_of(model: FittedNormalizer) -> Decision:
    """How a fitted model decides, and what decisions are worth to it.

    Where the model does not say, a right decision is worth 1; that of several labels per row the
    share of right ones. To leave a row to a person is not right.
    """
    decision, m = getattr(model, "decision_", None), len(model.classes_)
    if isinstance(decision, Decision):
        return decision
    if kind_of(model).is_multilabel:
        return Decision("thresholds", np.full(m, HALF))
    return Decision("weights", np.ones(m))


def decision_codes(model: FittedNormalizer, proba: Any, classes: Any = None) -> np.ndarray:
    """Return what a model decides: class codes, their number for None; or the 0/1 matrix.

    Codes are those of `classes`, or else of the model's own.
    """
    said = on_host(model.predict(proba))
    labels = np.asarray(said.toarray() if issparse(said) else said)
    if labels.ndim == 2:
        return labels.astype(int)
    classes = np.asarray(model.classes_ if classes is None else classes)
    given = np.ones(labels.size, dtype=bool)
    if labels.dtype.kind == "O":
        given[:] = [label is not None for label in labels]
        labels = np.asarray(labels[given].tolist())
    codes = np.full(given.size, classes.size)
    if given.any():
        codes[given] = class_codes(labels, classes)
    return codes


def rate(kind: str, values: Array, proba: Array) -> Array:
    """What each decision on a row is worth, by weights or by costs; the largest is taken."""
    return -(proba @ values) if kind == "costs" else proba * values


@dataclass(frozen=True)
class Purpose:
    """What decisions are for: the score that judges them, and the rule that it asks for."""

    score: Score
    kind: LabelKind
    costs: np.ndarray | None = None  # (m, m) or (m, m + 1), of decisions for true classes (rows)

    @property
    def is_argmax(self) -> bool:
        """Whether the most probable class is the decision, whatever the labels say."""
        tuned = self.score.name in _TUNED or self.score.f_beta is not None
        return not self.kind.is_multilabel and self.costs is None and not tuned

    def plain(self, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> Decision:
        """Return the rule that needs no purpose: the most probable class, labels above 0.5.

        What its decisions are worth is the purpose's to say.
        """
        if self.costs is not None:
            return Decision("costs", 1 - np.eye(proba.shape[1]), -self.costs)
        return self._rule(HALF if self.kind.is_multilabel else 1.0, proba, labels, weight)

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
        weighs_classes = self.costs is not None or self.score.name == "balanced_accuracy"
        if self.kind.is_multilabel or weighs_classes:
            return None
        balanced = proba * balancing_weights(rows.labels, rows.weight, rows.classes.size)
        return hurt_classes(rows, before, after, balanced.argmax(axis=1))

    def _rule(
        self, values: Any, proba: np.ndarray, labels: np.ndarray, weight: np.ndarray
    ) -> Decision:
        """The rule of these thresholds or weights, one or m, and what its decisions are worth."""
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


def purpose_of(model: Any, scoring: Any = None) -> Purpose:
    """Return what decisions are judged by: as asked, as the model is tuned for, or as usual."""
    costs = None
    if scoring is None:
        scoring, costs = (getattr(model, name, None) for name in ("scoring", "costs"))
    return resolve_purpose(scoring, costs, kind_of(model), np.asarray(model.classes_))


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
