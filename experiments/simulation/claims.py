"""The paper's three claims about the simulation, tested."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from experiments.simulation.study import Estimate, Simulation, average

__all__ = [
    "AGREES",
    "DISAGREES",
    "OPEN",
    "Contrast",
    "Shares",
    "between_rows",
    "confident_reference",
    "lower_bounds",
    "negative_cells",
    "spread_shares",
]

AGREES, DISAGREES, OPEN = "agrees", "disagrees", "undecided"
CONFIDENCE = 0.95
SMALL_SHARE = 0.25  # "depends little": less than a quarter of the spread between the pairs
_RESAMPLES = 20_000


@dataclass(frozen=True)
class Contrast:
    """Differences that a claim says are positive, with simultaneous confidence limits."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def verdict(self) -> str:
        """Agrees if all differences are surely positive, disagrees if one is surely negative."""
        if np.all(self.low > 0):
            return AGREES
        return DISAGREES if np.any(self.high < 0) else OPEN


@dataclass(frozen=True)
class Shares:
    """Shares of the spread between the interval pairs, each as (estimate, low, high)."""

    reference: tuple[float, float, float]
    rows: tuple[float, float, float]

    @property
    def verdict(self) -> str:
        """Whether the reference's share is surely small, or surely not."""
        _, low, high = self.reference
        if high < SMALL_SHARE:
            return AGREES
        return DISAGREES if low > SMALL_SHARE else OPEN


def lower_bounds(pairs: Estimate) -> Contrast:
    """Claim (a): the mean gain of every pair of intervals, against zero."""
    return _contrast(pairs.mean, pairs.se)


def between_rows(pairs: Estimate) -> Contrast:
    """Claim (b): very ambiguous rows minus each other interval, for every reference interval."""
    return _difference(pairs, (slice(None), slice(-1, None)), (slice(None), slice(None, -1)))


def confident_reference(pairs: Estimate) -> Contrast:
    """Claim (b), "more so": among very ambiguous rows, the surest reference minus the others."""
    return _difference(pairs, (slice(None, 1), -1), (slice(1, None), -1))


def spread_shares(pairs: Estimate, *, seed: int = 0) -> Shares:
    """Claim (c): two-way analysis of variance of the table of pairs.

    The means are independent and nearly normal with known standard errors, so the table is drawn
    again from them for the confidence interval.
    """
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((_RESAMPLES, *pairs.mean.shape))
    drawn = _main_effects(pairs.mean + noise * pairs.se)
    tail = (1 - CONFIDENCE) / 2
    limits = np.quantile(drawn, [tail, 1 - tail], axis=0)
    point = _main_effects(pairs.mean[None])[0]
    reference, rows = (
        tuple(float(x) for x in (point[i], limits[0, i], limits[1, i])) for i in (0, 1)
    )
    return Shares(reference, rows)


def negative_cells(result: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Which cells (size, A0, b0, alpha) have a mean gain below zero, and which surely so."""
    cells = average(result.gain, keep=(0, 1, 2, 4))
    contrast = _contrast(cells.mean, cells.se)
    return contrast.mean < 0, contrast.high < 0


def _contrast(mean: np.ndarray, se: np.ndarray) -> Contrast:
    """Bonferroni limits: together they hold with the stated confidence."""
    z = norm.isf((1 - CONFIDENCE) / 2 / mean.size)
    return Contrast(mean, mean - z * se, mean + z * se)


def _difference(pairs: Estimate, plus: tuple, minus: tuple) -> Contrast:
    mean = pairs.mean[plus] - pairs.mean[minus]
    return _contrast(mean, np.hypot(pairs.se[plus], pairs.se[minus]))


def _main_effects(tables: np.ndarray) -> np.ndarray:
    """Shares of the sum of squares due to table rows and to columns."""
    centred = tables - tables.mean(axis=(1, 2), keepdims=True)
    total = (centred**2).sum(axis=(1, 2))
    n_rows, n_columns = tables.shape[1:]
    by_row = n_columns * (centred.mean(axis=2) ** 2).sum(axis=1)
    by_column = n_rows * (centred.mean(axis=1) ** 2).sum(axis=1)
    return np.stack([by_row / total, by_column / total], axis=1)
