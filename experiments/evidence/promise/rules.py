"""Rules that say from which confidence on rows are decided, so that a target share is right."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from altnorm.evidence.promise import Coverage, coverage

NOTHING = 2.0  # above any probability
CONFIDENCE = 0.95


class Labelled(NamedTuple):
    """Rows that a rule learns from."""

    proba: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None


def largest_share(rows: Labelled, target: float) -> float:
    """Return the confidence that the Adjuster would choose for these probabilities as they are."""
    right = rows.proba.argmax(axis=1) == rows.y
    curve = coverage(rows.proba.max(axis=1), right, rows.weight, rows.groups)
    return curve.threshold(curve.largest(target))


def in_sequence(curve: Coverage, target: float) -> float:
    """Return the confidence at which a fixed sequence of tests ends, each at 5 %.

    It goes from half the share that the confidences alone predict to larger ones, until one fails:
    an order that no label has a part in, as learn-then-test asks for.
    """
    predicted = np.flatnonzero(curve.expected >= target)
    start = curve.at(curve.share[predicted[-1]] / 2) if predicted.size else 0
    hits = curve.accuracy * curve.units
    p_values = betainc(np.maximum(hits, 1e-9), curve.units - hits + 1, target)
    failing = np.flatnonzero(p_values[start:] > 1 - CONFIDENCE)
    last = start + int(failing[0]) - 1 if failing.size else curve.share.size - 1
    return curve.threshold(last if last >= start else -1)


def mapie(
    rows: Labelled, target: float, *, method: str, thresholds: np.ndarray | None = None
) -> float:
    """Return the threshold of MAPIE's controller, by default of those from 0 to 0.99.

    It controls the accuracy among the decided rows and, of the thresholds that pass, takes the one
    that abstains least. It knows neither groups nor weights.
    """
    from mapie.risk_control import BinaryRisk, MultiClassificationLTTController, abstention_rate

    accuracy = BinaryRisk(
        lambda y_true, decided: decided == y_true,
        lambda y_true, decided: ~np.isnan(decided),
        higher_is_better=True,
    )
    controller = MultiClassificationLTTController(
        lambda proba: proba,
        [accuracy],
        [target],
        confidence_level=CONFIDENCE,
        best_predict_param_choice=abstention_rate,
        classes=np.arange(rows.proba.shape[1]),
        fwer_method=method,
        **({} if thresholds is None else {"list_predict_params": thresholds}),
    )
    with warnings.catch_warnings():  # that no threshold passes, or that risks are not monotonic
        warnings.simplefilter("ignore")
        controller.calibrate(rows.proba, rows.y)
    return NOTHING if controller.best_predict_param is None else controller.best_predict_param


def mapie_holm(rows: Labelled, target: float) -> float:
    """MAPIE as it comes: all thresholds at once, corrected by Bonferroni and Holm."""
    return mapie(rows, target, method="bonferroni_holm")


def mapie_hundredths(rows: Labelled, target: float) -> float:
    """The same with thresholds at the hundredths of the confidences, which need no labels."""
    levels = np.quantile(rows.proba.max(axis=1), np.linspace(0, 0.99, 100))
    return mapie(rows, target, method="bonferroni_holm", thresholds=np.unique(levels))


def mapie_sequence(rows: Labelled, target: float) -> float:
    """MAPIE with thresholds one after the other, from the highest."""
    return mapie(rows, target, method="fixed_sequence")


RULES: dict[str, Callable[[Labelled, float], float]] = {
    "as_they_came": largest_share,
    "mapie_holm": mapie_holm,
    "mapie_hundredths": mapie_hundredths,
    "mapie_sequence": mapie_sequence,
}
"""Rules for predictions as they came."""


def decide(proba: np.ndarray, least: float, right: np.ndarray) -> tuple[float, float]:
    """Share of the rows that is decided, and how much of it is right; NaN where nothing is.

    `right` is, of each row and class, whether or how probably that class is the true one.
    """
    decided = proba.max(axis=1) >= least
    hits = np.take_along_axis(right, proba.argmax(axis=1)[:, None], axis=1)[decided, 0]
    return float(decided.mean()), float(hits.mean()) if hits.size else float("nan")
