"""Single rows behind the means: who gains, and what happens to sure rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from experiments.simulation.draws import Design, adjust_draws, draw

__all__ = ["RowGains", "describe_rows", "sharpened_share"]

TOP = 0.05  # the share of rows whose part in the sum is reported
RARE = 0.5  # a class is rare if its prior is below this multiple of 1/m


class RowGains(NamedTuple):
    """Gains of single rows, each of shape (intervals of the rows,)."""

    mean: np.ndarray
    median: np.ndarray
    top_share: np.ndarray  # part of the sum that the top 5 % of rows carry
    rare: np.ndarray  # mean over rows whose first class is rare
    common: np.ndarray  # mean over the others


def describe_rows(design: Design, *, n_jobs: int | None = None) -> RowGains:
    """How gains are spread over rows, for each interval of the rows."""
    cells = design.cells
    parts = Parallel(n_jobs=n_jobs)(delayed(_row_gains)(design, cell) for cell in cells)
    statistics = []
    for b in range(len(design.intervals)):
        chosen = [part for cell, part in zip(cells, parts, strict=True) if cell[2] == b]
        gain, rare = (np.concatenate(x) for x in zip(*chosen, strict=True))
        top = np.sort(gain)[-max(1, round(TOP * gain.size)) :]
        statistics.append(
            (
                gain.mean(),
                np.median(gain),
                top.sum() / gain.sum(),
                gain[rare].mean(),
                gain[~rare].mean(),
            )
        )
    return RowGains(*np.array(statistics).T)


def _row_gains(design: Design, cell: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Gain of every row at every alpha, and whether its first class is rare."""
    draws = draw(design, cell)
    m = draws.prior.shape[1]
    weight = draws.prior[:, None, :]
    before = (np.exp(draws.log_rows) * weight).sum(axis=2)
    first = draws.log_rows.argmax(axis=2)
    rare = np.take_along_axis(draws.prior, first, axis=1) < RARE / m
    gains = []
    for alpha in design.alphas:
        new = adjust_draws(draws, alpha)
        gains.append((new * weight).sum(axis=2) / new.sum(axis=2) / before - 1)
    return np.ravel(gains), np.tile(rare.ravel(), len(design.alphas))


def sharpened_share(design: Design, *, above: float) -> float:
    """Share of rows that keep their class and become surer, where sure rows meet vague references.

    Surest interval of the rows, vaguest of the reference, exponents of at least `above`.
    """
    shares = []
    for size in range(len(design.sizes)):
        draws = draw(design, (size, len(design.intervals) - 1, 0))
        before = np.exp(draws.log_rows)
        for alpha in (alpha for alpha in design.alphas if alpha >= above):
            new = adjust_draws(draws, alpha)
            new /= new.sum(axis=2, keepdims=True)
            kept = new.argmax(axis=2) == before.argmax(axis=2)
            shares.append(np.mean(kept & (new.max(axis=2) > before.max(axis=2))))
    return float(np.mean(shares))
