"""What decisions are for: what `Adjuster` is told, what they are worth, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from experiments.evidence import truth

__all__ = ["COSTS", "PURPOSES", "Purpose"]

Array = np.ndarray


def _most_probable(p: Array) -> Array:
    return np.asarray(p.argmax(axis=1))


def _above_half(p: Array) -> Array:
    return (p > 0.5) * 1


class Purpose(NamedTuple):
    """A purpose; larger scores are better."""

    options: Mapping[str, Any]  # of Adjuster
    score: Callable[[Array, Array], float]  # of true probabilities and decisions
    best: Callable[[Array], Array]  # decisions of someone who knows the true probabilities
    plain: Callable[[Array], Array] = _most_probable  # decisions as they come

    def before(self, proba: Array, true: Array) -> Array:
        """Decisions without an adjustment; with costs the better of the two simple rules."""
        rules = [self.plain]
        if "costs" in self.options:
            rules.append(self.best)
        return max((rule(proba) for rule in rules), key=lambda codes: self.score(true, codes))


def _for_costs(costs: Array) -> Purpose:
    def score(true: Array, codes: Array) -> float:
        return -truth.mean_cost(true, codes, costs)

    return Purpose({"costs": costs}, score, lambda p: np.asarray((p @ costs).argmin(axis=1)))


def _for_positives(scoring: str, beta: float) -> Purpose:
    """An F-score of the second of two classes."""
    return Purpose(
        {"scoring": scoring},
        lambda true, codes: truth.f_score(true[:, 1], codes, beta),
        lambda p: truth.best_f(p[:, 1], beta),
    )


def _for_labels(scoring: str, score: Callable[[Array, Array], float]) -> Purpose:
    """Several labels per row, alike in all respects: one threshold is the best for each of them."""
    options = {"scoring": scoring, "multilabel": "labelwise"}
    return Purpose(options, score, truth.best_f, _above_half)


def _dear(grave: float, *, person: float | None = None) -> Array:
    """Costs of 1 for a mistake, `grave` if a row of the first two of ten classes is missed."""
    costs = 1 - np.eye(10)
    costs[:2] *= grave
    return costs if person is None else np.column_stack([costs, np.full(10, person)])


COSTS = {
    "missing two classes costs 10": _dear(10),
    "missing two classes costs 10, a person 0.5": _dear(10, person=0.5),
    "every mistake costs 1, a person 0.5": _dear(1, person=0.5),
}
"""What decisions cost, true classes in rows; one more column leaves a row to a person."""

PURPOSES = {
    "accuracy": Purpose({}, truth.accuracy, _most_probable),
    "balanced accuracy": Purpose(
        {"scoring": "balanced_accuracy"}, truth.balanced_accuracy, truth.best_balanced
    ),
    "macro-F1": Purpose({"scoring": "f1_macro"}, truth.macro_f1, truth.best_macro_f1),
    "F1": _for_positives("f1", 1.0),
    "F2": _for_positives("fbeta=2", 2.0),
    **{f"costs 1 : {dear}": _for_costs(np.array([[0.0, 1.0], [dear, 0.0]])) for dear in (10, 50)},
    "costs, a person 0.5": _for_costs(COSTS["every mistake costs 1, a person 0.5"]),
    "costs, two classes 10": _for_costs(COSTS["missing two classes costs 10"]),
    "micro-F1 of labels": _for_labels("f1_micro", truth.f_score),
    "macro-F1 of labels": _for_labels("f1_macro", truth.label_macro_f1),
}
"""Purposes by name."""
