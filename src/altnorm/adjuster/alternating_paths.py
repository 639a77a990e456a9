"""Cross-fitted alternating normalization: a row is adjusted only against rows of other folds.

The first iteration is exact. Deeper ones follow the reference's own path (`reference_sums`): a row
that is one among many hardly moves it, so that is good enough to compare settings, and free of
products. What is adopted is applied exactly.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    put_rows,
    quiet,
    take_rows,
    to_numpy,
    wide,
)
from altnorm.adjuster.validation import Validation
from altnorm.estimator.kinds import PooledPairs
from altnorm.estimator.normalizer import AlternatingNormalizer
from altnorm.method.ambiguity import binary_ambiguity, row_ambiguity
from altnorm.method.scaling import ColumnSums, LogReference, next_anchor, smallest_safe, step_once
from altnorm.method.two_classes import log_sigmoids, prior_over_sums, step_logits

K_MAX = 10  # largest number of classes that ambiguity looks at, unless a user says otherwise


class Setting(NamedTuple):
    """One combination of hyper-parameters of alternating normalization."""

    alpha: float
    depth: int
    threshold: float
    reference: str
    smoothing: float

    def severity(self) -> tuple[float, ...]:
        """Order among settings that score the same: the one that changes least first."""
        return (self.depth, abs(math.log(self.alpha)), -self.threshold, -self.smoothing)


class FoldReferences(NamedTuple):
    """Rows that may serve as reference, and what may be known of them outside each fold."""

    rows: Array  # (r, m) with labels, then without, then sure ones of classes that lack labels
    weight: np.ndarray  # (k, r) how much each row counts: 0 inside the fold
    prior: np.ndarray  # (k, p)

    @classmethod
    def of(
        cls, data: Validation, outside: Sequence[np.ndarray], *, stratified: bool = True
    ) -> FoldReferences:
        """Weigh rows, and count the prior, on the labels of some rows alone, given as masks.

        Not `stratified`, rows count as they do in the paper: each once, whatever its class.
        """
        m, n_more = data.proba.shape[1], len(data.unlabelled)
        stratify = data.kind.stratify if stratified else data.kind.count_once
        labelled = [(data.labels[rows], m, data.prior, data.weight[rows]) for rows in outside]
        weights, absences, priors = zip(*(stratify(*each) for each in labelled), strict=True)
        by_fold = np.zeros((len(outside), len(data.proba)))
        for counts, rows, weight in zip(by_fold, outside, weights, strict=True):
            counts[rows] = weight
        # A class without labels stands in the reference with a sure row of its own.
        absent = np.stack(absences)
        missing = np.flatnonzero(absent.any(axis=0))
        rows = data.work
        if n_more or missing.size:
            more = np.concatenate([data.unlabelled, np.eye(m)[missing]])
            rows = array_namespace(rows).concat([rows, as_array(more, rows)])
        unlabelled = np.ones((len(outside), n_more))
        return cls(rows, np.hstack([by_fold, unlabelled, absent[:, missing]]), np.stack(priors))


class ClassPaths:
    """Alternating normalization of rows that sum to 1, cross-fitted.

    Rows without labels are outside every fold. Without folds, rows are adjusted against all of
    them, as published.
    """

    def __init__(self, data: Validation, folds: np.ndarray | None, *, k_max: int = K_MAX) -> None:
        self.data = data
        self.folds, self.references = _outside(data, folds)
        self.ambiguity = to_numpy(row_ambiguity(self.references.rows, k_max=k_max))

    def path(self, setting: Setting) -> Iterator[tuple[Setting, Array]]:
        """Yield the setting at each depth up to its own, with the probabilities of all rows.

        Nothing comes where some fold has no reference row outside of it.
        """
        rows, weight, prior = self.references
        if setting.reference == "confident":
            weight = weight * (self.ambiguity <= setting.threshold)
        if not weight.any(axis=1).all():
            return
        work, doubt = self.data.work, self.ambiguity[: self.folds.size] > setting.threshold
        xp, folds, b = array_namespace(work), self.folds[doubt], take_rows(work, doubt)
        like = wide(rows[:1, :])
        q = as_array(prior, like)
        sums = reference_sums(rows, as_array(weight, like), q, setting)
        for depth in range(1, setting.depth + 1):
            met = ColumnSums.of(next(sums), q, b)
            b = step_once(b, met, alpha=setting.alpha, each=folds)
            if depth == setting.depth:
                sums.close()  # it holds copies of the rows
            out = xp.asarray(work, copy=True)
            yield setting._replace(depth=depth), put_rows(out, doubt, b) if doubt.any() else out


def reference_sums(
    a: Array, weight: Array, q: Array, setting: Setting
) -> Generator[Array, None, None]:
    """Yield the logs of the column sums of each fold's reference iterated on its own, (k, m).

    The folds' references are the same rows `a` (n, m) with their own weights (k, n). A power of a
    diagonal scaling is a diagonal scaling: after d iterations the reference of a fold is
    ``a ** (alpha ** d)`` with its rows multiplied by `r` and its columns by `c`. So the folds share
    the powers, and an iteration is two small products. Where a number could be lost to underflow,
    the sums come in logs instead.
    """
    xp, alpha, power = array_namespace(a), setting.alpha, a
    mass = setting.smoothing * xp.sum(weight, axis=1, keepdims=True)
    r, c = xp.ones_like(weight), xp.ones_like(q)
    for done in count():
        with quiet(np):  # never around a yield: the caller's settings would change
            r, c = r**alpha, c**alpha
            s = _column_sums(power, weight * r, alpha) * c + mass * q
            log_s = xp.log(s)
        if not all(map(_is_safe, (r, c, s))) or _is_lost(s, a, weight):
            by_fold = (
                _log_sums(a, weight[k, :], q[k, :], alpha, float(mass[k, 0]))
                for k in range(q.shape[0])
            )
            yield from islice(map(xp.stack, zip(*by_fold, strict=True)), done, None)
        yield log_s
        power = _power(power, alpha)
        with quiet(np):
            c = c * xp.where(s > 0, q / s, xp.ones_like(s))
            r = 1 / (c @ power.T)


def _power(a: Array, alpha: float) -> Array:
    return wide(a) if alpha == 1 else wide(a) ** alpha


def _column_sums(a: Array, weight: Array, alpha: float) -> Array:
    """Weighted sums of powers, in blocks: with one iteration there need be no copy of the rows."""
    blocks = block_slices(a.shape[0], 24 * a.shape[1], a, cached=True)
    return sum(weight[:, rows] @ _power(a[rows, :], alpha) for rows in blocks)


def _is_safe(factors: Array) -> bool:
    """Whether such numbers, unless they are 0, are far from what underflows or overflows."""
    limit = math.sqrt(smallest_safe(factors))
    within = (factors > limit) & (factors < 1 / limit)
    return bool(array_namespace(factors).all(within | (factors == 0)))


def _is_lost(s: Array, a: Array, weight: Array) -> bool:
    """Whether a class has a sum of 0 although some row has it."""
    xp = array_namespace(a)
    if bool(xp.all(s > 0)):
        return False
    has = xp.astype(weight > 0, weight.dtype) @ xp.astype(a > 0, weight.dtype) > 0
    return bool(xp.any(has & (s == 0)))


def _log_sums(a: Array, weight: Array, q: Array, alpha: float, mass: float) -> Iterator[Array]:
    """As `reference_sums`, of one fold and in logs."""
    xp, log_mass = array_namespace(a), math.log(mass) if mass else None
    used = to_numpy(weight) > 0
    rows, weight = take_rows(a, used), take_rows(weight, used)
    with quiet(np):
        log_a = xp.log(wide(rows))
        reference = LogReference(log_a, xp.log(weight), xp.log(q), alpha, log_mass)
    while True:
        with quiet(np):
            anchor = next_anchor(reference)
            log_s = reference.smoothed(anchor.log_p - anchor.log_c)
        yield log_s
        reference = reference._replace(log_a=anchor.log_a)


class LabelPaths:
    """Alternating normalization of independent probabilities of yes, cross-fitted.

    There is one prior of yes for all labels ("pairs"), or one each ("labelwise").
    """

    def __init__(self, data: Validation, folds: np.ndarray | None) -> None:
        folds, self.references = _outside(data, folds)
        self.proba, self.n_rows = self.references.rows, len(folds)
        self.folds = np.append(folds, np.full(len(data.unlabelled), -1))
        self.pooled = isinstance(data.kind, PooledPairs)
        self.ambiguity = binary_ambiguity(self.proba)
        with quiet(np):
            self.logits = logit(self.proba.astype(np.float64, copy=False))

    def path(self, setting: Setting) -> Iterator[tuple[Setting, Array]]:
        """Yield the setting at each depth up to its own, with the probabilities of all rows."""
        serves = (self.ambiguity <= setting.threshold) | (setting.reference == "all")
        if not (self.references.weight * serves.any(axis=1)).any(axis=1).all():
            return
        steps = [self._fold_path(setting, k) for k in range(len(self.references.prior))]
        for depth in range(1, setting.depth + 1):
            out = self.proba.copy()
            with quiet(np):
                for k, step in enumerate(steps):
                    out[self.folds == k] = expit(next(step))
            adjusted = np.where(self.ambiguity > setting.threshold, out, self.proba)
            yield setting._replace(depth=depth), adjusted[: self.n_rows]

    def _fold_path(self, setting: Setting, fold: int) -> Iterator[np.ndarray]:
        """Logits of one fold's rows after each iteration against the rows of the others."""
        alpha, y, axis = setting.alpha, self.logits[self.folds == fold], None if self.pooled else 0
        weight, q = self.references.weight[fold], self.references.prior[fold]
        if self.pooled:  # the probabilities of yes and no
            q = q[:1]
        outside = weight > 0
        weight = np.broadcast_to(weight[outside, None], self.logits[outside].shape)
        if setting.reference == "confident":
            weight = weight * (self.ambiguity[outside] <= setting.threshold)
        mass = setting.smoothing * weight.sum(axis=axis)
        with quiet(np):
            log_q = np.log(q), np.log1p(-q)
        z = self.logits[outside]
        while True:
            sums = [
                np.log((weight * np.exp(alpha * part)).sum(axis=axis) + mass * np.exp(lq))
                for part, lq in zip(log_sigmoids(z), log_q, strict=True)
            ]
            new, _ = step_logits(y, sums, log_q, alpha)
            # Where prior or reference has only one of yes and no, there is nothing to weigh: the
            # entry stays as it is.
            y = np.where(np.isfinite(new) & np.isfinite(sums[0] - sums[1]), new, y)
            yield y
            z = alpha * z + prior_over_sums(log_q, sums)


