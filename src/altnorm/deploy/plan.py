r"""What alternating normalization needs at run time, worked out once and free of rows.

A runtime without altnorm (an ONNX graph, a PyTorch module) gets constants instead of an algorithm.
There are two kinds:

`RowPlan`, for rows over several classes. One iteration only needs the reference's column sums;
more of them need the anchors of :mod:`altnorm.method.scaling`, which do not depend on the row.

`BinaryPlan`, for two classes and for every label of a multi-label problem. There a row is one
logit, so the whole adjustment, whatever its depth and however large the reference, is one function
of one number: closed at depth 1, and else tabulated as a `Curve`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.optimize import brentq
from scipy.special import logit

from altnorm._base.arrays import quiet
from altnorm.method import functional as _functional
from altnorm.method.normalizer import AlternatingNormalizer
from altnorm.method.problem import Problem, problem
from altnorm.method.scaling import Anchor, LogReference, log_sums, next_anchor
from altnorm.method.several_labels import label_slices
from altnorm.method.two_classes import (
    chebyshev_nodes,
    chebyshev_series,
    iterate_logits,
    log_sigmoids,
)

_DEGREE = 13
_PIECES = 8  # at the start
_MAX_PIECES = 4096
_TOLERANCE = 2e-13
_LARGEST_LOGIT = 745.0  # of the smallest positive double


class PlanSettings(NamedTuple):
    """The settings of a normalizer that its plan depends on."""

    alpha: float
    depth: int
    threshold: float
    smoothing: float


class RowPlan(NamedTuple):
    """Constants that adjust rows over several classes, in double precision."""

    n_classes: int
    kept: np.ndarray | None  # (k,) classes with a positive prior; None where all have one
    log_q: np.ndarray  # (k,)
    alpha: float
    log_mass: float | None  # log of the smoothing's total weight
    log_s: np.ndarray  # (k,) log column sums of reference and smoothing
    repeats: int  # iterations that need nothing but `log_s`
    anchors: list[Anchor]  # one per iteration; empty if `log_s` suffices


class Curve(NamedTuple):
    """Functions of one number as polynomials on pieces, those of function j after those of j - 1.

    On a piece, the polynomial's argument is ``(z - center) * slope``, between -1 and 1.
    """

    first: np.ndarray  # (f,) index of each function's first piece
    last: np.ndarray  # (f,) and of its last
    left: np.ndarray  # (pieces,) where the piece begins
    center: np.ndarray  # (pieces,)
    slope: np.ndarray  # (pieces,)
    coefficients: np.ndarray  # (degree + 1, pieces), constant term first


class BinaryPlan(NamedTuple):
    """Constants that adjust yes/no probabilities: one function per label, or one for all."""

    active: np.ndarray  # (f,) whether the label is adjusted at all
    alpha: float
    log_q: np.ndarray  # (2, f) log prior of yes and of no
    log_s: np.ndarray  # (2, f) log column sums, for depth 1
    curve: Curve | None  # logit to adjusted logit, for more depth
    reach: float  # the curve covers logits from -reach to reach


class BinaryPart(NamedTuple):
    """One two-class problem: logits and weights of the reference, prior of yes."""

    logit: np.ndarray
    weight: np.ndarray | None
    prior: float

    @property
    def active(self) -> bool:
        """Whether there is anything to resolve a doubt with."""
        return 0 < self.prior < 1 and self.logit.size > 0


def plan_of(normalizer: AlternatingNormalizer) -> RowPlan | BinaryPlan:
    """Return the plan of a fitted normalizer."""
    return make_plan(
        normalizer.reference_,
        normalizer.reference_weight_,
        getattr(normalizer, "offsets_", None),
        normalizer.prior_,
        PlanSettings(**{name: getattr(normalizer, name) for name in PlanSettings._fields}),
    )


def make_plan(
    reference: np.ndarray,
    weight: np.ndarray | None,
    offsets: np.ndarray | None,
    prior: Any,
    settings: PlanSettings,
) -> RowPlan | BinaryPlan:
    """Work out what any row needs, in double precision.

    Parameters
    ----------
    reference : ndarray of shape (n, m), or (n,) for multi-label problems
        Reference rows; probabilities of yes, those of label j at ``offsets[j]:offsets[j + 1]``.
    weight : ndarray of shape (n,) or None
        Their weights.
    offsets : ndarray of shape (f + 1,) or None
        Where each label's reference begins; for multi-label problems only.
    prior : array or None
        As `prior_` of a fitted :class:`~altnorm.AlternatingNormalizer`; None is uniform.
    settings : PlanSettings
        Everything else. Only rows in doubt need to be covered.

    Returns
    -------
    RowPlan or BinaryPlan
        The latter for multi-label problems, and for two classes at a depth above 1.
    """
    reference = reference.astype(np.float64)
    weight = None if weight is None else weight.astype(np.float64)
    with quiet(np):
        if offsets is not None:  # several labels
            parts = [
                _two_classes(logit(reference[at]), weight, at, float(prior[label]))
                for label, at in label_slices(offsets)
            ]
            return _plan_binary(parts, settings)
        problem = _problem(reference, weight, prior, settings)
        if settings.depth > 1 and reference.shape[1] == 2 and (problem.q > 0).all():
            z = np.log(reference[:, 0]) - np.log(reference[:, 1])
            part = _two_classes(z, weight, slice(None), float(problem.q[0]))
            return _plan_binary([part], settings)
        return _plan_rows(problem)


def _problem(
    reference: np.ndarray, weight: np.ndarray | None, prior: Any, settings: PlanSettings
) -> Problem:
    return problem(
        reference[:0],
        reference,
        prior=prior,
        alpha=settings.alpha,
        depth=settings.depth,
        reference_weight=weight,
        smoothing=settings.smoothing,
    )


def _plan_rows(problem: Problem) -> RowPlan:
    n_classes = problem.q.size
    kept, problem = _positive_prior(problem)
    alone = problem.depth == 1 or not problem.reference.shape[0]
    return RowPlan(
        n_classes,
        kept,
        np.log(problem.q),
        problem.alpha,
        problem.log_mass,
        _functional.reference_log_sums(problem),
        repeats=problem.depth if alone else 0,
        anchors=[] if alone else list(_anchors(problem)),
    )


def _positive_prior(problem: Problem) -> tuple[np.ndarray | None, Problem]:
    """Leave out classes with prior zero and reference rows that then have none or do not count."""
    classes = np.flatnonzero(problem.q > 0)
    kept = None if classes.size == problem.q.size else classes
    reference = problem.reference[:, classes]
    counts = reference.any(axis=1)
    weight = problem.weight
    if weight is not None:
        counts &= weight > 0
        weight = weight[counts]
    return kept, problem._replace(
        p=problem.p[:, classes], reference=reference[counts], weight=weight, q=problem.q[classes]
    )


def _anchors(problem: Problem) -> Iterator[Anchor]:
    """Yield the reference after each iteration on its own."""
    reference = problem.logs()
    for _ in range(problem.depth):
        anchor = next_anchor(reference)
        reference = reference._replace(log_a=anchor.log_a)
        yield anchor


def _two_classes(z: np.ndarray, weight: np.ndarray | None, at: slice, prior: float) -> BinaryPart:
    """One two-class problem, without reference entries that do not count."""
    if weight is None:
        return BinaryPart(z, None, prior)
    counts = weight[at] > 0
    return BinaryPart(z[counts], weight[at][counts], prior)


def _plan_binary(parts: list[BinaryPart], settings: PlanSettings) -> BinaryPlan:
    alpha, depth, smoothing = float(settings.alpha), settings.depth, settings.smoothing
    reach = largest_logit(settings.threshold)
    prior = np.array([part.prior if part.active else 0.5 for part in parts])
    log_q = np.stack([np.log(prior), np.log1p(-prior)])
    log_s = np.stack([_log_sums(part, alpha, smoothing) for part in parts], axis=1)
    curve = None
    if depth > 1:
        functions = [_adjustment(part, alpha, depth, smoothing) for part in parts]
        tolerance = _TOLERANCE * max(1.0, alpha ** (depth - 1))  # rounding leaves no more
        curve = _curve(functions, reach, tolerance)
    return BinaryPlan(np.array([p.active for p in parts]), alpha, log_q, log_s, curve, reach)


def largest_logit(threshold: float) -> float:
    """Log-odds at which the entropy of two probabilities, in bits, falls to `threshold`."""
    if threshold >= 1:
        return 1e-3  # nothing is in doubt

    def excess(z: float) -> float:
        first, second = log_sigmoids(np.array(-z))
        return float(-(np.exp(first) * first + np.exp(second) * second) / math.log(2) - threshold)

    if excess(_LARGEST_LOGIT) >= 0:
        return _LARGEST_LOGIT
    return min(_LARGEST_LOGIT, 1e-3 + brentq(excess, 0.0, _LARGEST_LOGIT))


def _log_mass(part: BinaryPart, smoothing: float) -> float | None:
    total = part.logit.size if part.weight is None else float(part.weight.sum())
    return math.log(smoothing * total) if smoothing else None


def _log_sums(part: BinaryPart, alpha: float, smoothing: float) -> np.ndarray:
    """Log column sums of yes and no, smoothing included."""
    if not part.active:
        return np.zeros(2)
    log_a = np.stack(log_sigmoids(part.logit), axis=1)
    log_w = None if part.weight is None else np.log(part.weight)
    log_q = np.log([part.prior, 1 - part.prior])
    log_mass = _log_mass(part, smoothing)
    return np.asarray(log_sums(LogReference(log_a, log_w, log_q, alpha, log_mass)))


def _adjustment(
    part: BinaryPart, alpha: float, depth: int, smoothing: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from the logit of a row in doubt to its adjusted logit."""
    if not part.active:
        return np.copy

    def adjusted(z: np.ndarray) -> np.ndarray:
        *_, last = iterate_logits(
            z,
            part.logit,
            part.weight,
            (math.log(part.prior), math.log1p(-part.prior)),
            alpha=alpha,
            depth=depth,
            log_mass=_log_mass(part, smoothing),
        )
        return last

    return adjusted


