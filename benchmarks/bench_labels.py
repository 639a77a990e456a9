"""Several labels per row at the scale of ultra-fine entity typing, in a process of its own."""

from __future__ import annotations

import json
import sys

import numpy as np

from altnorm import AlternatingNormalizer
from benchmarks.harness import Row, benchmark, peak_gigabytes, run_alone, seconds

N_ROWS, N_LABELS = 2_000, 10_331


@benchmark
def many_labels() -> list[Row]:
    """Fit and transform in both modes."""
    what = f"{N_ROWS:,} rows, {N_LABELS:,} labels, fit and transform"
    rows = []
    for mode in ("pairs", "labelwise"):
        time, gigabytes = run_alone("bench_labels", mode)
        measured = f"{time:.1f} s, {gigabytes:.2f} GB resident"
        rows.append(Row("many labels", f"{what}, {mode}", measured))
    return rows


def measure(mode: str) -> tuple[float, float]:
    """Seconds of fit and transform, and the memory of this process."""
    rng = np.random.default_rng(0)
    proba = rng.random((N_ROWS, N_LABELS), dtype=np.float32) ** 30
    labels = rng.random((N_ROWS, N_LABELS), dtype=np.float32) < 0.001
    normalizer = AlternatingNormalizer(16.0, multilabel=mode, threshold=0.25, prior="shrunk")
    time = seconds(lambda: normalizer.fit(proba, labels).transform(proba))
    return time, peak_gigabytes()


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
