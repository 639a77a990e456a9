"""Tuning with defaults: how long, and how much memory."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.harness import Row, benchmark

# In a process of its own, so that its memory is its own; data first, then the time of `fit` alone.
CODE = """
import json, resource, sys, time
import numpy as np
from altnorm import AlternatingNormalizerCV

n, m, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
if mode == "pairs":
    y = rng.random((n, m)) < 0.05
    proba = 1 / (1 + np.exp(-(3 * y - 2.5 + rng.normal(size=(n, m)))))
    model = AlternatingNormalizerCV(multilabel="pairs", random_state=0)
else:
    y = rng.integers(m, size=n)
    logits = rng.normal(size=(n, m)) + rng.normal(size=m)
    logits[np.arange(n), y] += 3
    proba = np.exp(logits)
    proba /= proba.sum(axis=1, keepdims=True)
    del logits
    model = AlternatingNormalizerCV(n_jobs=2, random_state=0)
start = time.perf_counter()
model.fit(proba, y)
seconds = time.perf_counter() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
n_settings = len(model.cv_results_["score"])
print(json.dumps({"seconds": seconds, "memory": memory, "n_settings": n_settings}))
"""


def _run(n: int, m: int, mode: str) -> dict[str, float]:
    told = subprocess.run(
        [sys.executable, "-c", CODE, str(n), str(m), mode],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(told.stdout))


def _row(n: int, m: int, mode: str, limit: float, memory: float | None = None) -> Row:
    found = _run(n, m, mode)
    ok = found["seconds"] <= limit and (memory is None or found["memory"] <= memory)
    told = f"{found['seconds']:.1f} s, {found['memory']:.1f} GB, {found['n_settings']} settings"
    target = f"<= {limit:g} s" + ("" if memory is None else f", <= {memory:g} GB")
    what = f"AlternatingNormalizerCV, defaults, {n:,} x {m:,}{' pairs' if mode == 'pairs' else ''}"
    return Row("tuning", what, told, target, ok)


@benchmark
def tuning() -> list[Row]:
    """The sizes of DialogRE and of a usual classifier."""
    return [_row(1_914, 36, "pairs", 10), _row(10_000, 100, "classes", 60)]


@benchmark
def tuning_large() -> list[Row]:
    """The size of ImageNet's validation set."""
    return [_row(50_000, 1_000, "classes", 1_200, 4)]
