"""The paper's grid for several labels per row, all settings of it, in a moment.

In ``pairs`` mode every probability is adjusted by one and the same function, so a setting is a
table over the distinct probabilities. Predictions are stored rounded, which leaves some hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

import altnorm

__all__ = [
    "ALPHAS",
    "DEPTHS",
    "THRESHOLDS",
    "GridPoint",
    "best_point",
    "count_doubt",
    "fit_point",
    "scan",
]

ALPHAS = (*(round(0.1 * i, 1) for i in range(1, 10)), *(float(i) for i in range(1, 36)))
DEPTHS = (1, 2, 3, 4, 5)
THRESHOLDS = (0.25, 0.5, 0.75)


class GridPoint(NamedTuple):
    """A setting and its score on validation data."""

    alpha: float
    depth: int
    threshold: float
    score: float


def scan(
    proba: np.ndarray,
    prior: float,
    score: Callable[[np.ndarray], float],
    *,
    alphas: Sequence[float] = ALPHAS,
    depths: Sequence[int] = DEPTHS,
    thresholds: Sequence[float] = THRESHOLDS,
    reference: np.ndarray | None = None,
) -> list[GridPoint]:
    """Score every setting on the predictions it takes its reference from, as the paper does.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Validation predictions.
    prior : float
        Probability of "yes".
    score : callable
        Score of the adjusted predictions.
    alphas, depths, thresholds
        The grid.
    reference : ndarray of shape (k,), optional
        Probabilities of the entries that serve as reference; without, all that are sure.

    Returns
    -------
    list of GridPoint
        In the order alpha, threshold, depth.
    """
    values, where, counts = np.unique(proba, return_inverse=True, return_counts=True)
    where = where.reshape(proba.shape)
    points = []
    for alpha in alphas:
        for threshold in thresholds:
            tables = _tables(values, counts, prior, alpha, threshold, max(depths), reference)
            for depth, table in enumerate(tables, start=1):
                if depth in depths:
                    points.append(GridPoint(alpha, depth, threshold, score(table[where])))
    return points


def _tables(
    values: np.ndarray,
    counts: np.ndarray,
    prior: float,
    alpha: float,
    threshold: float,
    depth: int,
    reference: np.ndarray | None,
) -> Iterator[np.ndarray]:
    """The adjusted values after each iteration; those not in doubt as they were."""
    rows = np.stack([values, 1 - values], axis=1)
    doubt = altnorm.ambiguity(rows) > threshold
    if not doubt.any() or doubt.all():
        return
    sure, weight = values[~doubt], counts[~doubt]
    if reference is not None:
        sure, weight = np.unique(reference, return_counts=True)
    steps = altnorm.trajectory(
        rows[doubt],
        np.stack([sure, 1 - sure], axis=1),
        prior=np.array([prior, 1 - prior]),
        alpha=alpha,
        depth=depth,
        reference_weight=weight.astype(float),
    )
    for step in steps[1:]:
        table = values.copy()
        table[doubt] = step[:, 0]
        yield table


def count_doubt(proba: np.ndarray, n_labels: int) -> list[dict[str, float]]:
    """Entries in doubt at each tau, and their share in per cent.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Predictions.
    n_labels : int
        Labels that there are; those without a column are never in doubt.
    """
    values, counts = np.unique(proba, return_counts=True)
    ambiguity = altnorm.ambiguity(np.stack([values, 1 - values], axis=1))
    entries = len(proba) * n_labels
    found = {t: int(counts[ambiguity > t].sum()) for t in THRESHOLDS}
    return [
        {"threshold": t, "entries": entries, "in_doubt": n, "share": 100 * n / entries}
        for t, n in found.items()
    ]


def best_point(points: Sequence[GridPoint]) -> GridPoint:
    """The best setting; of equally good ones the one with the fewest iterations."""
    return max(points, key=lambda point: (round(point.score, 12), -point.depth))


def fit_point(point: GridPoint, proba: np.ndarray, prior: float) -> altnorm.AlternatingNormalizer:
    """The setting as a fitted normalizer."""
    return altnorm.AlternatingNormalizer(
        point.alpha,
        point.depth,
        point.threshold,
        prior=np.array([prior, 1 - prior]),
        multilabel="pairs",
    ).fit(proba)
