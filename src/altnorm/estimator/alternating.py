"""Alternating normalization as a stage of a correction: what a fit left, ready for rows.

What does not depend on a row is worked out once: column sums for one iteration, the reference's
own iterations, or the whole of it as a function of log-odds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from altnorm._base.arrays import Array, array_namespace, may_keep, quiet, sigmoid, softmax
from altnorm.estimator.correction import Doubt, Engine, masked_log
from altnorm.method import functional, scaling, two_classes
from altnorm.method.ambiguity import binary_ambiguity
from altnorm.method.functional import Problem
from altnorm.method.two_classes import BinaryReference

_LOG_STEEP = math.log(100)  # of alpha^(depth - 1); beyond, a table is less exact than the steps


class AlternatingRows(NamedTuple):
    """Alternating normalization of rows over several classes."""

    doubt: Doubt
    problem: Problem  # without rows; with the reference's own iterations where they are kept
    sums: scaling.ColumnSums | None  # where they are all that is needed of the reference

    def __call__(self, p: Array, engine: Engine) -> Array:
        """As a `Stage`."""
        return engine.adjust_doubtful(p, self.doubt, self._adjusted)

    def _adjusted(self, p: Array) -> Array:
        if self.sums is None:
            return functional.solve(self.problem._replace(p=p))
        return scaling.step_once(p, self.sums, alpha=self.problem.alpha)

    def unrolled(self) -> UnrolledRows | AlternatingOdds:
        """Follow the reference on its own, which may have no row left."""
        with quiet(np):
            problem, _ = functional.reduce_problem(self.problem)
            if _is_odds(problem):
                return _both_classes(self.doubt, problem)
            n, log_q = problem.reference.shape[0], np.log(problem.q)
            steps = islice(scaling.reference_steps(problem.logs()), problem.depth)
            anchors = [step.anchor for step in steps]
            return UnrolledRows(
                self.doubt,
                scaling.LogReference(None, None, log_q, float(problem.alpha), problem.log_mass),
                tuple(UnrolledStep(a._replace(shares=None), np.exp(a.log_a)) for a in anchors),
                supported=anchors[0].log_p > -np.inf,
                has_rows=n > 0,
                every=np.ones(n, dtype=bool),
                possible=None if problem.q.all() else problem.q > 0,
            )


class UnrolledStep(NamedTuple):
    """One iteration of the reference on its own, for all that come after the first."""

    anchor: scaling.Anchor
    a: Array  # (n, m) exponentials of the anchor's `log_a`


class UnrolledRows(NamedTuple):
    """The same, every iteration written out."""

    doubt: Doubt
    reference: scaling.LogReference  # prior and settings; its rows are in the steps
    steps: tuple[UnrolledStep, ...]  # one per iteration
    supported: Array  # (m,) classes that some reference row has
    has_rows: bool  # whether the reference has any; without, every share of it is 0
    every: Array  # (n,) true
    possible: Array | None  # (m,) classes with a positive prior; None where all have one

    def __call__(self, p: Array, engine: Engine) -> Array:
        """As a `Stage`."""
        if len(self.steps) == 1:  # it costs less than to find the rows
            return array_namespace(p).where(self.doubt.rows(p), self._adjusted(p, engine), p)
        return engine.adjust_doubtful(p, self.doubt, lambda rows: self._adjusted(rows, engine))

    def _adjusted(self, p: Array, engine: Engine) -> Array:
        """Every row adjusted; one with only classes of prior zero as it was."""
        if self.possible is None:
            return softmax(self._iterated(p, engine))
        xp = array_namespace(p)
        # Rows with nothing left would divide 0 by 0; ones take their place until the end.
        alive = xp.max(xp.where(self.possible, p, xp.zeros_like(p)), axis=1, keepdims=True) > 0
        log_b = self._iterated(xp.where(alive, p, xp.ones_like(p)), engine)
        return xp.where(alive, softmax(log_b), p)

    def _iterated(self, b: Array, engine: Engine) -> Array:
        """Logs of all rows after the last iteration."""
        before, *later = self.steps
        rows = scaling.Rows(masked_log(b), 0.0)
        rows = scaling.step_rows(rows, before.anchor.log_p, before.anchor, self.reference)
        for after in later:
            log_p = after.anchor.log_p
            if self.has_rows:
                log_p = self._share(rows.log_c, before, after, engine)
            rows = scaling.step_rows(rows, log_p, after.anchor, self.reference)
            before = after
        return rows.log_b

    def _share(
        self, log_c: Array, before: UnrolledStep, after: UnrolledStep, engine: Engine
    ) -> Array:
        """As :func:`altnorm.method.scaling.reference_share`, in two products of logs."""
        xp = array_namespace(log_c)
        masked = xp.where(self.supported, log_c, xp.zeros_like(log_c) - math.inf)
        sums = engine.log_product(masked, before.anchor.log_a, before.a, self.every)
        weight = after.anchor.log_r - self.reference.alpha * sums
        return engine.log_product(weight, after.anchor.log_a.T, after.a.T, self.supported)


class IteratedOdds(NamedTuple):
    """Log-odds iterated against references, one per column or one for all columns."""

    references: tuple[BinaryReference | None, ...]
    reach: float  # beyond it, of either sign, nothing is in doubt

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Adjusted log-odds, (n, m)."""
        within = np.clip(z, -self.reach, self.reach)
        if len(self.references) == 1:
            new = two_classes.adjust_logits(self.references[0], within.reshape(-1))
            return new.reshape(z.shape)
        columns = zip(self.references, within.T, strict=True)
        return np.stack([two_classes.adjust_logits(*column) for column in columns], axis=1)


