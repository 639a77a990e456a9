"""How the cost of one core grows with classes, references and depth."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from altnorm import AlternatingNormalizer
from benchmarks.data import IN_DOUBT, SURE, classifier_rows
from benchmarks.harness import Row, benchmark, seconds

CASES = [  # classes, reference rows, depth, rows timed
    (10, 5_000, 1, 400_000),
    (100, 5_000, 1, 100_000),
    (1_000, 5_000, 1, 20_000),
    (1_000, 20_000, 1, 20_000),
    (100, 5_000, 2, 10_000),
    (100, 5_000, 5, 5_000),
    (1_000, 5_000, 2, 2_000),
    (1_000, 20_000, 2, 1_000),
]
N_PER_BILLION = 1e9


@benchmark
def scale() -> list[Row]:
    """Rows a second, about half of them in doubt, and what a billion rows would take."""
    rng = np.random.default_rng(0)
    rows = []
    for m, n, depth, count in CASES:
        reference = classifier_rows(rng, n, m, SURE)
        normalizer = AlternatingNormalizer(depth=depth, prior="uniform", reference="all")
        normalizer.fit(reference)
        half = count // 2
        proba = np.concatenate(
            [classifier_rows(rng, half, m, SURE), classifier_rows(rng, half, m, IN_DOUBT)]
        )
        with threadpool_limits(1):
            best = min(seconds(lambda p=proba, f=normalizer: f.transform(p)) for _ in range(3))
        rate = len(proba) / best
        doubt = np.mean((normalizer.transform(proba) != proba).any(axis=1))
        what = f"{m:,} classes, {n:,} references, depth {depth}, {doubt:.0%} in doubt"
        hours = N_PER_BILLION / rate / 3600
        took = f"{float(f'{hours:.2g}'):,g} core-hours"
        measured = f"{rate:,.0f} rows/s per core; a billion rows take {took}"
        rows.append(Row("scale", what, measured))
    return rows
