"""L-BFGS that keeps what it has learnt of the curvature from one strength to the next.

SciPy's starts from nothing at every call, and evaluates where it starts, where the last call ended.
Along a path of penalties each of the two is a third of the work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import daxpy

_ENOUGH = 1e-4  # of the decrease that the slope promises
_SHORTER = 0.3
_SHORTEST = 1e-3
_MAX_STEPS = 300

Operator = Callable[[np.ndarray], np.ndarray]


class Point(NamedTuple):
    """Where a descent is, with value and gradient there."""

    at: np.ndarray
    value: float
    gradient: np.ndarray


class _Pair(NamedTuple):
    step: np.ndarray
    change: np.ndarray  # of the gradient
    bend: float  # their product


class History:
    """Steps, and by how much each changed the gradient."""

    def __init__(self, n_steps: int) -> None:
        self._pairs: deque[_Pair] = deque(maxlen=n_steps)

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Remember a step, unless the function does not curve upwards along it."""
        bend = float(step @ change)
        if bend > 0 and bend**2 > 1e-20 * float(step @ step) * float(change @ change):
            self._pairs.append(_Pair(step, change, bend))

    def stiffen(self, curvature: Operator) -> None:
        """Record that a quadratic was added, with these second derivatives."""
        pairs = list(self._pairs)
        self._pairs.clear()
        for pair in pairs:
            self.add(pair.step, pair.change + curvature(pair.step))

    def solve(self, gradient: np.ndarray, precondition: Operator) -> np.ndarray:
        """The inverse Hessian, as far as it is known, times the gradient."""
        shares, direction = [], gradient.copy()
        for pair in reversed(self._pairs):
            shares.append((pair.step @ direction) / pair.bend)
            daxpy(pair.change, direction, a=-shares[-1])  # in place
        direction = precondition(direction)
        if self._pairs:
            # A rough Hessian may be off by a factor, which the last step tells.
            last = self._pairs[-1]
            direction *= last.bend / float(last.change @ precondition(last.change))
        for pair, share in zip(self._pairs, reversed(shares), strict=True):
            daxpy(pair.step, direction, a=share - (pair.change @ direction) / pair.bend)
        return direction


def descend(
    function: Callable[[np.ndarray], Point],
    start: Point,
    precondition: Operator,
    history: History,
    *,
    least_gain: float,
) -> Point:
    """Minimise a function until one more step would gain less than `least_gain`.

    `precondition` is an inverse of a rough Hessian; `history` is used and continued.
    """
    here, noise = start, 16 * np.finfo(np.float32).eps
    for _ in range(_MAX_STEPS):
        direction = history.solve(here.gradient, precondition)
        slope = float(here.gradient @ direction)
        # Half of it is what the step would gain if the Hessian were known.
        if slope < 2 * least_gain:
            break
        length = 1.0
        ahead = function(here.at - direction)
        while not ahead.value <= here.value - _ENOUGH * length * slope + noise * abs(here.value):
            length *= _SHORTER
            if length < _SHORTEST:
                return here
            ahead = function(here.at - length * direction)
        history.add(ahead.at - here.at, ahead.gradient - here.gradient)
        here = ahead
    return here


class Penalised(NamedTuple):
    """A loss and a penalty on its unknowns, with a rough Hessian of both, inverted."""

    loss: Callable[[np.ndarray], Point]
    penalty: Callable[[np.ndarray, float], tuple[float, np.ndarray]]  # value and derivative
    precondition: Callable[[Point, float], Operator]  # from where it starts, at a strength
    total: float  # weight of the rows
    is_quadratic: bool = True  # the penalty, so that its derivative is linear
    n_steps: int = 10  # that are remembered

    def walk(
        self, start: np.ndarray, strengths: Sequence[float], gain: float
    ) -> Iterator[np.ndarray]:
        """Yield the best unknowns at each strength, each from the one before.

        `gain` is what one more step may still gain, per unit of weight.
        """
        here, before, history = self.loss(start), 0.0, History(self.n_steps)
        for strength in strengths:
            if self.is_quadratic:
                history.stiffen(partial(self._change_gradient, strength - before))
            else:
                history = History(self.n_steps)
            here = descend(
                partial(self._evaluate, strength),
                self._add(here, strength),
                self.precondition(here, strength),
                history,
                least_gain=gain * self.total,
            )
            here, before = self._add(here, strength, -1.0), strength
            yield here.at

    def _change_gradient(self, strength: float, step: np.ndarray) -> np.ndarray:
        return self.penalty(step, strength)[1]

    def _evaluate(self, strength: float, at: np.ndarray) -> Point:
        return self._add(self.loss(at), strength)

    def _add(self, point: Point, strength: float, sign: float = 1.0) -> Point:
        """Add the penalty to a point, or take it away again."""
        value, gradient = self.penalty(point.at, strength)
        return Point(point.at, point.value + sign * value, point.gradient + sign * gradient)
