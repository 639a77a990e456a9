"""A problem of alternating normalization: checked inputs, and which of them take part."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from altnorm._base.arrays import Array, array_namespace, scatter
from altnorm._base.errors import InputWarning, warn
from altnorm._base.validation import (
    check_amplification,
    check_integer,
    check_positive,
    check_prior,
    check_same_classes,
    check_weight,
)
from altnorm.method import scaling as _scaling


class Problem(NamedTuple):
    """Clean inputs, reduced to the classes with a positive prior."""

    p: Array  # (t, m) rows to adjust
    reference: Array  # (n, m)
    weight: Array | None  # (n,)
    q: Array  # (m,)
    log_mass: float | None
    alpha: float
    depth: int
    whole: bool = True  # no class was left out, so rows sum to 1
    path: Any = None  # the reference's own iterations, where `follow_reference` has kept them

    def logs(self) -> _scaling.LogReference:
        """Reference and prior as the kernels take them."""
        xp = array_namespace(self.p)
        log_w = None if self.weight is None else xp.log(self.weight)
        log_a, log_q = xp.log(self.reference), xp.log(self.q)
        return _scaling.LogReference(log_a, log_w, log_q, self.alpha, self.log_mass)


def problem(
    p: Array,
    reference: Array,
    *,
    prior: Any,
    alpha: float,
    depth: int,
    reference_weight: Any,
    smoothing: float,
) -> Problem:
    """Check everything but the rows themselves."""
    check_same_classes(p, reference)
    weight = check_weight(reference_weight, reference)
    smoothing = check_positive(smoothing, "smoothing", zero=True)
    alpha, depth = check_positive(alpha, "alpha"), check_integer(depth, "depth", low=1)
    check_amplification(alpha, depth, float(array_namespace(p).finfo(p.dtype).max))
    total = reference.shape[0]
    if weight is not None:
        total = float(array_namespace(weight).sum(weight))
    return Problem(
        p,
        reference,
        weight,
        check_prior(prior, p),
        math.log(smoothing * total) if smoothing else None,
        alpha,
        depth,
    )


class Kept(NamedTuple):
    """Which rows and classes take part; None where all do."""

    rows: Array
    classes: Array


def reduce_problem(problem: Problem) -> tuple[Problem, Kept | None]:
    """Leave out classes with prior zero, and rows and reference rows that have no other class.

    Nothing changes for the rest: a class with prior zero is zero after the first iteration and
    touches no other class's column.
    """
    p, reference, weight, q = problem.p, problem.reference, problem.weight, problem.q
    xp = array_namespace(p)
    kept = None
    if not bool(xp.all(q > 0)):
        classes = xp.nonzero(q > 0)[0]
        p, reference = xp.take(p, classes, axis=1), xp.take(reference, classes, axis=1)
        kept = Kept(rows=xp.any(p > 0, axis=1), classes=q > 0)
        rows = xp.nonzero(kept.rows)[0]
        _warn_left(p.shape[0] - rows.shape[0], p.shape[0])
        p, q = xp.take(p, rows, axis=0), xp.take(q, classes)
    if weight is None and kept is None:  # reference rows sum to 1, so each has some class
        return problem, None
    counts = weight > 0 if weight is not None else True
    if kept is not None:
        counts = counts & xp.any(reference > 0, axis=1)
    if not bool(xp.all(counts)):
        used = xp.nonzero(counts)[0]
        reference = xp.take(reference, used, axis=0)
        weight = None if weight is None else xp.take(weight, used)
    reduced = problem._replace(
        p=p, reference=reference, weight=weight, q=q, whole=problem.whole and kept is None
    )
    return reduced, kept


def _warn_left(n_left: int, n_rows: int) -> None:
    if n_left:
        message = (
            f"{n_left} of {n_rows} rows have only classes with prior zero; they were left as they "
            "were. Give these classes a positive prior if they can occur."
        )
        warn(InputWarning(message, "prior_zero"))


def restore(proba: Array, kept: Kept | None, adjusted: Array) -> Array:
    """Put adjusted rows back among the rows and classes that took no part."""
    if kept is None:
        return adjusted
    xp = array_namespace(proba)
    rows = kept.rows[:, None]
    empty = xp.where(rows, xp.zeros_like(proba), proba)
    return scatter(empty, rows & kept.classes[None, :], xp.reshape(adjusted, (-1,)))
