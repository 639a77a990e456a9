r"""The paper's Monte Carlo study: what one iteration does to random rows of a given ambiguity.

For each number of classes and each pair of ambiguity intervals, a draw is a reference
:math:`A_0` of :math:`m - 1` rows, a prior :math:`q`, and rows :math:`b_0`. Two numbers say what
the iteration did to a row: its *gain* :math:`\delta = q \cdot (b_1 - b_0) / q \cdot b_0`, and
whether it *switched*, that is, :math:`\delta > 0` and another class became the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

__all__ = [
    "Design",
    "Draws",
    "Estimate",
    "Simulation",
    "adjust_draws",
    "average",
    "draw",
    "draw_log_rows",
    "simulate",
    "table",
]

Floats = NDArray[np.float64]
Cell = tuple[int, int, int]

PAPER_SIZES = (*range(2, 11), *range(20, 101, 10))
PAPER_ALPHAS = (*(k / 10 for k in range(1, 10)), *(float(k) for k in range(1, 10)))
PAPER_EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)

K_MAX = 10  # the largest k of the ambiguity's top-k entropies
# Targets keep this share of the interval's width from its ends; the bisection errs by far less.
_MARGIN = 1e-6
_BISECTIONS = 46
_STEEPEST = 64.0  # here 9 rivals of log odds -64 give an ambiguity below 1e-25
_BLOCK = 2**17  # elements adjusted at a time, so that they stay in the cache


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
        uniform over the simplex. The paper does not give its own.
    random_state : int
        Same seed, same result, whatever the number of workers.
    """

    sizes: tuple[int, ...] = PAPER_SIZES
    alphas: tuple[float, ...] = PAPER_ALPHAS
    edges: tuple[float, ...] = PAPER_EDGES
    n_draws: int = 200
    n_rows: int = 100
    row_concentration: float = 1.0
    prior_concentration: float = 1.0
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


class Simulation(NamedTuple):
    """Means over the rows of each draw, of shape (sizes, A0, b0, draws, alphas)."""

    design: Design
    gain: Floats
    switched: Floats


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: Floats
    se: Floats


def simulate(
    design: Design | None = None,
    *,
    n_jobs: int | None = None,
    on_cell: Callable[[int, int], Any] | None = None,
) -> Simulation:
    """Run the study.

    Parameters
    ----------
    design : Design, optional
        None is the paper's: 104 million adjusted rows.
    n_jobs : int, optional
        Processes, as in scikit-learn; the result does not depend on it.
    on_cell : callable, optional
        Called after each cell with the number of cells done and the number of all.

    Returns
    -------
    Simulation
        Mean gain and share of switched rows in every draw at every alpha.

    Examples
    --------
    Rows in doubt change their class more often than sure rows:

    >>> from altnorm.simulation import Design, average, simulate
    >>> result = simulate(Design(sizes=(3,), alphas=(1.0,), n_draws=20, n_rows=10))
    >>> switched = average(result.switched, keep=(2,)).mean
    >>> bool(switched[-1] > switched[0])
    True
    """
    design = Design() if design is None else design
    cells = design.cells
    shape = (len(design.sizes), *2 * (len(design.intervals),), design.n_draws, len(design.alphas))
    gain, switched = np.empty(shape), np.empty(shape)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_run_cell)(design, cell) for cell in cells
    )
    for done, (cell, result) in enumerate(zip(cells, results, strict=True), start=1):
        gain[cell], switched[cell] = result
        if on_cell is not None:
            on_cell(done, len(cells))
    return Simulation(design, gain, switched)


