r"""What a fitted model does to a row, written once for every array library.

A `Program` holds constants, which `read_program` takes from a fitted model; `probabilities` and
`decide` run it. They are written in the array API and look at no value to choose what to do next,
so that the same lines compute on NumPy arrays, record the gradients of PyTorch, and write the nodes
of an ONNX graph. The iterations themselves are those of :mod:`altnorm.method`, scores those of
:mod:`altnorm.families`, and decisions those of :mod:`altnorm.decisions`. What the standard lacks
comes as a `Backend`.

All is computed in double precision, whatever comes in: alpha^depth multiplies rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from altnorm._base.arrays import (
    Array,
    array_namespace,
    log_softmax,
    quiet,
    sigmoid,
    softmax,
    top_k,
)
from altnorm._base.errors import InputError
from altnorm.adjuster.mixture import MixtureParts
from altnorm.decisions.decision import Decision, decision_of, rate
from altnorm.estimator.base import chosen_model
from altnorm.estimator.kinds import FittedModel, LabelKind, kind_of
from altnorm.estimator.normalizer import AlternatingNormalizer, fitted_problem, odds_references
from altnorm.families import (
    BiasCorrectedTemperature,
    Identity,
    LabelThresholds,
    LabelwiseScaling,
    TemperatureScaling,
)
from altnorm.families.base import Peer
from altnorm.families.labelwise import Labelwise
from altnorm.families.matrix import ScoreScaling
from altnorm.families.scores import Scores
from altnorm.families.temperature import Tilt
from altnorm.method.ambiguity import binary_ambiguity, log_sizes, top_entropy
from altnorm.method.functional import Problem, reduce_problem
from altnorm.method.scaling import (
    Anchor,
    LogReference,
    Rows,
    reference_steps,
    smallest_safe,
    step_rows,
)
from altnorm.method.two_classes import Curve, OneStep, odds_function

TINY = smallest_safe(np.empty(0))  # a product below, in double precision, may have lost terms


class Backend(NamedTuple):
    """What a program needs of a library beyond the array API."""

    log_product: Callable[[Array, Array, Array, Array], Array]
    """As :func:`altnorm.method.scaling.log_product`."""

    replace_rows: Callable[[Array, Array, Callable[[Array], Array]], Array]
    """Return the rows, with a function applied where (t, 1) booleans say so, and only there."""


class Doubt(NamedTuple):
    """Which rows, or entries, alternating normalization adjusts."""

    threshold: float
    k_max: int
    log_k: Array  # (k_max - 1,)

    def rows(self, p: Array) -> Array:
        """Say which rows are in doubt, (t, 1)."""
        return top_entropy(top_k(p, self.k_max), 2, self.log_k) > self.threshold


class Kernel(NamedTuple):
    """One iteration of the reference on its own, for all that come after the first."""

    anchor: Anchor
    a: Array  # (n, m) exponentials of the anchor's `log_a`


class AlternatingRows(NamedTuple):
    """Alternating normalization of rows over several classes."""

    doubt: Doubt
    reference: LogReference  # prior and settings; its rows are in the kernels
    kernels: tuple[Kernel, ...]  # one per iteration
    supported: Array  # (m,) classes that some reference row has
    every: Array  # (n,) true
    possible: Array | None  # (m,) classes with a positive prior; None where all have one

    def __call__(self, p: Array, backend: Backend) -> Array:
        """Rows, with those in doubt adjusted; the others are the same bit for bit."""
        in_doubt = self.doubt.rows(p)
        if len(self.kernels) == 1:
            return array_namespace(p).where(in_doubt, self.adjusted(p, backend), p)
        return backend.replace_rows(p, in_doubt, lambda rows: self.adjusted(rows, backend))

    def adjusted(self, p: Array, backend: Backend) -> Array:
        """Every row adjusted; one with only classes of prior zero as it was."""
        if self.possible is None:
            return softmax(self.iterated(p, backend))
        xp = array_namespace(p)
        # Rows with nothing left would divide 0 by 0; ones take their place until the end.
        alive = xp.max(xp.where(self.possible, p, xp.zeros_like(p)), axis=1, keepdims=True) > 0
        log_b = self.iterated(xp.where(alive, p, xp.ones_like(p)), backend)
        return xp.where(alive, softmax(log_b), p)

    def iterated(self, b: Array, backend: Backend) -> Array:
        """Logs of all rows after the last iteration."""
        before, *rest = self.kernels
        rows = Rows(masked_log(b), 0.0)
        rows = step_rows(rows, before.anchor.log_p, before.anchor, self.reference)
        for kernel in rest:
            log_p = self.share(rows.log_c, before, kernel, backend)
            rows = step_rows(rows, log_p, kernel.anchor, self.reference)
            before = kernel
        return rows.log_b

    def share(self, log_c: Array, before: Kernel, after: Kernel, backend: Backend) -> Array:
        """As :func:`altnorm.method.scaling.reference_share`, in two products of logs."""
        xp = array_namespace(log_c)
        masked = xp.where(self.supported, log_c, xp.zeros_like(log_c) - math.inf)
        sums = backend.log_product(masked, before.anchor.log_a, before.a, self.every)
        weight = after.anchor.log_r - self.reference.alpha * sums
        return backend.log_product(weight, after.anchor.log_a.T, after.a.T, self.supported)


class AlternatingOdds(NamedTuple):
    """Alternating normalization of two classes or of several labels: a row is one number, or m."""

    doubt: Doubt
    active: Array | None  # (m,) labels that have a reference; None for two classes
    function: OneStep | Curve  # of log-odds

    def __call__(self, p: Array, backend: Backend) -> Array:
        """Probabilities, with those in doubt adjusted; the others are the same bit for bit."""
        xp = array_namespace(p)
        if self.active is None:
            log_p = masked_log(p)
            z = self.function(log_p[:, :1] - log_p[:, 1:])
            return xp.where(self.doubt.rows(p), sigmoid(xp.concat([z, -z], axis=1)), p)
        in_doubt = binary_ambiguity(p) > self.doubt.threshold
        return xp.where(in_doubt & self.active, sigmoid(self.function(log_odds(p))), p)


class Rule(NamedTuple):
    """From probabilities to decisions, as :class:`altnorm.decisions.decision.Decision` says."""

    kind: str
    values: Array | None  # None where the most probable class is decided
    leaves_rows: bool = False  # whether one more decision leaves the row to a person
    on_input: bool = False  # whether it looks at probabilities as they came
    least: Array | None = None  # of the most probable class, to decide at all; None: any

    def __call__(self, p: Array) -> Array:
        """Column of each row's class, or a 0/1 matrix."""
        xp = array_namespace(p)
        if self.kind == "thresholds":
            return xp.astype(p > self.values, xp.int64)
        if self.least is not None:
            # A person as one more class: taken where no other is as probable.
            p = xp.concat([p, 0 * p[:, :1] + self.least], axis=1)
        return xp.argmax(p if self.values is None else rate(self.kind, self.values, p), axis=1)


