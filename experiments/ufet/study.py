"""Every method on every seed: fitted on validation data, scored on test data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from experiments._methods import GlobalThreshold
from experiments._multilabel.grid import GridPoint, best_point, fit_point, scan
from experiments._multilabel.methods import Fitted, fit_methods
from experiments.ufet.evaluation import (
    Predictions,
    macro_f1,
    macro_precision_recall,
    type_scores,
)

__all__ = ["Measured", "Shifted", "measure", "measure_shifted", "scan_validation", "score"]

# A third of the paper's exponents, and one dealing into folds: there are five million entries.
CV_ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 22.0, 28.0, 35.0)


def f1_loose_macro(estimator: Any, rows: np.ndarray, labels: np.ndarray) -> float:
    """The study's score, as scikit-learn's scorers are called."""
    return macro_f1(labels, estimator.predict_proba(rows))


CV_OPTIONS: dict[str, Any] = dict(alphas=CV_ALPHAS, depths=(1, 2), scoring=f1_loose_macro)


class Measured(NamedTuple):
    """One method on one classifier; scores in points, of the test data unless named otherwise."""

    classifier: str
    method: str
    setting: str
    val_macro: float
    val_micro: float
    macro: float
    micro: float
    coarse: float
    fine: float
    ultra_fine: float


class Shifted(NamedTuple):
    """Test macro-F1 of a base that says yes too seldom: its logits lowered by `shift`."""

    classifier: str
    shift: float
    precision: float
    recall: float
    base: float
    published: float
    threshold: float


def scan_validation(data: Predictions, *, quick: bool = False) -> list[GridPoint]:
    """Macro-F1 on validation data for the whole grid of the paper."""
    reduced: dict[str, Any] = dict(alphas=(0.5, 1.0, 4.0, 16.0), depths=(1, 2)) if quick else {}
    prior = float(data.frequencies.mean())
    return scan(
        data.val_proba, prior, lambda proba: 100 * macro_f1(data.val_labels, proba), **reduced
    )


def measure(
    data: Predictions, points: Sequence[GridPoint], *, quick: bool = False
) -> list[Measured]:
    """Fit and score all methods; `points` is what `scan_validation` found."""
    reduced: dict[str, Any] = dict(alphas=(1.0, 4.0), depths=(1,))
    fitted = fit_methods(
        data.val_proba,
        data.val_labels,
        points,
        float(data.frequencies.mean()),
        **(CV_OPTIONS | reduced if quick else CV_OPTIONS),
    )
    return [score(data, one) for one in fitted]


def score(data: Predictions, fitted: Fitted) -> Measured:
    """Scores of one fitted method."""
    name, method, setting = fitted
    parts = ((data.val_labels, data.val_proba), (data.test_labels, data.test_proba))
    val, test = (
        type_scores(labels, method.transform(proba), data.levels) for labels, proba in parts
    )
    return Measured(data.name, name, setting, val.macro, val.micro, *test)


def measure_shifted(data: Predictions, shift: float) -> Shifted:
    """Lower all logits, then tune CAN (depth 1, a reduced grid) and one threshold."""
    val, test = (expit(logit(p) - shift) for p in (data.val_proba, data.test_proba))
    prior = float(data.frequencies.mean())
    points = scan(val, prior, lambda p: macro_f1(data.val_labels, p), alphas=CV_ALPHAS, depths=(1,))
    can = fit_point(best_point(points), val, prior)
    one = GlobalThreshold().fit(val, data.val_labels)
    scores = (
        macro_f1(data.test_labels, p) for p in (test, can.transform(test), one.transform(test))
    )
    both = macro_precision_recall(data.test_labels, test)
    return Shifted(data.name, shift, *(100 * x for x in (*both, *scores)))
