"""Fit every method on one classifier's validation data, and measure it on the test data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import altnorm
from altnorm import peers
from altnorm.evidence.verdict import compare_predictions
from experiments._methods import GlobalThreshold
from experiments.suite.files import Classifier, read_classifier
from experiments.suite.paper import published

__all__ = ["FIELDS", "measure", "methods_for", "top_label_error"]

FIELDS = (
    *("classifier", "kind", "classes", "validation", "base", "method", "gain", "ci_low", "ci_high"),
    *("p_value", "n_fixed", "n_broken", "log_loss", "calibration_error", "seconds"),
)
N_BINS = 15


def methods_for(classifier: Classifier) -> dict[str, Any]:
    """The paper's tuning; ours; its families alone, under the same guard and always applied."""
    if classifier.multilabel:
        modes = ("pairs", "labelwise")
        return {
            "CAN as published": published(classifier),
            **{f"Adjuster, {mode}": altnorm.Adjuster(multilabel=mode) for mode in modes},
            "one threshold": GlobalThreshold(),
            "a threshold per label": peers.LabelThresholds(),
        }
    methods: dict[str, Any] = {
        "CAN as published": published(classifier),
        "AlternatingNormalizerCV": altnorm.AlternatingNormalizerCV(),
        "Adjuster": altnorm.Adjuster(),
        "bias, guarded": altnorm.Adjuster(("bias",)),
    }
    n, m = classifier.val_proba.shape
    if n >= 5 * m and n * m * m < 1e9:
        methods["matrix, guarded"] = altnorm.Adjuster(("matrix",))
        methods["matrix, always"] = peers.MatrixScaling()
    methods["BCTS, always"] = peers.BiasCorrectedTemperature()
    methods["temperature"] = peers.TemperatureScaling()
    return methods


def measure(path: Path, seed: int, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Scores of all methods, or those named, on one classifier's test data, in points."""
    classifier = read_classifier(path, seed=seed)
    before = classifier.test_proba
    common = {
        "classifier": classifier.name,
        "kind": "multi-label" if classifier.multilabel else "single-label",
        "classes": before.shape[1],
        "validation": len(classifier.val_y),
    }
    rows = []
    with threadpool_limits(1):
        for name, method in {"untouched": None, **methods_for(classifier)}.items():
            if only and name not in only:
                continue
            start = time.perf_counter()
            after = before
            if method is not None:
                fitted = clone(method).fit(classifier.val_proba, classifier.val_y)
                seconds = time.perf_counter() - start
                after = np.asarray(fitted.transform(before))
            else:
                seconds = 0.0
            rows.append(
                {**common, **_scores(classifier, after), "method": name, "seconds": seconds}
            )
    return rows


def _scores(classifier: Classifier, after: np.ndarray) -> dict[str, Any]:
    verdict = compare_predictions(classifier.test_y, classifier.test_proba, after)
    y = classifier.test_y
    own = np.where(y == 1, after, 1 - after) if y.ndim == 2 else after[np.arange(len(y)), y]
    return {
        "base": 100 * verdict.before,
        "gain": 100 * verdict.gain,
        "ci_low": 100 * verdict.ci_low,
        "ci_high": 100 * verdict.ci_high,
        "p_value": verdict.p_value,
        "n_fixed": verdict.n_fixed,
        "n_broken": verdict.n_broken,
        "log_loss": float(-np.log(np.maximum(own, np.finfo(after.dtype).eps)).mean()),
        "calibration_error": 100 * top_label_error(after, y),
    }


def top_label_error(proba: np.ndarray, y: np.ndarray) -> float:
    """Expected calibration error of the top label, in 15 bins of equal width.

    For several labels per row, of every entry's probability.
    """
    if y.ndim == 2:
        confidence, right = proba.ravel(), y.ravel() == 1
    else:
        confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gap = np.bincount(bins, confidence - right, minlength=N_BINS)
    return float(np.abs(gap).sum() / len(confidence))
