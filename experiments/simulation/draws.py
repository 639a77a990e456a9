"""Random references, priors and rows of a given ambiguity, and one iteration on all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cell = tuple[int, int, int]

_SIZES = (*range(2, 11), *range(20, 101, 10))
# Those of the paper's simulation; its tuning tries more, see `AlternatingNormalizerCV`.
_ALPHAS = (*(k / 10 for k in range(1, 10)), *(float(k) for k in range(1, 10)))
PAPER_EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)

K_MAX = 10  # the largest k of the ambiguity's top-k entropies
# Targets keep this share of the interval's width from its ends; the bisection errs by far less.
_MARGIN = 1e-6
_BISECTIONS = 46
_STEEPEST = 64.0  # here 9 rivals of log odds -64 give an ambiguity below 1e-25


@dataclass(frozen=True)
class Design:
    """What to draw and how often; the defaults are the paper's.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of classes m.
    alphas : tuple of float
        Exponents.
    edges : tuple of float
        Edges of the ambiguity intervals: closed on the left, and the last one on both sides.
    n_draws : int
        Draws of a reference, a prior and rows, for each size and pair of intervals.
    n_rows : int
        Rows :math:`b_0` in each draw.
    row_concentration, prior_concentration : float
        Concentrations of the Dirichlet distributions behind the rows and of the prior. 1 is
        uniform over the simplex. The paper does not give its own. None draws the prior as the
        authors did: 1 / m plus a uniform draw from [0, 1 / m), divided by the sum.
    random_state : int
        Same seed, same result, whatever the number of workers.
    """

    sizes: tuple[int, ...] = _SIZES
    alphas: tuple[float, ...] = _ALPHAS
    edges: tuple[float, ...] = PAPER_EDGES
    n_draws: int = 200
    n_rows: int = 100
    row_concentration: float = 1.0
    prior_concentration: float | None = 1.0
    random_state: int = 0

    @property
    def intervals(self) -> tuple[tuple[float, float], ...]:
        """Pairs of neighbouring edges."""
        return tuple(zip(self.edges[:-1], self.edges[1:], strict=True))

    @property
    def cells(self) -> list[Cell]:
        """Indices of size, interval of the reference, interval of the rows; large sizes first."""
        n = len(self.intervals)
        order = sorted(range(len(self.sizes)), key=lambda i: -self.sizes[i])
        return list(product(order, range(n), range(n)))

    @property
    def n_adjusted(self) -> int:
        """How many rows the study adjusts."""
        return len(self.cells) * self.n_draws * self.n_rows * len(self.alphas)


class Draws(NamedTuple):
    """Independent draws of one cell, rows as log probabilities."""

    log_reference: Floats  # (n_draws, m - 1, m)
    log_rows: Floats  # (n_draws, n_rows, m)
    prior: Floats  # (n_draws, m)


def draw(design: Design, cell: Cell) -> Draws:
    """Draws of one cell, from a stream of random numbers that is the cell's own.

    Parameters
    ----------
    design : Design
        The study.
    cell : tuple of three int
        Indices of the size, of the reference's interval and of the rows' interval.

    Returns
    -------
    Draws
        References, rows and priors.
    """
    size, a, b = cell
    m, n_draws = design.sizes[size], design.n_draws
    key = (m, *(round(edge * 2**20) for i in (a, b) for edge in design.intervals[i]))
    rng = np.random.default_rng(np.random.SeedSequence(design.random_state, spawn_key=key))
    concentration = design.row_concentration
    reference, rows = (
        draw_log_rows(rng, n_draws * n, m, design.intervals[i], concentration=concentration)
        for n, i in ((m - 1, a), (design.n_rows, b))
    )
    prior = draw_prior(rng, n_draws, m, design.prior_concentration)
    return Draws(reference.reshape(n_draws, -1, m), rows.reshape(n_draws, -1, m), prior)


def draw_prior(rng: np.random.Generator, n: int, m: int, concentration: float | None) -> Floats:
    """Priors of m classes, as `Design` describes them."""
    if concentration is not None:
        return rng.dirichlet(np.full(m, concentration), n)
    shares = 1 + rng.random((n, m))
    return shares / shares.sum(axis=1, keepdims=True)


def draw_log_rows(
    rng: np.random.Generator,
    n: int,
    m: int,
    interval: tuple[float, float],
    *,
    concentration: float = 1.0,
) -> Floats:
    r"""Random rows whose ambiguity is uniform on an interval, without rejection.

    A direction :math:`p` is drawn from a Dirichlet distribution and a target from the interval;
    the row is :math:`p^s`, divided by its sum, at the inverse temperature :math:`s` where its
    ambiguity is the target. There is exactly one: tempering keeps the order of the classes, and
    the entropy of the k largest falls strictly from 1 at :math:`s = 0` to 0 as
    :math:`s \to \infty` (its derivative is :math:`-s` times a variance), so the largest of these
    entropies does too. Bisection finds it.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    n, m : int
        Numbers of rows and of classes.
    interval : tuple of two float
        Ends of the interval, within [0, 1].
    concentration : float, default=1.0
        Concentration of the Dirichlet distribution; 1 is uniform over the simplex.

    Returns
    -------
    array of shape (n, m)
        Log probabilities, all finite.
    """
    low, high = interval
    log_p = np.log(np.maximum(rng.standard_gamma(concentration, (n, m)), np.finfo(float).tiny))
    target = low + (high - low) * rng.uniform(_MARGIN, 1 - _MARGIN, n)
    log_p -= log_p.max(axis=1, keepdims=True)
    # In this unit the second class has log odds -1, so s is the logit between the first two.
    ranked = -np.sort(-log_p, axis=1)[:, : min(K_MAX, m)].T
    unit = -ranked[1]
    inverse_temperature = _solve(np.ascontiguousarray(ranked[1:] / unit), target)
    log_p *= (inverse_temperature / unit)[:, None]
    log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    return log_p


def _solve(rivals: Floats, target: Floats) -> Floats:
    """Inverse temperatures at which rows have the target ambiguity, by bisection."""
    low, high = np.zeros_like(target), np.full_like(target, _STEEPEST)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_flat = _tempered_ambiguity(rivals, middle) > target
        low, high = np.where(too_flat, middle, low), np.where(too_flat, high, middle)
    return (low + high) / 2


def _tempered_ambiguity(rivals: Floats, s: Floats) -> Floats:
    """Ambiguity of rows with log odds `s * rivals` against their largest class."""
    mass, energy, largest = np.ones_like(s), np.zeros_like(s), np.zeros_like(s)
    for k, log_odds in enumerate(rivals, start=2):
        exponent = s * log_odds
        weight = np.exp(exponent)
        mass += weight
        energy += weight * exponent
        np.maximum(largest, (np.log(mass) - energy / mass) / math.log(k), out=largest)
    return largest


def adjust_draws(draws: Draws, alpha: float) -> Floats:
    r"""One iteration of alternating normalization in every draw at once, up to row sums.

    With :math:`\sigma` the logistic function, the new row is proportional to

    .. math:: q_j \, \frac{b_j^\alpha}{\sum_i A_{ij}^\alpha + b_j^\alpha}
              = q_j \, \sigma\Big(\alpha \log b_j - \log \sum_i A_{ij}^\alpha\Big).

    It is :func:`altnorm.alternating_normalization` for many small problems side by side.

    Parameters
    ----------
    draws : Draws
        References, rows and priors.
    alpha : float
        Exponent.

    Returns
    -------
    array of shape (n_draws, n_rows, m)
        New rows, not divided by their sums.
    """
    peak = draws.log_reference.max(axis=1, keepdims=True)
    powers = np.exp(alpha * (draws.log_reference - peak))
    log_sums = alpha * peak + np.log(powers.sum(axis=1, keepdims=True))
    with np.errstate(over="ignore"):  # the odds of a class that all but vanishes
        share = 1 / (1 + np.exp(log_sums - alpha * draws.log_rows))
    share *= draws.prior[:, None, :]
    return share
