"""Validation data, and how its rows are dealt into folds."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from altnorm._base.arrays import Array, array_namespace, is_foreign, quiet, take_rows, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.validation import check_integer
from altnorm.evidence.scores import NEG_LOG_LOSS, Score
from altnorm.method.ambiguity import row_ambiguity
from altnorm.method.kinds import LabelKind


class Validation(NamedTuple):
    """Clean validation data and how to read it."""

    proba: np.ndarray  # (n, m) rows with labels
    labels: np.ndarray  # class codes (n,) or booleans (n, m)
    weight: np.ndarray | None  # (n,)
    groups: np.ndarray | None  # (n,) numbers of the groups; None where rows are independent
    unlabelled: np.ndarray  # (u, m) rows without labels, which serve as reference
    kind: LabelKind
    k_max: int
    prior: Any
    score: Score
    on_device: Array | None = None  # (n, m) `proba` where it was given, if not in host memory

    @property
    def work(self) -> Array:
        """Rows with labels where the heavy work is done."""
        return self.proba if self.on_device is None else self.on_device

    def ambiguity(self) -> np.ndarray:
        """Ambiguity of each row, those without labels last."""
        parts = [row_ambiguity(rows, k_max=self.k_max) for rows in (self.work, self.unlabelled)]
        return np.concatenate([to_numpy(part) for part in parts])

    @property
    def row_weight(self) -> np.ndarray:
        """Weight of each row with a label."""
        return np.ones(len(self.proba)) if self.weight is None else self.weight

    def predicted(self, proba: np.ndarray) -> np.ndarray:
        """Predictions as the score needs them."""
        return proba if self.score.needs == "proba" else self.kind.decide(proba)


class Sample(NamedTuple):
    """Rows to fit on: what the rows outside a fold, or all rows, come to."""

    rows: np.ndarray  # (n,) which rows with labels take part
    weight: np.ndarray  # (n,) their weights, 0 for the others
    absent: np.ndarray  # (m,) weight of a sure row for each class without labels
    prior: np.ndarray


def sample(data: Validation, rows: np.ndarray) -> Sample:
    """Weigh the rows of a sample, and count the prior on them alone."""
    labels, (n_rows, n_classes) = data.labels[rows], data.proba.shape
    given = None if data.weight is None else data.weight[rows]
    prior = data.kind.count_prior(labels, n_classes, data.prior, given)
    strata, weight = data.kind.stratify(labels, n_classes, data.prior, given), np.zeros(n_rows)
    weight[rows] = strata.weight
    return Sample(rows, weight, strata.absent, prior)


class Dealing:
    """One assignment of the rows to folds, and what a fold may know of the others."""

    def __init__(self, data: Validation, folds: np.ndarray) -> None:
        self.data, self.folds = data, folds
        self.n_folds = int(folds.max()) + 1
        self.outside = [sample(data, folds != k) for k in range(self.n_folds)]

    def scored_by_proba(self) -> Dealing:
        """Return the same dealing for a score that needs probabilities."""
        other = copy(self)
        other.data = self.data._replace(score=NEG_LOG_LOSS)
        return other

    def log_p(self, rows: np.ndarray) -> Array:
        """Log-probabilities of some rows, by mask or numbers: a copy that the caller may change.

        It is not kept, since where rows are many memory is short.
        """
        p = take_rows(self.data.work, rows)
        if is_foreign(p):
            return array_namespace(p).log(p)
        with quiet(np):
            return np.log(p, out=p)


def assign_folds(
    labels: np.ndarray, cv: Any, random_state: np.random.RandomState, groups: Any = None
) -> np.ndarray:
    """Number the fold of each row.

    An integer `cv` deals the rows out at random, not class by class: stratified folds share the
    class balance that the sample has by chance, and a prior from some folds leaks the label counts
    of the others. Groups are dealt out whole. Splitters and lists of splits are taken as they are;
    each row must be in the test part of one split.
    """
    n_rows = labels.shape[0]
    n_units = n_rows if groups is None else int(groups.max()) + 1
    if n_units < 2:
        raise InputError(
            f"Cross-fitting needs at least 2 {'rows' if groups is None else 'groups'}",
            f"there are n_samples = {n_rows}" + ("" if groups is None else f" in {n_units} group"),
            "Use AlternatingNormalizer with fixed settings.",
            value=n_units,
            code="too_few_rows",
        )
    if not isinstance(cv, Integral):
        return _given_folds(labels, cv, groups)
    check_integer(cv, "cv", low=2)
    folds = np.empty(n_units, dtype=int)
    folds[random_state.permutation(n_units)] = np.arange(n_units) % cv
    return folds if groups is None else folds[groups]


def _given_folds(labels: np.ndarray, cv: Any, groups: Any) -> np.ndarray:
    n_rows = labels.shape[0]
    folds = np.full(n_rows, -1)
    times = np.zeros(n_rows, dtype=int)
    splits = check_cv(cv, labels, classifier=True).split(np.zeros((n_rows, 1)), labels, groups)
    for k, (_, test) in enumerate(splits):
        folds[test] = k
        times[test] += 1
    if (times != 1).any():
        raise InputError(
            "Each row must be in the test part of one split",
            f"{(times != 1).sum()} of {n_rows} are in none or in several",
            "Pass a splitter that partitions the rows, such as KFold.",
            value=int((times != 1).sum()),
            code="parameter",
        )
    return folds
