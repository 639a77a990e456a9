"""Read what a fitted model does to a row off its attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from altnorm._base.arrays import quiet
from altnorm._base.errors import InputError
from altnorm._base.normalizer import FittedNormalizer
from altnorm.deploy.program import (
    AlternatingOdds,
    AlternatingRows,
    Curve,
    Doubt,
    Kernel,
    Model,
    OneStep,
    Program,
    Rule,
)
from altnorm.families import (
    BiasCorrectedTemperature,
    Identity,
    LabelThresholds,
    LabelwiseScaling,
    MatrixScaling,
    TemperatureScaling,
)
from altnorm.families.labelwise import Labelwise
from altnorm.families.matrix import Affine
from altnorm.families.temperature import Tilt
from altnorm.method.ambiguity import binary_ambiguity, log_sizes
from altnorm.method.estimator import chosen_model
from altnorm.method.functional import Problem, binary_reference, reduce_problem
from altnorm.method.kinds import LabelKind, kind_of
from altnorm.method.normalizer import (
    AlternatingNormalizer,
    fitted_problem,
    label_references,
)
from altnorm.method.scaling import Anchor, LogReference, anchor_path
from altnorm.method.two_classes import (
    BinaryReference,
    adjust_logits,
    chebyshev_nodes,
    chebyshev_series,
)

_TOLERANCE = 2e-13  # of a tabulated function
_DEGREE = 13
_TO_POWERS = np.stack(  # of the argument, from Chebyshev polynomials
    [
        np.pad(chebyshev.cheb2poly(unit), (0, _DEGREE - k))
        for k, unit in enumerate(np.eye(_DEGREE + 1))
    ],
    axis=1,
)
_PIECES = 8  # at the start
_MAX_PIECES = 4096
_LARGEST_LOGIT = 745.0  # of the smallest positive double

Function = Callable[[np.ndarray], np.ndarray]


def read_program(fitted: FittedNormalizer) -> Program:
    """Say what a fitted model does to a row, constants in double precision.

    Of the peers it knows Identity, those that fit a temperature, a matrix or a line, and
    LabelThresholds.
    """
    model, kind = chosen_model(fitted), kind_of(fitted)
    temperature = float(getattr(fitted, "temperature_", 1.0)) if model is not fitted else 1.0
    cooling: Tilt | Labelwise | None = None
    if temperature != 1:
        cooling = Tilt(1 / temperature, np.zeros(len(fitted.classes_)))
        if kind.is_multilabel:
            cooling = Labelwise(*cooling, math.inf)
    with quiet(np):
        stage = _read_model(model, kind)
    return Program(
        fitted.input, kind.is_multilabel, model is fitted, stage, cooling, _read_rule(fitted, kind)
    )


def _read_rule(fitted: FittedNormalizer, kind: LabelKind) -> Rule:
    decision = getattr(fitted, "decision_", None)
    if decision is not None:
        values = None if decision.is_argmax else np.asarray(decision.values, dtype=np.float64)
        return Rule(decision.kind, values, decision.leaves_rows)
    if kind.is_multilabel:
        return Rule("thresholds", np.full(len(fitted.classes_), 0.5))
    return Rule("weights", None)


def _read_model(model: object, kind: LabelKind) -> Model:
    """Return the constants of a fitted estimator; None if it changes nothing."""
    try:
        check_is_fitted(model, "classes_")
    except (NotFittedError, TypeError):
        raise _not_supported(model) from None
    if isinstance(model, AlternatingNormalizer):
        return _read_alternating(model, kind)
    if isinstance(model, Identity):
        return None
    if isinstance(model, TemperatureScaling):
        return Tilt(1 / model.temperature_, np.zeros(len(model.classes_)))
    if isinstance(model, BiasCorrectedTemperature):
        return Tilt(1 / float(model.temperature_), _double(model.bias_))
    if isinstance(model, MatrixScaling):
        return Affine(_double(model.matrix_), _double(model.bias_), float(model.floor_))
    if isinstance(model, LabelwiseScaling):
        return Labelwise(_double(model.slope_), _double(model.bias_), float(model.limit_))
    if isinstance(model, LabelThresholds):
        return Labelwise(1.0, -logit(_double(model.thresholds_)), math.inf)
    raise _not_supported(model)


def _not_supported(model: object) -> InputError:
    return InputError(
        "The model must be a fitted Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, "
        "Identity, or a peer that fits a temperature, a matrix or thresholds",
        f"it is {model!r}",
        "Fit one first.",
        value=model,
        code="not_supported",
    )


def _double(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def _read_alternating(
    normalizer: AlternatingNormalizer, kind: LabelKind
) -> AlternatingRows | AlternatingOdds:
    k_max = 2 if kind.is_multilabel else min(normalizer.k_max, len(normalizer.classes_))
    doubt = Doubt(float(normalizer.threshold), k_max, log_sizes(2, k_max))
    if kind.is_multilabel:
        references = list(label_references(normalizer))
        active = np.array([one is not None for one in references])
        return AlternatingOdds(doubt, active, _odds_function(references, doubt.threshold))
    reference = normalizer.reference_.astype(np.float64)
    whole = fitted_problem(normalizer, reference[:0], reference)
    reduced, kept = reduce_problem(whole)
    if whole.depth > 1 and whole.q.size == 2 and kept is None:
        met: list[BinaryReference | None] = [binary_reference(reduced)]
        return AlternatingOdds(doubt, None, _odds_function(met, doubt.threshold))
    classes = None if kept is None else np.flatnonzero(kept.classes)
    return _read_rows(reduced, doubt, classes, whole.q.size)


def _read_rows(
    problem: Problem, doubt: Doubt, kept: np.ndarray | None, n_classes: int
) -> AlternatingRows:
    """Follow the reference on its own; without any row a single iteration says it all."""
    n, log_q = problem.reference.shape[0], np.log(problem.q)
    if n:
        path = anchor_path(problem.logs())
        anchors = [stage.anchor for stage in islice(path.stages, problem.depth)]
        top: Any = 0 if path.top is None else path.top
    else:
        zero, empty = np.zeros_like(log_q), np.zeros((0, log_q.size))
        anchors, top = [Anchor(empty, zero, zero[:0], None, zero - np.inf)], 0
    return AlternatingRows(
        doubt,
        LogReference(None, None, log_q, float(problem.alpha), problem.log_mass),
        top,
        tuple(Kernel(a._replace(shares=None), np.exp(a.log_a)) for a in anchors),
        supported=anchors[0].log_p > -np.inf,
        every=np.ones(n, dtype=bool),
        kept=kept,
        spread=None if kept is None else np.eye(n_classes)[kept],
    )


def _odds_function(references: list[BinaryReference | None], threshold: float) -> Any:
    """Return the functions of log-odds: closed for one iteration, else tabulated."""
    some = next((one for one in references if one is not None), None)
    if some is None or some.depth == 1:
        each = [_sums_and_prior(one) for one in references]
        log_s, log_q = (
            tuple(np.array([pair[k][i] for pair in each]) for i in (0, 1)) for k in (0, 1)
        )
        return OneStep(log_s, log_q, 1.0 if some is None else float(some.alpha))
    # Rounding leaves no more of the function than this.
    tolerance = _TOLERANCE * max(1.0, some.alpha ** (some.depth - 1))
    functions = [_adjustment(one) for one in references]
    return _tabulate(functions, _largest_logit(threshold), tolerance)


def _sums_and_prior(reference: BinaryReference | None) -> tuple[list[float], list[float]]:
    """Log column sums of yes and no, and the log prior; any number where nothing is adjusted."""
    if reference is None:
        return [0.0, 0.0], [0.0, 0.0]
    first = next(iter(reference.follow()))
    return [float(s[0]) for s in first.sums], list(reference.log_q)


def _adjustment(reference: BinaryReference | None) -> Callable[[np.ndarray], np.ndarray]:
    return np.copy if reference is None else lambda z: adjust_logits(z, reference)


# With two classes, or for one of several labels, the whole of alternating normalization, whatever
# its depth and however large the reference, is a function from one number to another. It is
# tabulated to rounding accuracy.


def _largest_logit(threshold: float) -> float:
    """Log-odds at which the entropy of two probabilities, in bits, falls to `threshold`."""
    if threshold >= 1:
        return 1e-3  # nothing is in doubt

    def excess(z: float) -> float:
        return float(binary_ambiguity(expit(np.array(-z)))) - threshold

    if excess(_LARGEST_LOGIT) >= 0:
        return _LARGEST_LOGIT
    return min(_LARGEST_LOGIT, 1e-3 + brentq(excess, 0.0, _LARGEST_LOGIT))


def _tabulate(functions: Sequence[Function], reach: float, tolerance: float) -> Curve:
    """Tabulate functions on [-reach, reach]; an error is relative where values exceed 1."""
    pieces = [_pieces(function, reach, tolerance) for function in functions]
    count = np.array([len(center) for center, _, _ in pieces])
    last = np.cumsum(count) - 1
    center, half, coefficients = (
        np.concatenate(part, axis=-1) for part in zip(*pieces, strict=True)
    )
    first = last + 1 - count
    n_halvings = int(np.max(last - first)).bit_length()
    where = reach, n_halvings, first, last, center - half
    return Curve(*where, center, 1 / half, tuple(coefficients))


def _pieces(
    function: Function, reach: float, tolerance: float
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
    function: Function, center: np.ndarray, half: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate on each piece; say where the result holds between the nodes, too."""
    nodes = chebyshev_nodes(_DEGREE)
    between = 0.5 * (nodes[1:] + nodes[:-1])
    points = center + half * np.concatenate([nodes, between])[:, None]
    values = function(points.reshape(-1)).reshape(points.shape)
    series = chebyshev_series(values[: nodes.size])
    coefficients = _TO_POWERS @ series
    found = np.vander(between, _DEGREE + 1, increasing=True) @ coefficients
    truth = values[nodes.size :]
    error = np.abs(found - truth) / np.maximum(1.0, np.abs(truth))
    return coefficients, (error <= tolerance).all(axis=0)