Linked = Tilt | Scores | Labelwise
"""Scores of logs, which a softmax or a logistic function turns into probabilities."""

Alternating = AlternatingRows | AlternatingOdds


class Mixed(NamedTuple):
    """A mixture, and what corrects rows inside it."""

    mixture: MixtureParts
    correction: Linked | Alternating | None


class Program(NamedTuple):
    """All that a fitted model does to a row."""

    input: str
    is_multilabel: bool
    is_direct: bool  # whether logits go to the scores as they are, not by way of probabilities
    stages: tuple[Linked | Alternating | Mixed, ...]  # of probabilities; none: nothing
    rule: Rule

    def decide(self, values: Array, p: Array) -> Array:
        """Decisions on rows of doubles, whose adjusted probabilities are `p`.

        These are as precise as what is returned, so that the two never contradict each other.
        """
        return self.rule(self.untouched(values) if self.rule.on_input else p)

    def untouched(self, values: Array) -> Array:
        """Probabilities as they came."""
        return self.linked(values) if self.input == "logits" else values

    def probabilities(self, values: Array, backend: Backend) -> Array:
        """Adjusted probabilities of rows of doubles."""
        if self.is_direct:
            peer: Any = self.stages[0]
            return self.linked(peer.scores(values if self.is_multilabel else log_softmax(values)))
        p = self.untouched(values)
        for stage in self.stages:
            p = self.step(p, stage, backend)
        return p

    def step(self, p: Array, stage: Linked | Alternating | Mixed, backend: Backend) -> Array:
        """Probabilities after one stage."""
        if isinstance(stage, Alternating):
            return stage(p, backend)
        if not isinstance(stage, Mixed):
            return self.linked(stage.scores(self.logs(p)))
        correct = None if stage.correction is None else self.step(p, stage.correction, backend)
        return stage.mixture(p, self.logs, correct)

    def logs(self, p: Array) -> Array:
        """Log-odds of labels, or log-probabilities of classes."""
        return log_odds(p) if self.is_multilabel else normalized_log(p)

    def linked(self, scores: Array) -> Array:
        """Probabilities that scores stand for."""
        return sigmoid(scores) if self.is_multilabel else softmax(scores)


