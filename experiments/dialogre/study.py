"""Every method on every seed: fitted on validation data, scored on test data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from experiments._multilabel.grid import GridPoint, scan
from experiments._multilabel.methods import Fitted, fit_methods
from experiments._multilabel.rules import tune_second_threshold
from experiments.dialogre.evaluation import (
    Predictions,
    Split,
    conversational_f1,
    relation_f1,
    tune_conversational,
    tuned_f1,
)

__all__ = ["Measured", "measure", "scan_validation", "score"]


class Measured(NamedTuple):
    """One method on one classifier; scores in points, of the test data unless named otherwise."""

    classifier: str
    method: str
    setting: str
    t2: float
    val_micro: float
    val_macro: float
    micro: float
    macro: float
    conversational: float  # nan without predictions for prefixes


def f1_with_tuned_t2(estimator: Any, rows: np.ndarray, labels: np.ndarray) -> float:
    """The study's score, as scikit-learn's scorers are called."""
    return tuned_f1(labels, estimator.predict_proba(rows))


def scan_validation(data: Predictions, *, quick: bool = False) -> list[GridPoint]:
    """Micro-F1 with tuned T2 on validation data, for the whole grid of the paper."""
    reduced: dict[str, Any] = dict(alphas=(0.5, 1.0, 4.0, 16.0), depths=(1, 2)) if quick else {}
    return scan(
        data.val.proba,
        float(data.frequencies.mean()),
        lambda proba: tuned_f1(data.val.labels, proba),
        **reduced,
    )


def measure(data: Predictions, *, quick: bool = False) -> list[Measured]:
    """Fit and score all methods."""
    reduced: dict[str, Any] = dict(alphas=(0.5, 1.0, 4.0), depths=(1,))
    fitted = fit_methods(
        data.val.proba,
        data.val.labels,
        scan_validation(data, quick=quick),
        float(data.frequencies.mean()),
        scoring=f1_with_tuned_t2,
        **(reduced if quick else {}),
    )
    return [score(data, one) for one in fitted]


def score(data: Predictions, fitted: Fitted) -> Measured:
    """Scores of one fitted method."""
    name, method, setting = fitted
    val, test = (_adjusted(method, split) for split in (data.val, data.test))
    limit = tune_second_threshold(val.proba, val.labels)
    scores = [
        *relation_f1(val.labels, val.proba, limit),
        *relation_f1(test.labels, test.proba, limit),
        _conversational(val, test),
    ]
    return Measured(data.name, name, setting, limit, *(100 * x for x in scores))


def _adjusted(method: Any, split: Split) -> Split:
    prefixes = split.prefixes
    if prefixes is not None:
        prefixes = prefixes._replace(proba=method.transform(prefixes.proba))
    return split._replace(proba=method.transform(split.proba), prefixes=prefixes)


def _conversational(val: Split, test: Split) -> float:
    if val.prefixes is None or test.prefixes is None:
        return float("nan")
    limit = tune_conversational(val.labels, val.proba, val.prefixes)
    return conversational_f1(test.labels, test.proba, test.prefixes, limit)
