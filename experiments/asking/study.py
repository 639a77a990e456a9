"""Ask and judge on the test rows of real classifiers, many times each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import altnorm
from experiments.suite.files import Classifier, read_classifier

__all__ = ["BCTS", "BUDGET", "UNLABELLED", "Case", "Run", "Summary", "make_case", "measure"]

UNLABELLED, BCTS = "CAN, no labels", "BCTS"
BUDGET = 40
ROUNDING = 1e-12
LATE = 0.9  # of the changed rows: the last look at the interval


class Case(NamedTuple):
    """The rows that an adjustment changes; all others have no say."""

    name: str
    adjustment: str
    multilabel: bool
    n_rows: int
    n_classes: int
    normalizer: Any
    proba: np.ndarray
    y: np.ndarray
    n_fixed: int
    n_broken: int

    @property
    def gain(self) -> float:
        """True gain in accuracy over the pool; in that of label decisions for several labels."""
        per_row = self.n_classes if self.multilabel else 1
        return (self.n_fixed - self.n_broken) / (self.n_rows * per_row)


class Run(NamedTuple):
    """One way to draw the rows."""

    n_labels: int
    n_random: int
    is_right: bool
    is_covered: bool


class Summary(NamedTuple):
    """All runs on one classifier."""

    classifier: str
    kind: str
    adjustment: str
    rows: int
    changed: int
    fixed: int
    broken: int
    gain: float
    median: float
    p90: float
    random_median: float
    random_p90: float
    in_budget: float
    wrong: float
    covered: float
    runs: int


class Remembered:
    """A fitted normalizer that remembers its answer about one pool, which is asked for often."""

    def __init__(self, normalizer: Any, proba: np.ndarray) -> None:
        self.multilabel, self.classes_ = normalizer.multilabel, normalizer.classes_
        self._answer = normalizer.predict(proba)

    def predict(self, proba: np.ndarray) -> np.ndarray:
        """Labels of the pool."""
        return self._answer


def fit_unlabelled(classifier: Classifier) -> Any:
    """Fit as one would without labels: on the pool's predictions, with a known class balance.

    The balance is counted on the validation labels, each class once more than it is there.
    """
    y = classifier.val_y
    if classifier.multilabel:
        balance, mode = (y.sum(axis=0) + 1) / (len(y) + 2), "labelwise"
    else:
        counts = np.bincount(y, minlength=classifier.val_proba.shape[1]) + 1
        balance, mode = counts / counts.sum(), None
    normalizer = altnorm.AlternatingNormalizer(prior=balance, multilabel=mode)
    return normalizer.fit(classifier.test_proba)


def fit_labelled(classifier: Classifier) -> Any:
    """Temperature and class biases, fitted on validation labels."""
    method = altnorm.peers.BiasCorrectedTemperature()
    return method.fit(classifier.val_proba, classifier.val_y)


def make_case(classifier: Classifier, adjustment: str) -> Case | None:
    """The changed rows of a classifier's test data; None if there are none."""
    proba, y = classifier.test_proba, classifier.test_y
    fit = fit_unlabelled if adjustment == UNLABELLED else fit_labelled
    normalizer = fit(classifier)
    rows = np.sort(altnorm.ask(normalizer, proba))
    if not rows.size:
        return None
    before = proba[rows] > 0.5 if classifier.multilabel else proba[rows].argmax(axis=1)
    after = normalizer.predict(proba[rows])
    n_fixed = np.count_nonzero((before != y[rows]) & (after == y[rows]))
    n_broken = np.count_nonzero((before == y[rows]) & (after != y[rows]))
    return Case(
        classifier.name,
        adjustment,
        classifier.multilabel,
        *proba.shape,
        Remembered(normalizer, proba[rows]),
        proba[rows],
        y[rows],
        int(n_fixed),
        int(n_broken),
    )


def run_once(case: Case, seed: int) -> Run:
    """Label the changed rows in one random order, look after each label, stop at the answer."""
    rows = altnorm.ask(case.normalizer, case.proba, random_state=seed)

    def judge(n: int) -> Any:
        return altnorm.judge(case.normalizer, case.proba, rows[:n], case.y[rows[:n]])

    # With all labels the answer is right. A wrong one, if any, came before the right one.
    n_right = judge(rows.size).n_decided
    earlier = judge(n_right - 1)
    n_labels = n_right if earlier.n_decided is None else earlier.n_decided
    late = judge(int(LATE * rows.size))
    # Intervals only close in, so this one covers if all before it did. The pool here is the
    # changed rows alone; the gain over all rows is smaller by their share.
    low, high = (bound * len(case.proba) / case.n_rows for bound in (late.ci_low, late.ci_high))
    is_covered = low - ROUNDING <= case.gain <= high + ROUNDING
    # Labelling any rows at random: the same changed rows, with unchanged ones in between.
    places = np.random.default_rng(seed).permutation(case.n_rows)[: rows.size]
    n_random = int(np.sort(places)[n_labels - 1]) + 1
    return Run(n_labels, n_random, earlier.n_decided is None, is_covered)


def summarise(case: Case, runs: list[Run]) -> Summary:
    """Quantiles and shares over the runs."""
    labels, at_random, right, covered = (np.array(column) for column in zip(*runs, strict=True))
    return Summary(
        case.name,
        "multi-label" if case.multilabel else "single-label",
        case.adjustment,
        case.n_rows,
        len(case.proba),
        case.n_fixed,
        case.n_broken,
        100 * case.gain,
        float(np.median(labels)),
        float(np.quantile(labels, 0.9)),
        float(np.median(at_random)),
        float(np.quantile(at_random, 0.9)),
        100 * float(np.mean(labels <= BUDGET)),
        100 * float(np.mean(~right)),
        100 * float(np.mean(covered)),
        len(runs),
    )


def measure(path: Path, n_runs: int, seed: int) -> list[Summary]:
    """All runs on one classifier, for each adjustment that changes something."""
    classifier = read_classifier(path, seed=seed)
    adjustments = [UNLABELLED] if classifier.multilabel else [UNLABELLED, BCTS]
    cases = [make_case(classifier, adjustment) for adjustment in adjustments]
    return [
        summarise(case, [run_once(case, seed * n_runs + i) for i in range(n_runs)])
        for case in cases
        if case is not None
    ]