def average(values: Floats, *, keep: tuple[int, ...] = ()) -> Estimate:
    """Mean over all axes but those kept, with a standard error over independent draws.

    Draws of different cells are independent; alphas within a draw share its rows and are averaged
    first, unless they are kept. Sizes and intervals are strata, fixed and equally weighted.

    Parameters
    ----------
    values : array of shape (sizes, A0, b0, draws, alphas)
        One of the arrays of a :class:`Simulation`, or their difference.
    keep : tuple of int
        Axes to keep, in ascending order: 0 sizes, 1 ambiguity of the reference, 2 ambiguity of
        the rows, 4 alphas.

    Returns
    -------
    Estimate
        Arrays over the kept axes.
    """
    if 4 not in keep:
        values = values.mean(axis=4, keepdims=True)
    n_draws = values.shape[3]
    variance = values.var(axis=3, ddof=1 if n_draws > 1 else 0, keepdims=True) / n_draws
    away = tuple(axis for axis in range(5) if axis not in keep)
    n_strata = math.prod(values.shape[axis] for axis in away if axis != 3)
    return Estimate(values.mean(axis=away), np.sqrt(variance.sum(axis=away)) / n_strata)


def table(result: Simulation) -> dict[str, list[float]]:
    """Columns of the study's table: one row for each size, pair of intervals and alpha.

    Parameters
    ----------
    result : Simulation
        The study.

    Returns
    -------
    dict of str to list
        Ends of the two intervals, mean gain, share of switched rows, and their standard errors
        over draws.
    """
    design = result.design
    rows = [
        (m, *a, *b, alpha)
        for m, a, b, alpha in product(
            design.sizes, design.intervals, design.intervals, design.alphas
        )
    ]
    names = ("m", "reference_low", "reference_high", "row_low", "row_high", "alpha")
    columns: dict[str, list[Any]] = dict(
        zip(names, map(list, zip(*rows, strict=True)), strict=True)
    )
    for name in ("gain", "switched"):
        estimate = average(getattr(result, name), keep=(0, 1, 2, 4))
        columns[name] = estimate.mean.ravel().tolist()
        columns[f"{name}_se"] = estimate.se.ravel().tolist()
    return columns


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
    prior = rng.dirichlet(np.full(m, design.prior_concentration), n_draws)
    return Draws(reference.reshape(n_draws, -1, m), rows.reshape(n_draws, -1, m), prior)


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

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import ambiguity
    >>> from altnorm.simulation import draw_log_rows
    >>> rows = np.exp(draw_log_rows(np.random.default_rng(0), 1000, 20, (0.25, 0.5)))
    >>> bool(np.all((ambiguity(rows) >= 0.25) & (ambiguity(rows) < 0.5)))
    True
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


def _run_cell(design: Design, cell: Cell) -> tuple[Floats, Floats]:
    """Mean gain and share of switched rows of every draw (rows) at every alpha (columns)."""
    draws = draw(design, cell)
    parts = [_measure(block, design.alphas) for block in _blocks(draws)]
    gain, switched = zip(*parts, strict=True)
    return np.concatenate(gain), np.concatenate(switched)


def _blocks(draws: Draws) -> Iterator[Draws]:
    """Few draws at a time."""
    n_draws = len(draws.prior)
    step = max(1, _BLOCK * n_draws // max(draws.log_rows.size, draws.log_reference.size))
    for start in range(0, n_draws, step):
        yield Draws(*(array[start : start + step] for array in draws))


def _measure(draws: Draws, alphas: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Mean gain and share of switched rows, of shape (draws, alphas)."""
    before = _agreement(np.exp(draws.log_rows), draws.prior)
    first = draws.log_rows.argmax(axis=2)
    gains, switches = [], []
    for alpha in alphas:
        new = adjust_draws(draws, alpha)
        gain = _agreement(new, draws.prior) / before - 1
        switched = (gain > 0) & (new.argmax(axis=2) != first)
        gains.append(gain.mean(axis=1))
        switches.append(switched.mean(axis=1))
    return np.stack(gains, axis=1), np.stack(switches, axis=1)


def _agreement(rows: Floats, prior: Floats) -> Floats:
    """Inner product of each row, divided by its sum, with the draw's prior."""
    sums = rows @ np.stack([prior, np.ones_like(prior)], axis=2)
    return sums[..., 0] / sums[..., 1]
