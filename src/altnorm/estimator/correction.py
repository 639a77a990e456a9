r"""What a fitted model does to a row, written once for every array library and engine.

A `Correction` holds constants, made from the attributes of a fitted model: a stage, which turns
probabilities into better ones, and the rule that decides. Each kind of model gives its own stage.
Estimators run it eagerly, PyTorch records its gradients, and ONNX writes its nodes; what the array
API lacks comes as an `Engine`. All is in double precision: alpha^depth multiplies rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from altnorm._base import arrays
from altnorm._base.arrays import Array, array_namespace
from altnorm.method.ambiguity import in_doubt, log_sizes, top_entropy
from altnorm.method.scaling import log_product

_FEW_ROWS = 64  # a request: a first look that spares sure rows the rest would not pay


class Doubt(NamedTuple):
    """Which rows, or entries, alternating normalization adjusts."""

    threshold: float
    k_max: int
    log_k: Array  # (k_max - 1,)

    @classmethod
    def of(cls, threshold: float, k_max: int) -> Doubt:
        """Rows whose ambiguity, over up to `k_max` classes, is above a threshold."""
        return cls(float(threshold), k_max, log_sizes(2, k_max))

    def rows(self, p: Array) -> Array:
        """Say which rows are in doubt, (t, 1), without looking at a value."""
        return top_entropy(arrays.top_k(p, self.k_max), 2, self.log_k) > self.threshold

    def mask(self, p: Array) -> np.ndarray:
        """Say the same of rows of any precision, (t,) in host memory."""
        if type(p) is np.ndarray and p.shape[0] <= _FEW_ROWS:
            return self._replace(log_k=self.log_k.astype(p.dtype, copy=False)).rows(p)[:, 0]
        return in_doubt(p, self.threshold, k_max=self.k_max)


class Engine(NamedTuple):
    """What runs a correction, where the array API does not say how."""

    wide: Callable[[Array], Array]  # rows in double precision
    log: Callable[[Array], Array]  # of rows that may not sum to 1 exactly
    log_odds: Callable[[Array], Array]
    map_blocks: Callable[..., Array]  # a function of rows of some arrays, in blocks if it likes
    adjust_doubtful: Callable[[Array, Doubt, Callable[[Array], Array]], Array]  # only rows in doubt
    log_product: Callable[[Array, Array, Array, Array], Array]  # as in altnorm.method.scaling


class Stage(Protocol):
    """Constants, and what they make of rows."""

    def __call__(self, p: Array, engine: Engine) -> Array:
        """Return new probabilities of rows of probabilities."""

    def unrolled(self) -> Any:
        """Return the same for an engine that looks at no value to choose what to do next."""


class Untouched(NamedTuple):
    """Rows as they came."""

    def __call__(self, p: Array, engine: Engine) -> Array:
        """As a `Stage`."""
        return p

    def unrolled(self) -> Untouched:
        """Return it as it is."""
        return self


class Scored(NamedTuple):
    """Scores of log-probabilities or, of several labels, of log-odds; and back to probabilities."""

    fitted: Any  # constants with a method `scores`
    is_multilabel: bool

    def __call__(self, p: Array, engine: Engine) -> Array:
        """As a `Stage`."""
        logs = engine.log_odds if self.is_multilabel else engine.log
        return engine.map_blocks(lambda rows: self._proba(logs(engine.wide(rows))), p)

    def from_logits(self, values: Array, engine: Engine) -> Array:
        """Return the same without a way through probabilities, which would round to 0 and 1."""

        def proba(rows: Array) -> Array:
            logits = engine.wide(rows)
            return self._proba(logits if self.is_multilabel else arrays.log_softmax(logits))

        return engine.map_blocks(proba, values)

    def _proba(self, logs: Array) -> Array:
        return to_proba(self.fitted.scores(logs), is_multilabel=self.is_multilabel)

    def unrolled(self) -> Scored:
        """Return it as it is."""
        return self


class Rule(NamedTuple):
    """From probabilities to decisions; :class:`altnorm.decisions.decision.Decision` says how."""

    kind: str
    values: Array | None = None  # None where the most probable class is decided
    leaves_rows: bool = False  # whether one more decision leaves the row to a person
    on_input: bool = False  # whether it looks at probabilities as they came
    least: Array | None = None  # of the most probable class, to decide at all; None: any

    def __call__(self, p: Array) -> Array:
        """Column of each row's class, one more for a person; or a 0/1 matrix."""
        xp = array_namespace(p)
        if self.kind == "thresholds":
            return xp.astype(p > self.values, xp.int64)
        if self.least is not None:
            # A person as one more class: taken where no other is as probable.
            p = xp.concat([p, 0 * p[:, :1] + self.least], axis=1)
        if self.values is None:
            return xp.argmax(p, axis=1)
        return xp.argmax(-(p @ self.values) if self.kind == "costs" else p * self.values, axis=1)

    def codes(self, p: Array) -> np.ndarray:
        """Decide eagerly, in host memory."""
        if self.values is None and self.least is None:
            return arrays.column_of_max(p)
        if self.kind == "thresholds" or self.least is not None:
            p = arrays.to_numpy(p)  # where numbers are doubles, as in other engines
        rows = arrays.wide(p)
        codes = arrays.to_numpy(arrays.beside(self, rows)(rows))
        return codes.astype(np.int8) if self.kind == "thresholds" else codes

    def names(self, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return the classes that codes stand for, None where a row is left to a person."""
        if self.kind == "thresholds":
            return codes
        if not self.leaves_rows:
            return classes[codes]
        return np.array([*classes.tolist(), None], dtype=object)[codes]


class Correction(NamedTuple):
    """All that a fitted model does to a row."""

    input: str
    is_multilabel: bool
    stage: Stage
    rule: Rule

    def untouched(self, values: Array) -> Array:
        """Probabilities as they came."""
        if self.input == "proba":
            return values
        return to_proba(values, is_multilabel=self.is_multilabel)

    def probabilities(self, values: Array, engine: Engine) -> Array:
        """Adjusted probabilities of rows, as precise as the engine makes them."""
        if self.input == "logits" and isinstance(self.stage, Scored):
            return self.stage.from_logits(values, engine)
        return self.stage(self.untouched(values), engine)

    def decide(self, values: Array, p: Array) -> Array:
        """Decisions on rows, whose adjusted probabilities are `p`, as precise as returned."""
        return self.rule(self.untouched(values) if self.rule.on_input else p)

    def unrolled(self) -> Correction:
        """As of a stage."""
        return self._replace(stage=self.stage.unrolled())


def to_proba(scores: Array, *, is_multilabel: bool) -> Array:
    """Probabilities that scores, logits among them, stand for."""
    return arrays.sigmoid(scores) if is_multilabel else arrays.softmax(scores)


# Eagerly, on arrays of any library. Rows were checked at the door: they sum to 1.


def run(correction: Correction, values: Array) -> Array:
    """Return adjusted probabilities of clean rows, in their dtype and in new memory."""
    xp = array_namespace(values)
    with arrays.quiet(xp):
        new = correction.probabilities(values, EAGER)
    return xp.astype(new, values.dtype, copy=new is values)


def _adjust_doubtful(p: Array, doubt: Doubt, change: Callable[[Array], Array]) -> Array:
    rows, xp = doubt.mask(p), array_namespace(p)
    if rows.all():
        return xp.astype(change(arrays.wide(p)), p.dtype, copy=False)
    out = xp.asarray(p, copy=True)
    if not rows.any():
        return out
    return arrays.put_rows(out, rows, change(arrays.wide(arrays.take_rows(p, rows))))


EAGER = Engine(
    arrays.wide,
    lambda p: array_namespace(p).log(p),
    arrays.log_odds,
    arrays.map_blocks,
    _adjust_doubtful,
    log_product,
)


# For engines that trace: they take rows as they come, and compute every branch.


def masked_log(p: Array) -> Array:
    """Logarithm; that of zero is minus infinity, with a gradient of zero."""
    xp = array_namespace(p)
    has = p > 0
    # Not log(0): its gradient would be infinite, and NaN after the mask.
    return xp.where(has, xp.log(xp.where(has, p, xp.ones_like(p))), xp.zeros_like(p) - math.inf)


def tracing(
    log_product: Callable[[Array, Array, Array, Array], Array],
    replace_rows: Callable[[Array, Array, Callable[[Array], Array]], Array],
) -> Engine:
    """Return an engine that traces double precision, given what its library lacks."""

    def normalized_log(p: Array) -> Array:
        xp = array_namespace(p)
        return masked_log(p) - xp.log(xp.sum(p, axis=1, keepdims=True))

    return Engine(
        wide=lambda p: p,
        log=normalized_log,
        log_odds=lambda p: masked_log(p) - masked_log(1 - p),
        map_blocks=lambda function, *arrays: function(*arrays),
        adjust_doubtful=lambda p, doubt, change: replace_rows(p, doubt.rows(p), change),
        log_product=log_product,
    )
