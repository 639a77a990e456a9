"""The numbers of the geometry study; nothing is drawn here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

import altnorm

__all__ = [
    "BINARY_REFERENCE",
    "FIGURE_REFERENCE",
    "TEASER_REFERENCE",
    "Fates",
    "Rates",
    "Steps",
    "alpha_curves",
    "certain_reference",
    "fates",
    "grid_of_limits",
    "iteration_steps",
    "larger_rates",
    "power_curves",
    "two_by_two_limit",
    "two_by_two_paths",
    "two_by_two_rate",
]

TEASER_REFERENCE = np.array([[0.0, 1.0]])  # the paper's first example
FIGURE_REFERENCE = np.array([0.1, 0.9])  # of the paper's Figure 6 (d)
# Three sure rows that all lean to the second class.
BINARY_REFERENCE = np.array([[0.05, 0.95], [0.20, 0.80], [0.35, 0.65]])
CORNER = 0.999  # a row this sure counts as a unit vector
STILL = 1e-6  # a step this small (sum of absolute changes) counts as none


class Steps(NamedTuple):
    """One iteration taken apart; each of shape (n + 1, m), the doubtful row last."""

    start: np.ndarray
    columns_divided: np.ndarray
    rows_divided: np.ndarray


class Rates(NamedTuple):
    """Convergence at alpha = 1 of random problems."""

    m: np.ndarray  # (problems,)
    measured: np.ndarray  # (problems,)
    predicted: np.ndarray  # (problems,)
    distance: np.ndarray  # (problems, depth + 1), to the limit


class Fates(NamedTuple):
    """Where random rows are after many iterations, each of shape (sizes, alphas)."""

    largest: np.ndarray  # mean of the largest probability
    corner: np.ndarray  # share of rows at a unit vector
    moving: np.ndarray  # share of rows that still move
    from_prior: np.ndarray  # mean total variation distance from the prior


def iteration_steps(row: np.ndarray, reference: np.ndarray) -> Steps:
    """The two divisions of one iteration, for alpha = 1 and a uniform prior."""
    start = np.vstack([reference, row])
    columns = start / start.sum(axis=0)
    return Steps(start, columns, columns / columns.sum(axis=1, keepdims=True))


def alpha_curves(first: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """New probability of the first class, of shape (alphas, rows), against the binary reference."""
    rows = np.stack([first, 1 - first], axis=1)
    return np.stack(
        [
            altnorm.alternating_normalization(rows, BINARY_REFERENCE, alpha=float(alpha))[:, 0]
            for alpha in alphas
        ]
    )


def power_curves(first: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """Rows [p, 1 - p] raised to alpha, columns divided, rows not yet: (alphas, rows, 2)."""
    rows = np.stack([first, 1 - first], axis=1)
    powers = rows ** alphas[:, None, None]
    return powers / (powers + FIGURE_REFERENCE ** alphas[:, None, None])


def two_by_two_paths(first: np.ndarray, reference: float, alpha: float, depth: int) -> np.ndarray:
    """Probability of the first class before and after each iteration, (depth + 1, rows)."""
    rows = np.stack([first, 1 - first], axis=1)
    one = np.array([[reference, 1 - reference]])
    return altnorm.trajectory(rows, one, alpha=alpha, depth=depth)[:, :, 0]


def two_by_two_limit(first: np.ndarray, reference: np.ndarray | float) -> np.ndarray:
    """Limit of the first class at alpha = 1: half the difference of the logits is kept."""
    return expit((logit(first) - logit(reference)) / 2)


def two_by_two_rate(first: np.ndarray, reference: np.ndarray | float) -> np.ndarray:
    """Factor by which the distance to that limit shrinks with each iteration, in the long run."""
    return np.tanh((logit(first) - logit(reference)) / 4) ** 2


def grid_of_limits(values: np.ndarray, depth: int) -> np.ndarray:
    """Where each row (second axis) ends against each one-row reference (first axis)."""
    return np.stack([two_by_two_paths(values, p, 1.0, depth)[-1] for p in values.tolist()])


def certain_reference(depth: int) -> np.ndarray:
    """Distance of [.5, .5] from [1, 0] against the reference [0, 1], at each depth."""
    return 1 - two_by_two_paths(np.array([0.5]), 0.0, 1.0, depth)[:, 0]


def larger_rates(sizes: tuple[int, ...], n_problems: int, depth: int, seed: int) -> Rates:
    """Measured and predicted rates of random problems of m rows and m classes."""
    rng = np.random.default_rng(seed)
    parts = [(m, *_rate(rng, m, depth)) for m in sizes for _ in range(n_problems)]
    return Rates(*(np.array(x) for x in zip(*parts, strict=True)))


def _rate(rng: np.random.Generator, m: int, depth: int) -> tuple[float, float, np.ndarray]:
    """Measured rate, squared second singular value of the limit, distances to the limit."""
    reference, row, prior = _random_problem(rng, m, 1)
    limit = _sinkhorn_limit(np.vstack([reference, row]), prior)
    path = altnorm.trajectory(row, reference, prior=prior, depth=depth)[:, 0]
    distance = np.abs(path - limit[-1]).sum(axis=1) / 2
    last = int(np.nonzero(distance > 1e-11)[0][-1])
    middle = last // 2
    measured = (distance[last] / distance[middle]) ** (1 / max(last - middle, 1))
    singular = np.linalg.svd(limit / np.sqrt(limit.sum(axis=0)), compute_uv=False)
    return float(measured), float(singular[1] ** 2), distance


def _sinkhorn_limit(matrix: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The matrix with row sums 1 and column sums proportional to the prior."""
    for _ in range(10_000):
        before = matrix
        matrix = matrix / matrix.sum(axis=0) * prior
        matrix /= matrix.sum(axis=1, keepdims=True)
        if np.abs(matrix - before).max() < 1e-15:
            break
    return matrix


def fates(
    sizes: tuple[int, ...], alphas: np.ndarray, n_problems: int, depth: int, seed: int
) -> Fates:
    """Random rows, references and priors after many iterations, for each alpha."""
    result = np.empty((4, len(sizes), len(alphas)))
    for i, m in enumerate(sizes):
        rng = np.random.default_rng([seed, m])
        problems = [_random_problem(rng, m, 20) for _ in range(n_problems)]
        for j, alpha in enumerate(alphas.tolist()):
            outcomes = [_fate(*problem, alpha, depth) for problem in problems]
            result[:, i, j] = np.mean(outcomes, axis=0)
    return Fates(*result)


def _fate(
    reference: np.ndarray, rows: np.ndarray, prior: np.ndarray, alpha: float, depth: int
) -> tuple[float, float, float, float]:
    path = altnorm.trajectory(rows, reference, prior=prior, alpha=alpha, depth=depth)
    largest = path[-1].max(axis=1)
    step = np.abs(path[-1] - path[-2]).sum(axis=1)
    distance = np.abs(path[-1] - prior).sum(axis=1) / 2
    return (
        float(largest.mean()),
        float((largest > CORNER).mean()),
        float((step > STILL).mean()),
        float(distance.mean()),
    )


def _random_problem(
    rng: np.random.Generator, m: int, n_rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A reference of m - 1 rows, rows to adjust and a prior, all uniform on the simplex."""
    flat = np.ones(m)
    return rng.dirichlet(flat, m - 1), rng.dirichlet(flat, n_rows), rng.dirichlet(flat)