def masked_log(p: Array) -> Array:
    """Logarithm; that of zero is minus infinity, with a gradient of zero."""
    xp = array_namespace(p)
    has = p > 0
    # Not log(0): its gradient would be infinite, and NaN after the mask.
    return xp.where(has, xp.log(xp.where(has, p, xp.ones_like(p))), xp.zeros_like(p) - math.inf)


def normalized_log(p: Array) -> Array:
    """Logarithms of rows divided by their sums."""
    xp = array_namespace(p)
    return masked_log(p) - xp.log(xp.sum(p, axis=1, keepdims=True))


def log_odds(p: Array) -> Array:
    """Log-odds of yes."""
    return masked_log(p) - masked_log(1 - p)


# Read off the attributes of a fitted model.


def read_program(fitted: FittedModel) -> Program:
    """Say what a fitted model does to a row, constants in double precision."""
    model, kind = chosen_model(fitted), kind_of(fitted)
    mixture = getattr(fitted, "mixture_", None)
    correction: Linked | Alternating | None = None
    with quiet(np):
        if mixture is None or mixture.needs_correction:
            correction = _read_model(model, kind)
    stage: Linked | Alternating | Mixed | None = correction
    if mixture is not None and not mixture.changes_nothing:
        stage = Mixed(mixture.parts(len(fitted.classes_)), correction)
    is_direct = fitted.input == "logits" and isinstance(fitted, Peer)
    rule = _read_rule(decision_of(fitted))
    stages = () if stage is None else (stage,)
    return Program(fitted.input, kind.is_multilabel, is_direct, stages, rule)


def _read_rule(decision: Decision) -> Rule:
    values = None if decision.is_argmax else _double(decision.values)
    least = _double(decision.least) if decision.least else None
    return Rule(decision.kind, values, decision.leaves_rows, decision.on_input, least)


def _read_model(model: object, kind: LabelKind) -> Linked | Alternating | None:
    """Return the constants of a fitted estimator; None if it changes nothing."""
    if hasattr(model, "classes_"):
        match model:
            case AlternatingNormalizer():
                return _read_alternating(model, kind)
            case Identity():
                return None
            case TemperatureScaling():
                return Tilt(1 / model.temperature_, np.zeros(len(model.classes_)))
            case BiasCorrectedTemperature():
                return Tilt(1 / float(model.temperature_), _double(model.bias_))
            case ScoreScaling() | LabelwiseScaling():
                return model.stage()
            case LabelThresholds():
                return Labelwise(1.0, -logit(_double(model.thresholds_)), math.inf)
    raise InputError(
        "The model must be a fitted Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, "
        "Identity, or a peer that fits a temperature, a matrix, curves or thresholds",
        f"it is {model!r}",
        "Fit one first.",
        value=model,
        code="not_supported",
    )


def _double(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def _read_alternating(normalizer: AlternatingNormalizer, kind: LabelKind) -> Alternating:
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
        steps = islice(reference_steps(problem.logs()), problem.depth)
        anchors = [step.anchor for step in steps]
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
