"""How long one row takes: what a service that answers request by request pays."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from altnorm import Adjuster, AlternatingNormalizer
from benchmarks.data import SURE, classifier_rows
from benchmarks.harness import Row, benchmark

LIMIT = 0.5e-3
CLASSES = (10, 50, 150)
DEPTHS = (1, 2, 3, 5)
N_ROWS = 3000
REPEATS, CALLS = 50, 10


@benchmark
def one_row() -> list[Row]:
    """`transform` of a single row in doubt."""
    return [_row(m, name, fitted) for m in CLASSES for name, fitted in _normalizers(m)]


def _normalizers(m: int) -> list[tuple[str, Any]]:
    """Fitted to classifier's rows: one iteration, some, and an Adjuster that does both stages."""
    rng = np.random.default_rng(0)
    proba = classifier_rows(rng, N_ROWS, m, SURE / 2)
    tilted = proba * np.linspace(1, 20, m)  # a bias for an Adjuster to find
    tilted /= tilted.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(m, p=row) for row in proba])
    adjuster = Adjuster(families=("alternating", "bias"), cv=2, n_repeats=1).fit(tilted, y)
    plain = [
        (f"AlternatingNormalizer, depth {d}", AlternatingNormalizer(1.0, d, 0.5).fit(tilted, y))
        for d in DEPTHS
    ]
    return [
        *plain,
        (f"Adjuster ({adjuster.family_})", adjuster),
    ]


def _row(m: int, name: str, fitted: Any) -> Row:
    doubtful = np.full((1, m), 1 / m)
    seconds = min(_mean_time(fitted, doubtful) for _ in range(REPEATS))
    reference = getattr(getattr(fitted, "best_normalizer_", fitted), "reference_", None)
    what = f"{name}, {m} classes"
    if reference is not None:
        what += f", {len(reference):,} references"
    return Row("one row", what, f"{seconds * 1e3:.2f} ms", "< 0.5 ms", seconds < LIMIT)


def _mean_time(fitted: Any, row: np.ndarray) -> float:
    start = perf_counter()
    for _ in range(CALLS):
        fitted.transform(row)
    return (perf_counter() - start) / CALLS
