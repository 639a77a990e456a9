"""Read what a fitted model does to a row off its attributes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from altnorm._base.arrays import quiet
from altnorm._base.errors import InputError
from altnorm.deploy.curves import largest_logit, tabulate
from altnorm.deploy.program import (
    AlternatingOdds,
    AlternatingRows,
    Doubt,
    Kernel,
    LabelScores,
    LinearScores,
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
from altnorm.method.ambiguity import log_sizes
from altnorm.method.functional import Problem, binary_reference, reduce_problem
from altnorm.method.kinds import LabelKind, kind_of
from altnorm.method.normalizer import AlternatingNormalizer, fitted_problem
from altnorm.method.scaling import Anchor, LogReference, anchor_path
from altnorm.method.two_classes import BinaryReference, adjust_logits, label_references

_TOLERANCE = 2e-13  # of a tabulated function


def read_program(fitted: Any) -> Program:
    """Say what a fitted model does to a row.

    Parameters
    ----------
    fitted : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or a peer
        Of the peers Identity, those that fit a temperature, a matrix or a line, and
        LabelThresholds.

    Returns
    -------
    Program
        Constants in double precision.
    """
    model, kind = chosen_model(fitted), kind_of(fitted)
    temperature = float(getattr(fitted, "temperature_", 1.0)) if model is not fitted else 1.0
    cooling = None
    if temperature != 1:
        cooling = _cooling(1 / temperature, len(fitted.classes_), kind)
    with quiet(np):
        stage = _read_model(model, kind)
    return Program(
        fitted.input, kind.is_multilabel, model is fitted, stage, cooling, _read_rule(fitted, kind)
    )


def chosen_model(fitted: Any) -> Any:
    """Return the estimator that adjusts: what a search chose, or the model itself."""
    return getattr(fitted, "model_", getattr(fitted, "best_normalizer_", fitted))


def _cooling(slope: float, n_classes: int, kind: LabelKind) -> LinearScores | LabelScores:
    if kind.is_multilabel:
        return LabelScores(slope, 0.0, None)
    return LinearScores(slope, np.zeros(n_classes), None, is_matrix=False)


def _read_rule(fitted: Any, kind: LabelKind) -> Rule:
    decision = getattr(fitted, "decision_", None)
    if decision is not None:
        values = None if decision.is_argmax else np.asarray(decision.values, dtype=np.float64)
        return Rule(decision.kind, values, decision.leaves_rows)
    if kind.is_multilabel:
        return Rule("thresholds", np.full(len(fitted.classes_), 0.5))
    return Rule("weights", None)


def _read_model(model: Any, kind: LabelKind) -> Any:
    """Return the constants of a fitted estimator; None if it changes nothing."""
    try:
        check_is_fitted(model, "classes_")
        for known, read in _READERS.items():
            if isinstance(model, known):
                return read(model, kind)
    except (NotFittedError, TypeError):
        pass
    raise InputError(
        "The model must be a fitted Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, "
        "Identity, or a peer that fits a temperature, a matrix or thresholds",
        f"it is {model!r}",
        "Fit one first.",
        value=model,
        code="not_supported",
    )


def _read_slope(peer: Any, kind: LabelKind) -> LinearScores:
    bias = getattr(peer, "bias_", np.zeros(len(peer.classes_)))
    slope = 1 / float(peer.temperature_)
    return LinearScores(slope, np.asarray(bias, dtype=np.float64), None, is_matrix=False)


def _read_matrix(peer: Any, kind: LabelKind) -> LinearScores:
    weight, bias = (np.asarray(x, dtype=np.float64) for x in (peer.matrix_.T, peer.bias_))
    return LinearScores(np.ascontiguousarray(weight), bias, float(peer.floor_), is_matrix=True)


def _read_labels(peer: Any, kind: LabelKind) -> LabelScores:
    slope, bias = (np.asarray(x, dtype=np.float64) for x in (peer.slope_, peer.bias_))
    return LabelScores(slope, bias, float(peer.limit_))


def _read_thresholds(peer: Any, kind: LabelKind) -> LabelScores:
    return LabelScores(1.0, -logit(np.asarray(peer.thresholds_, dtype=np.float64)), None)


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
    return tabulate(functions, largest_logit(threshold), tolerance)


def _sums_and_prior(reference: BinaryReference | None) -> tuple[list[float], list[float]]:
    """Log column sums of yes and no, and the log prior; any number where nothing is adjusted."""
    if reference is None:
        return [0.0, 0.0], [0.0, 0.0]
    first = next(iter(reference.follow()))
    return [float(s[0]) for s in first.sums], list(reference.log_q)


def _adjustment(reference: BinaryReference | None) -> Callable[[np.ndarray], np.ndarray]:
    return np.copy if reference is None else lambda z: adjust_logits(z, reference)


_READERS: dict[Any, Callable[[Any, LabelKind], Any]] = {
    AlternatingNormalizer: _read_alternating,
    Identity: lambda peer, kind: None,
    (TemperatureScaling, BiasCorrectedTemperature): _read_slope,
    MatrixScaling: _read_matrix,
    LabelThresholds: _read_thresholds,
    LabelwiseScaling: _read_labels,
}