def _outside(data: Validation, folds: np.ndarray | None) -> tuple[np.ndarray, FoldReferences]:
    """Folds, and what may be known outside each; of all rows, where there are none."""
    if folds is None:
        every = np.ones(len(data.proba), dtype=bool)
        references = FoldReferences.of(data, [every], stratified=False)
        return np.zeros(len(data.proba), dtype=int), references
    return folds, FoldReferences.of(data, [folds != k for k in range(int(folds.max()) + 1)])


def make_paths(
    data: Validation, folds: np.ndarray | None, *, k_max: int = K_MAX
) -> ClassPaths | LabelPaths:
    """Return the cross-fit for the kind of labels; several labels are yes or no, whatever k."""
    return (
        LabelPaths(data, folds) if data.kind.is_multilabel else ClassPaths(data, folds, k_max=k_max)
    )


def fit_alternating(
    data: Validation, setting: Setting, *, k_max: int = K_MAX, stratified: bool = True
) -> AlternatingNormalizer:
    """Fit a setting on all rows."""
    every = np.ones(len(data.proba), dtype=bool)
    rows, (weight,), (prior,) = FoldReferences.of(data, [every], stratified=stratified)
    normalizer = AlternatingNormalizer(
        **setting._asdict(), k_max=k_max, prior=prior, multilabel=data.kind.multilabel
    )
    return normalizer.fit(rows, sample_weight=None if (weight == 1).all() else weight)
