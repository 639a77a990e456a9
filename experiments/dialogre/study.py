"""Every method on every seed: fitted on validation data, scored on test data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments._multilabel.authors import Setting, fit_sampled, fit_settings
from experiments._multilabel.grid import GridPoint, scan
from experiments._multilabel.methods import Fitted, fit_methods
from experiments._multilabel.rules import tune_second_threshold
from experiments.dialogre.evaluation import (
    Predictions,
    relation_f1,
    tuned_f1,
)

__all__ = ["Measured", "measure", "measure_authors", "scan_validation", "score"]


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
    val, test = (method.transform(split.proba) for split in (data.val, data.test))
    limit = tune_second_threshold(val, data.val.labels)
    scores = [
        *relation_f1(data.val.labels, val, limit),
        *relation_f1(data.test.labels, test, limit),
    ]
    return Measured(data.name, name, setting, limit, *(100 * x for x in scores))


def measure_authors(
    data: Predictions, settings: Mapping[str, Sequence[Setting]], seed: int = 0
) -> list[Measured]:
    """What the authors chose: a sampled reference, and the settings that the paper lists."""
    prior = float(data.frequencies.mean())
    sampled = fit_sampled(
        data.val.proba, prior, lambda proba: tuned_f1(data.val.labels, proba), seed
    )
    listed = fit_settings(settings, data.val.proba, prior)
    return [score(data, fitted) for fitted in (sampled, *listed)]
