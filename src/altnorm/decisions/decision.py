"""What a fitted model decides with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from altnorm._base.arrays import Array, column_of_max, on_host
from altnorm._base.fitted import Fields
from altnorm._base.labels import class_codes
from altnorm._base.persistence import storable
from altnorm.estimator.correction import Rule
from altnorm.estimator.kinds import FittedModel, kind_of

HALF = 0.5  # the threshold of a label where errors of both kinds count alike


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

    Of equally good classes the first is taken. A row whose most probable class has a probability
    below `least` is left to a person.

    `worth` is what decisions are worth, in the units of the purpose's score; None: 1 if right. For
    weights, (m, 2): what a right decision for a class adds, and what any decision for it does. For
    costs, (m, k), the costs' negative. For thresholds, (m, 2, 2): of each label, no and yes if it
    is not there and if it is. Of scores that do not add up over rows, such as F1, the derivative at
    the labels that the rule was fitted to.
    """

    kind: str  # "weights", "costs" or "thresholds"
    values: np.ndarray
    worth: np.ndarray | None = None
    on_input: bool = False  # whether it decides on the probabilities as they came
    least: float = 0.0

    def _check_fitted(self, fields: Fields) -> None:
        m = fields.n_classes
        fields.choice("kind", ("weights", "costs", "thresholds"))
        fields.array("values", "f", (m, None) if self.kind == "costs" else (m,))
        if self.worth is not None:
            worth = {"weights": (m, 2), "costs": (m, None), "thresholds": (m, 2, 2)}
            fields.array("worth", "f", worth[self.kind])
        fields.number("least", 0, 2)
        adjusted_argmax = self.kind == "weights" and self.is_argmax and not self.on_input
        must = "0 unless adjusted probabilities decide for the most probable class"
        fields.require("least", not self.least or adjusted_argmax, must)

    @property
    def is_argmax(self) -> bool:
        """Whether the most probable class is what is decided."""
        if self.kind == "costs":  # every mistake costs the same
            return np.array_equal(self.values, 1 - np.eye(len(self.values)))
        return self.kind == "weights" and bool((self.values == self.values[0]).all())

    @property
    def counts_costs_alone(self) -> bool:
        """Whether costs change decisions without any correction."""
        return self.kind == "costs" and self.on_input and not self.is_argmax

    @property
    def class_weights(self) -> np.ndarray:
        """How much more than its probability each class counts, (m,).

        With costs, what missing the class costs on average, whichever class is taken for it.
        """
        if self.kind != "costs":
            return self.values
        m = len(self.values)
        table = self.values[:, :m]
        return np.asarray((table.sum(axis=1) - m * table.diagonal()) / (m - 1))

    @property
    def leaves_rows(self) -> bool:
        """Whether rows may be left to a person."""
        if self.kind == "costs":
            return self.values.shape[1] > self.values.shape[0]
        return self.least > 0

    @property
    def decides_nothing(self) -> bool:
        """Whether every row is left to a person: no probability is as large as is asked for."""
        return self.least > 1

    def rule(self) -> Rule:
        """The same as constants that any array library can run."""
        values = None if self.is_argmax else np.asarray(self.values, dtype=np.float64)
        least = np.float64(self.least) if self.least else None
        return Rule(self.kind, values, self.leaves_rows, self.on_input, least)

    def codes(self, proba: Array) -> np.ndarray:
        """Decide: the column of each row's class, m where it is left to a person; or 0 and 1."""
        return self.rule().codes(proba)

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

    def worst_row(self) -> float:
        """Largest difference that the decision on one row can make, in units of a row's worth."""
        return float(np.ptp(self.table(), axis=-1).max())

    def __repr__(self) -> str:
        where = ", as it came" if self.on_input else ""
        if self.is_argmax:
            if self.decides_nothing:
                return "Decision(nothing: every row is left to a person)"
            least = f" from {self.least:.3g} on" if self.least else ""
            return f"Decision(the most probable class{least}{where})"
        shown = np.array2string(self.values, precision=3, threshold=6, separator=", ")
        return f"Decision({self.kind}={' '.join(shown.split())}{where})"


def decision_of(model: FittedModel) -> Decision:
    """How a fitted model decides; the most probable class, or labels above a half, by default."""
    decision, m = getattr(model, "decision_", None), len(model.classes_)
    if isinstance(decision, Decision):
        return decision
    if kind_of(model).is_multilabel:
        return Decision("thresholds", np.full(m, HALF))
    return Decision("weights", np.ones(m))


def decision_codes(model: FittedModel, proba: Any, classes: Any = None) -> np.ndarray:
    """Return what a model decides: codes of `classes`, their number for None; or 0 and 1."""
    predicted = on_host(model.predict(proba))
    labels = np.asarray(predicted.toarray() if issparse(predicted) else predicted)
    if labels.ndim == 2:
        return labels.astype(int)
    classes = np.asarray(model.classes_ if classes is None else classes)
    is_decided = np.ones(labels.size, dtype=bool)
    if labels.dtype.kind == "O":
        is_decided[:] = [label is not None for label in labels]
        labels = np.asarray(labels[is_decided].tolist())
    codes = np.full(is_decided.size, classes.size)
    if is_decided.any():
        codes[is_decided] = class_codes(labels, classes)
    return codes


def class_decisions(model: FittedModel, proba: Any, classes: Any = None) -> np.ndarray:
    """Return the same as if a target accuracy left no row to a person: scores judge them all."""
    codes = decision_codes(model, proba, classes)
    if not decision_of(model).least:
        return codes
    names = np.asarray(model.classes_)
    of_column = np.arange(names.size) if classes is None else class_codes(names, classes)
    highest = of_column[column_of_max(on_host(model.transform(proba)))]
    return np.where(codes == of_column.size, highest, codes)
