"""The tables of the geometry study's page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.simulation.geometry.study import Fates, Rates

__all__ = ["make_tables"]


def make_tables(
    *,
    grid_error: float,
    grid_largest: float,
    certain: np.ndarray,
    rates: Rates,
    fates: Fates,
    sizes: Sequence[int],
    alphas: np.ndarray,
) -> dict[str, str]:
    """The tables of the page."""
    return {
        "two by two": markdown_table(
            ["two rows, two classes, alpha = 1", "measured"],
            [
                ["largest distance from the formula", f"{grid_error:.1g}"],
                ["largest probability reached", f"{grid_largest:.3f}"],
                [f"distance after {len(certain) - 1} iterations", f"{certain[-1]:.4f}"],
            ],
        ),
        "rates": _rates_table(rates),
        "fates": _fates_table(fates, sizes, alphas),
    }


def _rates_table(rates: Rates) -> str:
    difference = np.abs(rates.measured - rates.predicted)
    rows = []
    for m in np.unique(rates.m):
        at = rates.m == m
        numbers = (np.median(rates.predicted[at]), np.median(difference[at]), difference[at].max())
        rows.append([f"{m}", *(f"{x:.{d}f}" for x, d in zip(numbers, (2, 4, 3), strict=True))])
    header = ["m", "median σ₂²", "median difference", "largest difference"]
    return markdown_table(header, rows)


def _fates_table(fates: Fates, sizes: Sequence[int], alphas: np.ndarray) -> str:
    rows = []
    for i, m in enumerate(sizes):
        for j, alpha in enumerate(alphas):
            shares = (f"{x[i, j]:.0%}" for x in (fates.corner, fates.moving))
            rows.append([f"{m}", f"{alpha:g}", *shares, f"{fates.largest[i, j]:.2f}"])
    header = ["m", "alpha", "in a corner", "still moving", "mean largest probability"]
    return markdown_table(header, rows)
