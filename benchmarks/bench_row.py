"""How long one row takes: what a service that answers request by request pays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

from altnorm import Adjuster, AlternatingNormalizer
from altnorm.estimator.kinds import kind_of
from benchmarks.data import SURE, classifier_rows
from benchmarks.harness import Row, benchmark

LIMIT = 0.5e-3
CLASSES = (10, 50, 150)
SETTINGS = ((1.0, 1), (1.0, 2), (1.0, 3), (1.0, 5), (0.7, 5))  # exponent, depth
LABEL_SETTINGS = ((1.0, 1), (0.7, 3))
N_ROWS = 3000
REPEATS, CALLS = 50, 10


@benchmark
def one_row() -> list[Row]:
    """`transform` of a single row in doubt."""
    return [
        _row(m, name, fitted)
        for m in CLASSES
        for name, fitted in (*_normalizers(m), *_label_normalizers(m))
    ]


def _normalizers(m: int) -> Iterator[tuple[str, Any]]:
    """Fitted to classifier's rows: one iteration, some, and an Adjuster that does both stages."""
    rng = np.random.default_rng(0)
    proba = classifier_rows(rng, N_ROWS, m, SURE / 2)
    tilted = proba * np.linspace(1, 20, m)  # a bias for an Adjuster to find
    tilted /= tilted.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(m, p=row) for row in proba])
    for alpha, depth in SETTINGS:
        name = _named("AlternatingNormalizer", alpha, depth)
        yield name, AlternatingNormalizer(alpha, depth, 0.5).fit(tilted, y)
    adjuster = Adjuster(families=("alternating", "bias"), cv=2).fit(tilted, y)
    yield f"Adjuster ({adjuster.family_})", adjuster


def _label_normalizers(m: int) -> Iterator[tuple[str, Any]]:
    """Fitted to yes/no probabilities of as many labels."""
    rng = np.random.default_rng(1)
    proba = rng.beta(0.3, 0.9, size=(N_ROWS, m))
    y = rng.random(proba.shape) < proba
    for kind, (alpha, depth) in product(("labelwise", "pairs"), LABEL_SETTINGS):
        fitted = AlternatingNormalizer(alpha, depth, 0.5, multilabel=kind).fit(proba, y)
        yield _named(kind, alpha, depth), fitted


def _named(what: str, alpha: float, depth: int) -> str:
    exponent = "" if alpha == 1 else f"exponent {alpha:g}, "
    return f"{what}, {exponent}depth {depth}"


def _row(m: int, name: str, fitted: Any) -> Row:
    unsure = 1 / m if fitted.multilabel is None else 0.5
    doubtful = np.full((1, m), unsure)
    seconds = min(_mean_time(fitted, doubtful) for _ in range(REPEATS))
    reference = getattr(getattr(fitted, "model_", fitted), "reference_", None)
    what = f"{name}, {m} {kind_of(fitted).nouns[2]}"
    if reference is not None:
        what += f", {len(reference):,} references"
    return Row("one row", what, f"{seconds * 1e3:.2f} ms", "< 0.5 ms", seconds < LIMIT)


def _mean_time(fitted: Any, row: np.ndarray) -> float:
    start = perf_counter()
    for _ in range(CALLS):
        fitted.transform(row)
    return (perf_counter() - start) / CALLS
