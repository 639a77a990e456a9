"""The methods that both multi-label studies compare, fitted on validation predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.peers import Identity, LabelThresholds
from experiments._methods import GlobalThreshold
from experiments._multilabel.grid import GridPoint, best_point, fit_point

__all__ = [
    "BASE",
    "CROSS_FITTED",
    "METHODS",
    "PUBLISHED",
    "Fitted",
    "describe_setting",
    "fit_cross_fitted",
    "fit_methods",
    "fit_thresholds",
]

BASE, PUBLISHED = "base", "CAN as published"
CROSS_FITTED = {"CAN, cross-fitted": "pairs", "CAN, label-wise": "labelwise"}
ALWAYS = ", always adopted"
ONE, EACH = "one threshold", "a threshold per label"
METHODS = (
    BASE,
    PUBLISHED,
    *(name + suffix for name in CROSS_FITTED for suffix in ("", ALWAYS)),
    ONE,
    EACH,
)


class Fitted(NamedTuple):
    """A fitted method and what it chose, in words."""

    name: str
    method: Any
    setting: str


def fit_methods(
    proba: np.ndarray,
    labels: np.ndarray,
    points: Sequence[GridPoint],
    prior: float,
    **options: Any,
) -> Iterator[Fitted]:
    """Fit all `METHODS`, in their order.

    Parameters
    ----------
    proba, labels : ndarray of shape (n, m)
        Validation data.
    points : sequence of GridPoint
        The paper's grid, scored on these data.
    prior : float
        Frequency of "yes" in the training data.
    **options
        For :class:`altnorm.AlternatingNormalizerCV`.
    """
    yield Fitted(BASE, Identity(multilabel="pairs").fit(proba, labels), "")
    best = best_point(points)
    yield Fitted(PUBLISHED, fit_point(best, proba, prior), describe_setting(**best._asdict()))
    for name, multilabel in CROSS_FITTED.items():
        yield from fit_cross_fitted(name, multilabel, proba, labels, options)
    yield from fit_thresholds(proba, labels)


def fit_thresholds(proba: np.ndarray, labels: np.ndarray) -> Iterator[Fitted]:
    """One threshold, and one per label."""
    one = GlobalThreshold().fit(proba, labels)
    yield Fitted(ONE, one, f"threshold {one.threshold_:.3f}")
    yield Fitted(EACH, LabelThresholds().fit(proba, labels), "")


def fit_cross_fitted(
    name: str, multilabel: str, proba: np.ndarray, labels: np.ndarray, options: dict[str, Any]
) -> Iterator[Fitted]:
    """Chosen by cross-fitting: adopted on evidence, and adopted whatever the evidence."""
    method = AlternatingNormalizerCV(multilabel=multilabel, **options)
    method.fit(proba, labels)
    words, verdict = describe_setting(**method.best_params_), method.verdict_
    adopted = "adopted" if verdict.adopted else "not adopted"
    evidence = f"gain {100 * verdict.gain:+.2f}, p = {verdict.p_value:.2g}"
    yield Fitted(name, method, f"{adopted} ({evidence}): {words}")
    settings = dict(prior=method.prior, multilabel=multilabel)
    always = AlternatingNormalizer(**method.best_params_, **settings).fit(proba, labels)
    yield Fitted(name + ALWAYS, always, words)


def describe_setting(alpha: float, depth: int, threshold: float, **others: Any) -> str:
    """A setting in words."""
    text = f"alpha {alpha:g}, depth {depth}, tau {threshold:g}"
    if "reference" in others:
        text += f", reference {others['reference']}, smoothing {others['smoothing']:g}"
    return text
