"""Read what a fitted model does to a row off its attributes."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from altnorm._base.arrays import quiet
from altnorm._base.errors import InputError
from altnorm.deploy.program import (
    AlternatingOdds,
    AlternatingRows,
    Doubt,
    Kernel,
    Model,
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
from altnorm.method.ambiguity import log_sizes
from altnorm.method.estimator import chosen_model
from altnorm.method.functional import Problem, reduce_problem
from altnorm.method.kinds import FittedNormalizer, LabelKind, kind_of
from altnorm.method.normalizer import (
    AlternatingNormalizer,
    fitted_problem,
    odds_references,
)
from altnorm.method.scaling import Anchor, LogReference, anchor_path
from altnorm.method.two_classes import odds_function


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
    references = list(odds_references(normalizer))
    if kind.is_multilabel:
        active = np.array([one is not None for one in references])
        return AlternatingOdds(doubt, active, odds_function(references, doubt.threshold))
    if normalizer.depth > 1 and references[0] is not None:
        return AlternatingOdds(doubt, None, odds_function(references, doubt.threshold))
    reference = normalizer.reference_.astype(np.float64)
    problem, _ = reduce_problem(fitted_problem(normalizer, reference[:0], reference))
    return _read_rows(problem, doubt)


def _read_rows(problem: Problem, doubt: Doubt) -> AlternatingRows:
    """Follow the reference on its own; without any row a single iteration says it all."""
    n, log_q = problem.reference.shape[0], np.log(problem.q)
    if n:
        path = islice(anchor_path(problem.logs()), problem.depth)
        anchors = [stage.anchor for stage in path]
    else:
        zero, empty = np.zeros_like(log_q), np.zeros((0, log_q.size))
        anchors = [Anchor(empty, zero, zero[:0], None, zero - np.inf)]
    return AlternatingRows(
        doubt,
        LogReference(None, None, log_q, float(problem.alpha), problem.log_mass),
        tuple(Kernel(a._replace(shares=None), np.exp(a.log_a)) for a in anchors),
        supported=anchors[0].log_p > -np.inf,
        every=np.ones(n, dtype=bool),
        possible=None if problem.q.all() else problem.q > 0,
    )
