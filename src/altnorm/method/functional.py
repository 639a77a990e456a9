"""Arrays in, arrays out: the functional entry points."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from altnorm._base.arrays import Array, array_namespace, concat_blocks, fused, may_keep, quiet
from altnorm._base.validation import check_proba, sum_tolerance
from altnorm.method import one_step as _one_step
from altnorm.method import scaling as _scaling
from altnorm.method import two_classes as _binary
from altnorm.method.problem import Problem, problem, reduce_problem, restore

# Where one rounding error could grow this much, small references are iterated literally.
_LOG_AMPLIFICATION = math.log(1e4)
_SMALL_REFERENCE = 2**13


def alternating_normalization(
    proba: Any,
    reference: Any,
    *,
    prior: Any = None,
    alpha: float = 1.0,
    depth: int = 1,
    reference_weight: Any = None,
    smoothing: float = 0.0,
) -> Array:
    r"""Adjust each row of `proba` against reference predictions and a class prior.

    Each row :math:`b` is stacked under the reference rows :math:`A` on its own, and `depth` times
    the stack is raised to the power `alpha`, its columns are divided by their sums, multiplied by
    the prior, and its rows are divided by their sums:

    .. math:: S_j = \sum_i w_i A_{ij}^\alpha + b_j^\alpha + \kappa q_j \sum_i w_i,
              \qquad b_j \leftarrow \frac{q_j b_j^\alpha / S_j}{\sum_l q_l b_l^\alpha / S_l},

    and the rows of :math:`A` likewise. Rows never see each other: the result for a row does not
    depend on which other rows are in the batch. A zero probability stays zero.

    Parameters
    ----------
    proba : array of shape (t, m)
        Rows to adjust, each summing to 1. NumPy, PyTorch, CuPy, JAX or another array that follows
        the array API standard.
    reference : array of shape (n, m)
        Reference predictions, usually those the classifier is sure about; no labels needed.
    prior : array of shape (m,), optional
        Class prior :math:`q`, for example class frequencies of the training data; it is divided
        by its sum. None is uniform.
    alpha : float, default=1.0
        Exponent, greater than 0.
    depth : int, default=1
        Number of iterations.
    reference_weight : array of shape (n,), optional
        Weight :math:`w_i` of each reference row; an integer weight equals repeating the row.
    smoothing : float, default=0.0
        :math:`\kappa`, pulls the column sums towards the prior, and so a row towards its own
        power, which for `alpha` 1 is doing nothing. It equals adding one-hot reference rows
        weighted by the prior, with a total weight of `smoothing` times that of the reference.

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
    reference = check_proba(reference, "reference")
    settings: dict[str, Any] = {
        "prior": prior,
        "alpha": alpha,
        "depth": depth,
        "reference_weight": reference_weight,
        "smoothing": smoothing,
    }
    at_once = _first_unchecked(proba, reference, settings) if depth == 1 else None
    if at_once is not None:
        return at_once
    return solve(problem(check_proba(proba), reference, **settings))


def trajectory(
    proba: Any,
    reference: Any,
    *,
    prior: Any = None,
    alpha: float = 1.0,
    depth: int = 1,
    reference_weight: Any = None,
    smoothing: float = 0.0,
) -> Array:
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
    reference = check_proba(reference, "reference")
    whole = problem(
        check_proba(proba),
        reference,
        prior=prior,
        alpha=alpha,
        depth=depth,
        reference_weight=reference_weight,
        smoothing=smoothing,
    )
    reduced, kept = reduce_problem(whole)
    steps = [restore(whole.p, kept, step) for step in _steps(reduced)]
    return array_namespace(whole.p).stack([whole.p, *steps])


def follow_reference(problem: Problem) -> Problem | None:
    """Return the problem with all that does not depend on its rows, for `solve` with other rows.

    None where that is not worth it: what is kept would be large, and products of that size take
    long themselves; or where another kernel is used, or classes are left out.
    """
    reduced, left_out = reduce_problem(problem._replace(p=problem.p[:0, :]))
    n, m = reduced.reference.shape
    too_large = not may_keep(3 * problem.depth * n * m)
    if left_out is not None or n == 0 or _is_stacked(reduced) or too_large:
        return None
    with quiet(array_namespace(problem.p)):
        if reduced.q.shape[0] == 2:
            return reduced._replace(path=tuple(islice(_logit_path(reduced), problem.depth)))
        path = _scaling.anchor_path(reduced.logs())
        return reduced._replace(path=_scaling.keep_anchors(path, problem.depth))