def _curve(
    functions: list[Callable[[np.ndarray], np.ndarray]], reach: float, tolerance: float
) -> Curve:
    """Tabulate functions on [-reach, reach]."""
    pieces = [_pieces(function, reach, tolerance) for function in functions]
    count = np.array([len(center) for center, _, _ in pieces])
    end = np.cumsum(count)
    center, half, coefficients = (
        np.concatenate(part, axis=-1) for part in zip(*pieces, strict=True)
    )
    return Curve(end - count, end - 1, center - half, center, 1 / half, coefficients)


def _pieces(
    function: Callable[[np.ndarray], np.ndarray], reach: float, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Polynomials on pieces, each cut in four until it is as exact as the function itself.

    The function costs about the same at ten points and at ten thousand, so all pieces of one
    size are tried at once.
    """
    half = np.full(_PIECES, reach / _PIECES)
    center = reach * (2 * np.arange(_PIECES) + 1 - _PIECES) / _PIECES
    done: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    n_pieces = 0
    while center.size:
        coefficients, good = _fit_pieces(function, center, half, tolerance)
        too_many = n_pieces + 4 * center.size > _MAX_PIECES
        good |= too_many | (half < 1e-12 * np.maximum(1.0, np.abs(center)))
        done.append((center[good], half[good], coefficients[:, good]))
        n_pieces += int(good.sum())
        quarter = half[~good] / 4
        center = (center[~good] + quarter * np.array([[-3.0], [-1.0], [1.0], [3.0]])).reshape(-1)
        half = np.tile(quarter, 4)
    centers, halves, coefficients = (
        np.concatenate(part, axis=-1) for part in zip(*done, strict=True)
    )
    order = np.argsort(centers)
    return centers[order], halves[order], coefficients[:, order]


def _fit_pieces(
    function: Callable[[np.ndarray], np.ndarray],
    center: np.ndarray,
    half: np.ndarray,
    tolerance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate on each piece; say where the result holds between the nodes, too."""
    nodes = chebyshev_nodes(_DEGREE)
    between = 0.5 * (nodes[1:] + nodes[:-1])
    points = center + half * np.concatenate([nodes, between])[:, None]
    values = function(points.reshape(-1)).reshape(points.shape)
    series = chebyshev_series(values[: nodes.size])
    to_powers = np.stack([_powers(k) for k in range(_DEGREE + 1)], axis=1)
    coefficients = to_powers @ series
    found = np.vander(between, _DEGREE + 1, increasing=True) @ coefficients
    truth = values[nodes.size :]
    error = np.abs(found - truth) / np.maximum(1.0, np.abs(truth))
    return coefficients, (error <= tolerance).all(axis=0)


def _powers(k: int) -> np.ndarray:
    """Chebyshev polynomial k in powers of its argument."""
    unit = np.zeros(_DEGREE + 1)
    unit[k] = 1.0
    powers = np.zeros(_DEGREE + 1)
    powers[: k + 1] = chebyshev.cheb2poly(unit)[: k + 1]
    return powers
