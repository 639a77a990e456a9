r"""The paper's Monte Carlo study: what one iteration does to random rows of a given ambiguity.

For each number of classes and each pair of ambiguity intervals, a draw is a reference
:math:`A_0` of :math:`m - 1` rows, a prior :math:`q`, and rows :math:`b_0`. Two numbers say what
the iteration did to a row: its *gain* :math:`\delta = q \cdot (b_1 - b_0) / q \cdot b_0`, and
whether it *switched*, that is, :math:`\delta > 0` and another class became the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from experiments.simulation.draws import Cell, Design, Draws, Floats, adjust_draws, draw

_BLOCK = 2**17  # elements adjusted at a time, so that they stay in the cache


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


def pair_table(result: Simulation) -> dict[str, list[float]]:
    """Columns of a smaller table: one row for each pair of intervals, means over all else."""
    pairs = list(product(result.design.intervals, result.design.intervals))
    columns = {
        "reference_low": [a[0] for a, _ in pairs],
        "reference_high": [a[1] for a, _ in pairs],
        "row_low": [b[0] for _, b in pairs],
        "row_high": [b[1] for _, b in pairs],
    }
    for name in ("gain", "switched"):
        estimate = average(getattr(result, name), keep=(1, 2))
        columns[name] = estimate.mean.ravel().tolist()
        columns[f"{name}_se"] = estimate.se.ravel().tolist()
    return columns


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
    # Both sums in one product: rows are read once.
    sums = rows @ np.stack([prior, np.ones_like(prior)], axis=2)
    return sums[..., 0] / sums[..., 1]
