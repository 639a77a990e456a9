"""What the paper did not show: more iterations, and other ways to draw and to measure."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

import altnorm
from experiments.simulation.draws import Design, adjust_draws, draw
from experiments.simulation.study import Simulation, simulate

__all__ = ["Depths", "Variant", "by_depth", "variants"]

MAX_DEPTH = 5


class Depths(NamedTuple):
    """Means over the rows of each draw, of shape (depths, sizes, A0, b0, draws, alphas)."""

    design: Design
    gain: np.ndarray
    switched: np.ndarray


class Variant(NamedTuple):
    """The study drawn or measured in another way; arrays as in a Simulation."""

    name: str
    gain: np.ndarray
    switched: np.ndarray | None


def by_depth(design: Design, *, n_jobs: int | None = None) -> Depths:
    """The study after 1 to 5 iterations, from `altnorm.trajectory`."""
    cells = design.cells
    parts = Parallel(n_jobs=n_jobs)(delayed(_cell_by_depth)(design, cell) for cell in cells)
    n = len(design.intervals)
    shape = (MAX_DEPTH, len(design.sizes), n, n, design.n_draws, len(design.alphas))
    gain, switched = np.empty(shape), np.empty(shape)
    for (i, a, b), part in zip(cells, parts, strict=True):
        gain[:, i, a, b], switched[:, i, a, b] = part
    return Depths(design, gain, switched)


def _cell_by_depth(design: Design, cell: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    draws = draw(design, cell)
    measured = [
        [_measure_path(np.exp(rows), np.exp(reference), prior, alpha) for alpha in design.alphas]
        for reference, rows, prior in zip(*draws, strict=True)
    ]
    gain, switched = np.moveaxis(np.array(measured), (2, 3), (0, 1))
    return gain, switched


def _measure_path(
    rows: np.ndarray, reference: np.ndarray, prior: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean gain over no iteration, and share of switched rows, at each depth."""
    path = altnorm.trajectory(rows, reference, prior=prior, alpha=alpha, depth=MAX_DEPTH)
    agreement, first = path @ prior, path.argmax(axis=2)
    gain = agreement[1:] / agreement[0] - 1
    switched = (gain > 0) & (first[1:] != first[0])
    return gain.mean(axis=1), switched.mean(axis=1)


def variants(
    design: Design, full: Simulation, authors: Simulation, *, n_jobs: int | None = None
) -> list[Variant]:
    """Other exponents, priors, rows and another average, to see what the claims need."""
    alphas = np.array(full.design.alphas)
    result = [
        Variant("as in the study", full.gain, full.switched),
        Variant("the authors' prior", authors.gain, authors.switched),
    ]
    for name, kept in (("only alpha ≤ 1", alphas <= 1), ("only alpha ≥ 2", alphas >= 2)):
        result.append(Variant(name, full.gain[..., kept], full.switched[..., kept]))
    changes = {
        "prior from Dirichlet(10)": {"prior_concentration": 10.0},
        "prior from Dirichlet(100)": {"prior_concentration": 100.0},
        "rows from Dirichlet(0.3)": {"row_concentration": 0.3},
        "rows from Dirichlet(5)": {"row_concentration": 5.0},
    }
    for name, change in changes.items():
        _, gain, switched = simulate(replace(design, **change), n_jobs=n_jobs)
        result.append(Variant(name, gain, switched))
    return [*result, Variant("ratio of means", pooled_gain(design, n_jobs=n_jobs), None)]


def pooled_gain(design: Design, *, n_jobs: int | None = None) -> np.ndarray:
    """The gain with the ratio taken after averaging: mean q.b1 / mean q.b0 - 1 in each cell.

    The values of the draws are linearised, so that their mean is the ratio and their spread gives
    its standard error.
    """
    cells = design.cells
    parts = Parallel(n_jobs=n_jobs)(delayed(_pooled_cell)(design, cell) for cell in cells)
    n = len(design.intervals)
    gain = np.empty((len(design.sizes), n, n, design.n_draws, len(design.alphas)))
    for cell, part in zip(cells, parts, strict=True):
        gain[cell] = part
    return gain


def _pooled_cell(design: Design, cell: tuple[int, int, int]) -> np.ndarray:
    draws = draw(design, cell)
    weight = draws.prior[:, None, :]
    before = (np.exp(draws.log_rows) * weight).sum(axis=2).mean(axis=1)[:, None]
    after = []
    for alpha in design.alphas:
        new = adjust_draws(draws, alpha)
        after.append(((new * weight).sum(axis=2) / new.sum(axis=2)).mean(axis=1))
    stacked = np.stack(after, axis=1)
    ratio = stacked.mean(axis=0) / before.mean()
    return (stacked - ratio * before) / before.mean() + ratio - 1
