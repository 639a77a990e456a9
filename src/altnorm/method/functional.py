"""Arrays in, arrays out: the problem that they pose, and which kernel solves it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from altnorm._base import arrays, validation
from altnorm._base.arrays import Array, GivenArray, array_namespace, quiet
from altnorm._base.errors import InputWarning, warn
from altnorm._base.symbols import names_symbols
from altnorm.method import scaling
from altnorm.method.scaling import LogReference, ReferenceStep
from altnorm.method.two_classes import BinaryReference, iterate_logits, log_sigmoids

# Where one rounding error could grow this much, small references are iterated literally.
_LOG_AMPLIFICATION = math.log(1e4)
_SMALL_REFERENCE = 2**13
_FEW_ROWS = 64  # a request; of more, products take most of the time


_paper = names_symbols(d="depth", q="prior", A0="reference", b0="proba")


@_paper
def alternating_normalization(
    proba: GivenArray,
    reference: Any,
    *,
    prior: ArrayLike | None = None,
    alpha: float = 1.0,
    depth: int = 1,
    reference_weight: ArrayLike | None = None,
    smoothing: float = 0.0,
) -> GivenArray:
    r"""Adjust each row of `proba` against reference predictions and a class prior.

    Each row :math:`b` is stacked under the reference rows :math:`A` on its own, and in each of
    `depth` iterations becomes

    .. math:: b_j \leftarrow \frac{q_j b_j^\alpha / S_j}{\sum_l q_l b_l^\alpha / S_l}, \qquad
              S_j = \sum_i w_i A_{ij}^\alpha + b_j^\alpha + \kappa q_j \sum_i w_i,

    and the rows of :math:`A` likewise. Rows never see each other: the result for a row does not
    depend on which others are in the batch, but for the last bits. A zero stays zero.

    Parameters
    ----------
    proba : array of shape (t, m)
        Class probabilities to adjust, the paper's b0: an array of NumPy, PyTorch, CuPy, JAX or
        another library that follows the array API standard.
    reference : array of shape (n, m)
        Reference predictions, the paper's A0, usually those the classifier is sure about.
    prior : array of shape (m,), optional
        Class prior :math:`q`, for example class frequencies; divided by its sum. None is uniform.
    alpha : float, default=1.0
        Exponent, greater than 0.
    depth : int, default=1
        Number of iterations, the paper's d.
    reference_weight : array of shape (n,), optional
        Weight :math:`w_i` of each reference row; an integer weight equals repeating the row.
    smoothing : float, default=0.0
        :math:`\kappa`, pulls a row towards its own power, for `alpha` 1 towards doing nothing. It
        equals one-hot reference rows weighted by the prior, `smoothing` times the reference in all.

    Returns
    -------
    array of shape (t, m)
        Adjusted rows, in the library, device and dtype of `proba`. A row whose classes all have
        prior zero is left as it was, and a warning counts such rows.

    See Also
    --------
    trajectory : The same after every iteration.

    References
    ----------
    .. [1] Jia, Reiter, Lim, Artzi, Cardie. When in Doubt: Improving Classification Performance
           with Alternating Normalization. Findings of EMNLP 2021.

    Examples
    --------
    The tie is broken towards the class that the reference did not take:

    >>> import numpy as np
    >>> from altnorm import alternating_normalization
    >>> alternating_normalization(np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]]))
    array([[0.75, 0.25]])
    """
    reference = validation.check_proba(reference, "reference")
    settings = prior, alpha, depth, reference_weight, smoothing
    at_once = _first_unchecked(proba, reference, *settings) if depth == 1 else None
    if at_once is not None:
        return at_once
    return solve(problem(validation.check_proba(proba), reference, *settings))


@_paper
def trajectory(
    proba: GivenArray,
    reference: Any,
    *,
    prior: ArrayLike | None = None,
    alpha: float = 1.0,
    depth: int = 1,
    reference_weight: ArrayLike | None = None,
    smoothing: float = 0.0,
) -> GivenArray:
    """Rows before the first and after every iteration of alternating normalization.

    Parameters
    ----------
    proba, reference, prior, alpha, depth, reference_weight, smoothing
        As for :func:`alternating_normalization`.

    Returns
    -------
    array of shape (depth + 1, t, m)
        ``result[0]`` is `proba`, ``result[d]`` its rows after `d` iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import trajectory
    >>> trajectory(np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]]), depth=3)[:, 0].round(3)
    array([[0.5  , 0.5  ],
           [0.65 , 0.35 ],
           [0.665, 0.335],
           [0.666, 0.334]])
    """
    reference = validation.check_proba(reference, "reference")
    rows = validation.check_proba(proba)
    posed = problem(rows, reference, prior, alpha, depth, reference_weight, smoothing)
    xp = array_namespace(posed.p)
    reduced, alive = reduce_problem(posed)
    with quiet(xp):
        states, finish = _kernel(reduced)
        steps = [posed.p, *map(finish, states)]
    return xp.stack(steps if alive is None else [xp.where(alive, b, posed.p) for b in steps])


class Problem(NamedTuple):
    """Clean inputs."""

    p: Array  # (t, m) rows to adjust
    reference: Array  # (n, m)
    weight: Array | None  # (n,)
    q: Array  # (m,)
    log_mass: float | None
    alpha: float
    depth: int
    steps: tuple[ReferenceStep, ...] | None = None  # the reference's own, where they are kept

    def logs(self) -> LogReference:
        """Reference and prior as the kernels take them."""
        xp = array_namespace(self.p)
        log_w = None if self.weight is None else xp.log(self.weight)
        log_a, log_q = xp.log(self.reference), xp.log(self.q)
        return LogReference(log_a, log_w, log_q, self.alpha, self.log_mass)


def problem(
    p: Array,
    reference: Array,
    prior: ArrayLike | None,
    alpha: float,
    depth: int,
    reference_weight: ArrayLike | None,
    smoothing: float,
) -> Problem:
    """Check everything but the rows themselves."""
    validation.check_same_classes(p, reference)
    weight = validation.check_weight(reference_weight, reference)
    smoothing = validation.check_positive(smoothing, "smoothing", zero=True)
    alpha = validation.check_positive(alpha, "alpha")
    depth = validation.check_integer(depth, "depth", low=1)
    validation.check_amplification(alpha, depth, float(array_namespace(p).finfo(p.dtype).max))
    total = reference.shape[0]
    if weight is not None:
        total = float(array_namespace(weight).sum(weight))
    log_mass = math.log(smoothing) + math.log(total) if smoothing else None
    return Problem(p, reference, weight, validation.check_prior(prior, p), log_mass, alpha, depth)


def reduce_problem(problem: Problem) -> tuple[Problem, Array | None]:
    """Leave out what has no weight, or only classes with prior zero, which vanish at once.

    Such rows in doubt are replaced, and a column says which are not; None where none are.
    """
    p, reference, weight, has = problem.p, problem.reference, problem.weight, problem.q > 0
    xp = array_namespace(p)
    is_whole = bool(xp.all(has))
    if is_whole and weight is None:
        return problem, None
    counts = xp.any((reference > 0) & has, axis=1)
    counts = counts if weight is None else counts & (weight > 0)
    if not bool(xp.all(counts)):
        used = xp.nonzero(counts)[0]
        weight = None if weight is None else xp.take(weight, used)
        problem = problem._replace(reference=xp.take(reference, used, axis=0), weight=weight)
    if is_whole:
        return problem, None
    alive = xp.any((p > 0) & has, axis=1, keepdims=True)
    n_left = xp.nonzero(~alive[:, 0])[0].shape[0]
    if n_left:
        message = (
            f"{n_left} of {p.shape[0]} rows have only classes with prior zero; they were left as "
            "they were. Give these classes a positive prior if they can occur."
        )
        warn(InputWarning(message, "prior_zero"))
    return problem._replace(p=xp.where(alive, p, xp.ones_like(p))), alive


def follow_reference(problem: Problem) -> Problem:
    """Return the problem with all that does not depend on its rows, for `solve` with others.

    As it is where that would be large, another kernel is used, or some class has prior zero.
    """
    reduced, alive = reduce_problem(problem._replace(p=problem.p[:0, :]))
    n, m = reduced.reference.shape
    too_large = not arrays.may_keep(3 * problem.depth * n * m)
    if alive is not None or n == 0 or m == 2 or _is_stacked(reduced) or too_large:
        return problem
    with quiet(array_namespace(problem.p)):
        steps = scaling.reference_steps(reduced.logs())
        return reduced._replace(steps=scaling.keep_steps(steps, problem.depth))


def solve(problem: Problem) -> Array:
    """Rows after the last iteration."""
    if problem.steps is not None:
        return _final(problem)
    reduced, alive = reduce_problem(problem)
    new = _final(reduced)
    return new if alive is None else array_namespace(new).where(alive, new, problem.p)


def _final(problem: Problem) -> Array:
    """Rows after the last iteration, each of which has some class with a positive prior."""
    if problem.depth == 1:
        return _first(problem)
    with quiet(array_namespace(problem.p)):
        if problem.steps is not None and problem.p.shape[0] <= _FEW_ROWS:
            rows = scaling.iterate_few(problem.p, problem.steps)
            if rows is not None:
                return rows
        states, finish = _kernel(problem)
        return finish(deque(states, maxlen=1)[0])


def _kernel(problem: Problem) -> tuple[Iterator[Any], Callable[[Any], Array]]:
    """Choose the kernel that suits the problem: its states, and how to make rows of a state."""
    n, m = problem.reference.shape
    xp, depth = array_namespace(problem.p), problem.depth
    log_p = xp.log(problem.p)

    def finish(blocks: list[Array]) -> Array:
        return arrays.concat_blocks((arrays.softmax(block) for block in blocks), problem.p)

    if n == 0:
        return _steps_without_reference(problem), lambda rows: rows
    if _is_stacked(problem):
        return scaling.iterate_stacked(log_p, problem.logs(), depth=depth), finish
    if m == 2 and bool(xp.all(problem.q > 0)):
        logits = log_p[:, 0] - log_p[:, 1]
        return iterate_logits(logits, binary_reference(problem)), _both_classes
    steps = problem.steps or scaling.reference_steps(problem.logs())
    return scaling.iterate(log_p, steps, depth=depth), finish


def _is_stacked(problem: Problem) -> bool:
    """Whether the iterations are literally those of the equations."""
    log_amplification = (problem.depth - 1) * math.log(problem.alpha)  # alpha^depth may overflow
    n, m = problem.reference.shape
    return log_amplification > _LOG_AMPLIFICATION and n * m <= _SMALL_REFERENCE


def _steps_without_reference(problem: Problem) -> Iterator[Array]:
    for _ in range(problem.depth):
        problem = problem._replace(p=_first(problem))
        yield problem.p


def binary_reference(problem: Problem) -> BinaryReference:
    """Reference and prior as the kernel for two classes takes them."""
    log_a = array_namespace(problem.p).log(problem.reference)
    log_q = math.log(float(problem.q[0])), math.log(float(problem.q[1]))
    settings = problem.alpha, problem.depth, problem.log_mass
    return BinaryReference(log_a[:, 0] - log_a[:, 1], problem.weight, log_q, *settings)


def _both_classes(logits: Array) -> Array:
    xp = array_namespace(logits)
    return xp.exp(xp.stack(log_sigmoids(logits), axis=1))


def _first(problem: Problem) -> Array:
    """Rows after the first iteration."""
    sums = scaling.ColumnSums.of(reference_log_sums(problem), problem.q, problem.p)
    return scaling.step_once(problem.p, sums, alpha=problem.alpha)


def _first_unchecked(proba: Any, reference: Array, *settings: Any) -> Array | None:
    """First iteration by a kernel that checks the rows while it has them; None if it cannot.

    Where memory is what takes time, reading rows to check them first takes half as long again.
    """
    if arrays.fused(proba) is None or proba.shape[1:] != reference.shape[1:]:
        return None
    posed = problem(proba, reference, *settings)
    reduced, _ = reduce_problem(posed._replace(p=proba[:0, :]))
    tolerance = validation.sum_tolerance(str(proba.dtype))
    log_s = reference_log_sums(reduced)
    return scaling.step_in_kernel(proba, log_s, posed.q, alpha=posed.alpha, tolerance=tolerance)


def reference_log_sums(problem: Problem) -> Array:
    """Log of what the reference and the smoothing put into each column of the first iteration."""
    with quiet(array_namespace(problem.p)):
        reference = problem.logs()
        return reference.smoothed(scaling.column_log_sums(reference))