def solve(problem: Problem) -> Array:
    """Rows after the last iteration, among all rows and classes of the problem."""
    if problem.path is not None:
        return _final(problem)
    reduced, kept = reduce_problem(problem)
    return restore(problem.p, kept, _final(reduced))


def _final(problem: Problem) -> Array:
    """Rows after the last iteration."""
    if problem.depth == 1:
        return _first(problem)
    with quiet(array_namespace(problem.p)):
        states, finish = _kernel(problem)
        return finish(deque(states, maxlen=1)[0])


def _steps(problem: Problem) -> Iterator[Array]:
    """Rows after each iteration."""
    with quiet(array_namespace(problem.p)):
        states, finish = _kernel(problem)
        yield from map(finish, states)


def _kernel(problem: Problem) -> tuple[Iterator[Any], Callable[[Any], Array]]:
    """Choose the kernel that suits the problem: its states, and how to make rows of a state."""
    n, m = problem.reference.shape
    log_p, depth = array_namespace(problem.p).log(problem.p), problem.depth
    if n == 0:
        return _steps_without_reference(problem), lambda rows: rows
    if _is_stacked(problem):
        return _in_logs(problem, _scaling.iterate_stacked(log_p, problem.logs(), depth=depth))
    if m == 2 and problem.whole:
        return _logit_steps(problem)
    path = problem.path or _scaling.anchor_path(problem.logs())
    return _in_logs(problem, _scaling.iterate_along(log_p, path, depth=depth))


def _is_stacked(problem: Problem) -> bool:
    """Whether the iterations are literally those of the equations."""
    log_amplification = (problem.depth - 1) * math.log(problem.alpha)  # alpha^depth may overflow
    n, m = problem.reference.shape
    return log_amplification > _LOG_AMPLIFICATION and n * m <= _SMALL_REFERENCE


def _steps_without_reference(problem: Problem) -> Iterator[Array]:
    for _ in range(problem.depth):
        problem = problem._replace(p=_first(problem))
        yield problem.p


def _in_logs(
    problem: Problem, steps: Iterator[list[Array]]
) -> tuple[Iterator[list[Array]], Callable[[list[Array]], Array]]:
    def finish(blocks: list[Array]) -> Array:
        return concat_blocks((_scaling.normalized_exp(block) for block in blocks), problem.p)

    return steps, finish


def _logit_steps(problem: Problem) -> tuple[Iterator[Array], Callable[[Array], Array]]:
    xp = array_namespace(problem.p)
    log_p = xp.log(problem.p)
    steps = _binary.iterate_logits_along(
        log_p[:, 0] - log_p[:, 1],
        problem.path or islice(_logit_path(problem), problem.depth),
        _log_prior(problem),
        alpha=problem.alpha,
        log_mass=problem.log_mass,
    )
    return steps, lambda logits: xp.exp(xp.stack(_binary.log_sigmoids(logits), axis=1))


def _logit_path(problem: Problem) -> Iterator[_binary.LogitStage]:
    log_a = array_namespace(problem.p).log(problem.reference)
    return _binary.logit_path(
        log_a[:, 0] - log_a[:, 1],
        problem.weight,
        _log_prior(problem),
        alpha=problem.alpha,
        log_mass=problem.log_mass,
    )


def _log_prior(problem: Problem) -> tuple[float, float]:
    return math.log(float(problem.q[0])), math.log(float(problem.q[1]))


def _first(problem: Problem) -> Array:
    """Rows after the first iteration."""
    log_s = reference_log_sums(problem)
    return _one_step.step_once(problem.p, log_s, problem.q, alpha=problem.alpha)


def _first_unchecked(proba: Any, reference: Array, settings: dict[str, Any]) -> Array | None:
    """First iteration by a kernel that checks the rows while it has them; None if it cannot.

    Where memory is what takes time, reading rows to check them first takes half as long again.
    """
    if fused(proba) is None or proba.shape[1:] != reference.shape[1:]:
        return None
    # Whether classes are left out does not depend on the rows.
    given = problem(proba, reference, **settings)
    reduced, left_out = reduce_problem(given._replace(p=proba[:0, :]))
    if left_out is not None:
        return None
    log_s, tolerance = reference_log_sums(reduced), sum_tolerance(str(proba.dtype))
    return _one_step.step_in_kernel(proba, log_s, given.q, alpha=given.alpha, tolerance=tolerance)


def reference_log_sums(problem: Problem) -> Array:
    """Log of what the reference and the smoothing put into each column of the first iteration."""
    with quiet(array_namespace(problem.p)):
        return _scaling.log_sums(problem.logs())