class AlternatingOdds(NamedTuple):
    """Alternating normalization of two classes or of several labels: a row is one number, or m."""

    doubt: Doubt
    active: Array | None  # (m,) labels that have a reference; None for two classes
    function: two_classes.OneStep | two_classes.Curve | IteratedOdds  # of log-odds

    def __call__(self, p: Array, engine: Engine) -> Array:
        """As a `Stage`."""
        if self.active is None:
            return engine.adjust_doubtful(
                p, self.doubt, lambda rows: self._both_classes(engine.log(rows))
            )
        if isinstance(self.function, IteratedOdds):  # which would follow references block by block
            return self._labels(p, engine)
        return engine.map_blocks(lambda rows: self._labels(rows, engine), p)

    def _both_classes(self, log_p: Array) -> Array:
        z = self.function(log_p[:, :1] - log_p[:, 1:])
        return sigmoid(array_namespace(z).concat([z, -z], axis=1))

    def _labels(self, p: Array, engine: Engine) -> Array:
        in_doubt, rows = binary_ambiguity(p) > self.doubt.threshold, engine.wide(p)
        new = sigmoid(self.function(engine.log_odds(rows)))
        return array_namespace(p).where(in_doubt & self.active, new, rows)

    def unrolled(self) -> AlternatingOdds:
        """Return the same with a table."""
        if not isinstance(self.function, IteratedOdds):
            return self
        with quiet(np):
            table = two_classes.odds_function(self.function.references, self.doubt.threshold)
        return self._replace(function=table)


def alternating_rows(doubt: Doubt, problem: Problem) -> AlternatingRows | AlternatingOdds:
    """Work out what no row changes, if it is worth keeping."""
    if problem.depth == 1 and problem.q.all():
        sums = scaling.ColumnSums.of(functional.reference_log_sums(problem), problem.q, problem.p)
        return AlternatingRows(doubt, problem, sums)
    with quiet(np):
        reduced, _ = functional.reduce_problem(problem)
        if _is_odds(reduced) and _is_worth_a_table(reduced, reduced.reference.size):
            return _both_classes(doubt, reduced)
    return AlternatingRows(doubt, functional.follow_reference(problem), None)


def alternating_labels(
    doubt: Doubt, references: Sequence[BinaryReference | None], size: int
) -> AlternatingOdds:
    """The same for several labels, whose references have so many entries together."""
    active = np.array([reference is not None for reference in references])
    example = next((reference for reference in references if reference is not None), None)
    if example is not None and not _is_worth_a_table(example, size):
        reach = two_classes.largest_logit(doubt.threshold)
        return AlternatingOdds(doubt, active, IteratedOdds(tuple(references), reach))
    with quiet(np):
        table = two_classes.odds_function(references, doubt.threshold)
    return AlternatingOdds(doubt, active, table)


def _is_odds(problem: Problem) -> bool:
    """Whether more than one iteration of two classes is a function of their log-odds."""
    n, m = problem.reference.shape
    return m == 2 and n > 0 and problem.depth > 1 and bool(problem.q.all())


def _is_worth_a_table(problem: Problem | BinaryReference, size: int) -> bool:
    """Whether a table, which takes as long as a batch without, is small enough, and exact."""
    steep = (problem.depth - 1) * math.log(problem.alpha) > _LOG_STEEP
    return may_keep(problem.depth * size) and not steep


def _both_classes(doubt: Doubt, problem: Problem) -> AlternatingOdds:
    function = two_classes.odds_function([functional.binary_reference(problem)], doubt.threshold)
    return AlternatingOdds(doubt, None, function)
