"""Fit one method on some labels of one classifier, and score it on the test third."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from experiments.benchmark.classifiers import Classifier
from experiments.benchmark.methods import LEFT, TARGET, Labelled, Method, floored

__all__ = ["ALL", "SCORES", "SIZES", "UNTOUCHED", "measure", "top_label_error"]

SCORES = "2"  # changes whenever a score does: what was kept lacks it then
UNTOUCHED = "untouched"
ALL = 0
SIZES = (100, 300, ALL)  # labels; the first ones of a fixed permutation
LIMIT = 60  # seconds of the processor for a fit; longer counts as a failure
N_BINS = 15


def measure(classifier: Classifier, method: Method | None) -> list[dict[str, Any]]:
    """Scores of a method on each number of labels; without a method, those of the classifier."""
    sizes = [size for size in SIZES if size < len(classifier.val_labels)]
    if method is None:
        proba = floored(classifier.test_proba)
        scores = _scores(classifier, proba, proba)
        nothing = {"seconds": 0.0, "failure": ""}
        return [{"labels": size, "method": UNTOUCHED, **scores, **nothing} for size in sizes]
    name = f"{method.package}: {method.name}"
    return [
        {"labels": size, "method": name, **_measure_size(classifier, method, size)}
        for size in sizes
    ]


def _measure_size(classifier: Classifier, method: Method, size: int) -> dict[str, Any]:
    """A failure is scored as what a user is left with: the probabilities as they were."""
    order = np.random.default_rng(0).permutation(len(classifier.val_labels))
    # In the file's order: what looks at neighbours, or cuts folds in order, sees time as it went.
    some = np.sort(order[: size or None])
    before = floored(classifier.test_proba)
    prior = classifier.train_counts / classifier.train_counts.sum()
    proba, labels = floored(classifier.val_proba)[some], classifier.val_labels[some]
    start = time.process_time()
    try:
        with _limited(LIMIT), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adjusted = np.asarray(method.adjust(Labelled(proba, labels, before, prior)))
        failure = _fault(adjusted, before.shape[: 1 if method.defers else 2])
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - start
    if method.defers:
        decided = np.full(len(before), LEFT) if failure else adjusted
        scores = _decided(decided != LEFT, decided == classifier.test_labels)
    else:
        scores = _scores(classifier, before, before if failure else floored(adjusted))
    return {**scores, "seconds": seconds, "failure": failure[:100]}


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt what takes more processor time; a busy machine is nobody's failure."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def _fault(proba: np.ndarray, shape: tuple[int, ...]) -> str:
    if proba.shape != shape:
        return f"shape {proba.shape}, not {shape}"
    return "" if np.isfinite(proba).all() else "not finite"


def _scores(classifier: Classifier, before: np.ndarray, after: np.ndarray) -> dict[str, float]:
    """Accuracies and calibration error in points; `_se` is of the paired difference to before."""
    labels = classifier.test_labels
    right = after.argmax(axis=1) == labels
    loss = -np.log(after[np.arange(len(labels)), labels])
    gained = right.astype(float) - (before.argmax(axis=1) == labels)
    saved = -np.log(before[np.arange(len(labels)), labels]) - loss
    with warnings.catch_warnings():
        # A class that is predicted but absent from the test third does not count.
        warnings.simplefilter("ignore", UserWarning)
        balanced = balanced_accuracy_score(labels, after.argmax(axis=1))
    return {
        "accuracy": 100 * float(right.mean()),
        "accuracy_se": 100 * _standard_error(gained),
        "log_loss": float(loss.mean()),
        "log_loss_se": _standard_error(saved),
        "brier": float(((after - np.eye(after.shape[1])[labels]) ** 2).sum(axis=1).mean()),
        "calibration_error": 100 * top_label_error(after, labels),
        "balanced_accuracy": 100 * float(balanced),
        **_decided(after.max(axis=1) >= TARGET, right),
    }


def _decided(decided: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """Share of the rows that are decided, and how many of these are wrong, in per cent."""
    wrong = (decided & ~right).sum() / max(int(decided.sum()), 1)
    return {"decided": 100 * float(decided.mean()), "decided_wrong": 100 * float(wrong)}


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def top_label_error(proba: np.ndarray, labels: np.ndarray) -> float:
    """Mean gap between confidence and accuracy, over bins of equally many rows."""
    confidence = proba.max(axis=1)
    right = proba.argmax(axis=1) == labels
    order = np.argsort(confidence, kind="stable")
    bins = np.array_split(order, min(N_BINS, len(order)))
    gaps = [abs(confidence[rows].mean() - right[rows].mean()) * len(rows) for rows in bins]
    return float(sum(gaps) / len(order))
