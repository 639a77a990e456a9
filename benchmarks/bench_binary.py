"""Two classes: a reference of 20 million pairs, in a process of its own to read its memory."""

from __future__ import annotations

import json
import sys

import numpy as np
from scipy.special import expit

from altnorm import alternating_normalization
from benchmarks.harness import Row, benchmark, peak_gigabytes, run_alone, seconds

N_REFERENCE, N_ROWS, DEPTH = 20_000_000, 20_000, 5
LIMIT_SECONDS, LIMIT_GIGABYTES = 60, 3


@benchmark
def two_classes() -> list[Row]:
    """Time and memory of the two-class kernel."""
    rows = []
    for alpha in (1.0, 0.7, 5.0):
        time, gigabytes = run_alone("bench_binary", alpha)
        rows.append(
            Row(
                "two classes",
                f"{N_REFERENCE:,} references, {N_ROWS:,} rows, depth {DEPTH}, alpha {alpha:g}",
                f"{time:.1f} s, {gigabytes:.2f} GB resident",
                f"< {LIMIT_SECONDS} s, < {LIMIT_GIGABYTES} GB",
                time < LIMIT_SECONDS and gigabytes < LIMIT_GIGABYTES,
            )
        )
    return rows


def measure(alpha: float) -> tuple[float, float]:
    """Seconds of one call, and the largest resident size of this process so far, in GB."""
    rng = np.random.default_rng(4)
    reference, proba = _pairs(rng, N_REFERENCE, 4.0), _pairs(rng, N_ROWS, 1.0)
    time = seconds(
        lambda: alternating_normalization(
            proba, reference, prior=[0.1, 0.9], alpha=alpha, depth=DEPTH
        )
    )
    return time, peak_gigabytes()


def _pairs(rng: np.random.Generator, n: int, spread: float) -> np.ndarray:
    pairs = np.empty((n, 2))
    pairs[:, 0] = expit(rng.normal(-2.0, spread, n))
    np.subtract(1.0, pairs[:, 0], out=pairs[:, 1])
    return pairs


if __name__ == "__main__":
    print(json.dumps(measure(float(sys.argv[1]))))
