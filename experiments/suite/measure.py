"""Fit one method on one classifier's validation data, and measure it on the test data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from altnorm import Adjuster
from altnorm.evidence.verdict import compare_predictions
from experiments.suite.files import Classifier, read_classifier
from experiments.suite.methods import ADJUSTER, make_methods

__all__ = ["DIVIDED", "UNTOUCHED", "Task", "measure", "top_label_error"]

UNTOUCHED, DIVIDED = "untouched", "Adjuster, divided by shares"
N_BINS = 15


class Task(NamedTuple):
    """A method to be fitted on a classifier, on all validation rows or on some."""

    path: Path
    method: str
    n_labels: int = 0  # 0 is all
    draw: int = 0
    order: int = 0  # 0 is that of the file; others are drawn

    def read(self, seed: int) -> Classifier:
        """The classifier, with as many validation rows as are wanted, in the order wanted."""
        data = read_classifier(self.path, seed=seed)
        some = np.arange(len(data.val_y))
        if self.n_labels:
            rng = np.random.default_rng([seed, self.n_labels, self.draw])
            some = np.sort(rng.choice(some, self.n_labels, replace=False))
        if self.order:
            some = np.random.default_rng([seed, self.order]).permutation(some)
        return data._replace(val_proba=data.val_proba[some], val_y=data.val_y[some])


def measure(task: Task, seed: int) -> list[dict[str, Any]]:
    """Scores on the test data, in points; of `Adjuster` also with another rule for decisions."""
    data = task.read(seed)
    known = {
        "classifier": data.name,
        "classes": data.val_proba.shape[1],
        "labels": len(data.val_y),
        "draw": task.draw,
        "order": task.order,
    }
    before = _decide(data, data.test_proba)
    if task.method == UNTOUCHED:
        nothing = _scores(data, data.test_proba, before, before, "accuracy")
        return [known | {"method": UNTOUCHED, **_nothing(), **nothing, "seconds": 0.0}]
    with threadpool_limits(1):
        start = time.process_time()
        fitted = make_methods(data)[task.method].fit(data.val_proba, data.val_y)
        proba = np.asarray(fitted.transform(data.test_proba))
        seconds = time.process_time() - start
    ours = isinstance(fitted, Adjuster)
    decided = np.asarray(fitted.predict(data.test_proba)) if ours else _decide(data, proba)
    purpose = fitted.verdict_.scoring if ours else _natural(data)
    found = _scores(data, proba, before, decided, purpose)
    records = [{"method": task.method, **_said(fitted), **found, "seconds": seconds}]
    if task == Task(task.path, ADJUSTER) and not data.multilabel:
        shares = np.maximum(np.bincount(data.val_y, minlength=proba.shape[1]), 0.5)
        other = (proba / shares).argmax(axis=1)
        found = _scores(data, proba, before, other, "balanced_accuracy")
        said = _said(fitted) | {"decision": "by shares", "promised": np.nan}
        records.append({"method": DIVIDED, **said, **found, "seconds": seconds})
    return [known | record for record in records]


def _natural(data: Classifier) -> str:
    return "f1_micro" if data.multilabel else "accuracy"


def _decide(data: Classifier, proba: np.ndarray) -> np.ndarray:
    return (proba > 0.5).astype(int) if data.multilabel else proba.argmax(axis=1)


def _nothing() -> dict[str, Any]:
    return {
        "adopted": False,
        "reason": "",
        "family": "none",
        "decision": "plain",
        "depth": 0,
        "promised": 0.0,
    }


def _said(fitted: Any) -> dict[str, Any]:
    """What the fit says of itself; methods without a verdict are always applied."""
    if not hasattr(fitted, "verdict_"):
        family = getattr(fitted, "family_", "none")
        return _nothing() | {"adopted": True, "family": family, "promised": np.nan}
    verdict, rule = fitted.verdict_, getattr(fitted, "decision_", None)
    in_points = 100 * verdict.gain if verdict.in_points else verdict.gain
    return {
        "adopted": bool(verdict.adopted),
        "reason": verdict.reason,
        "family": getattr(fitted, "family_", None) or "none",
        "decision": "plain" if rule is None or rule.is_argmax else rule.kind,
        "depth": getattr(fitted, "best_params_", {}).get("depth", 0),
        "promised": in_points if verdict.adopted else 0.0,
    }


def _scores(
    data: Classifier, proba: np.ndarray, before: np.ndarray, decided: np.ndarray, purpose: str
) -> dict[str, Any]:
    """Gain by the purpose's own score with its interval, then all scores."""
    y = data.test_y
    if purpose == "neg_log_loss":
        found, unit = compare_predictions(y, data.test_proba, proba, scoring=purpose), 1
    else:
        found, unit = compare_predictions(y, before, decided, scoring=purpose), 100
    gains = {name: unit * getattr(found, name) for name in ("gain", "ci_low", "ci_high")}
    own = np.where(y == 1, proba, 1 - proba) if y.ndim == 2 else proba[np.arange(len(y)), y]
    probabilities = {
        "log_loss": float(-np.log(np.maximum(own, np.finfo(proba.dtype).eps)).mean()),
        "calibration_error": 100 * top_label_error(proba, y),
    }
    macro = 100 * float(f1_score(y, decided, average="macro", zero_division=0))
    if data.multilabel:
        micro = 100 * float(f1_score(y, decided, average="micro", zero_division=0))
        return gains | {"f1_micro": micro, "f1_macro": macro} | probabilities
    balanced = 100 * float(balanced_accuracy_score(y, decided))
    right = 100 * float((decided == y).mean())
    return {
        **gains,
        "accuracy": right,
        "balanced_accuracy": balanced,
        "f1_macro": macro,
        **probabilities,
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
