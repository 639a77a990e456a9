"""Tuning with defaults: how long, and how much memory."""

from __future__ import annotations

import json
import sys

import numpy as np
from scipy.special import expit

from altnorm import Adjuster, load_demo
from benchmarks.harness import Row, benchmark, peak_gigabytes, run_alone, seconds


@benchmark
def tuning() -> list[Row]:
    """The sizes of DialogRE, of the demo and of a usual classifier."""
    return [
        _row(1_914, 36, "pairs", 10),
        _row(3_000, 150, "demo", 20),
        _row(10_000, 100, "classes", 30),
    ]


@benchmark
def tuning_large() -> list[Row]:
    """The size of ImageNet's validation set."""
    return [_row(50_000, 1_000, "classes", 600, 4)]


def _row(n: int, m: int, mode: str, limit: float, memory: float | None = None) -> Row:
    time, gigabytes, n_settings = run_alone("bench_tuning", n, m, mode)
    ok = time <= limit and (memory is None or gigabytes <= memory)
    measured = f"{time:.1f} s, {gigabytes:.1f} GB, {n_settings} settings"
    target = f"<= {limit:g} s" + ("" if memory is None else f", <= {memory:g} GB")
    kind = {"pairs": " pairs", "demo": ", the demo's predictions", "classes": ""}[mode]
    what = f"Adjuster, defaults, {n:,} x {m:,}{kind}"
    return Row("tuning", what, measured, target, ok)


def measure(n: int, m: int, mode: str) -> tuple[float, float, int]:
    """Seconds of `fit`, the memory of this process, and how many settings were scored."""
    model = Adjuster(multilabel="pairs" if mode == "pairs" else None, n_jobs=2)
    if mode == "pairs":
        data = _tags(n, m)
    elif mode == "demo":
        validation = load_demo().validation
        data = validation.proba, validation.codes
    else:
        data = _classes(n, m)
    time = seconds(lambda: model.fit(*data))
    return time, peak_gigabytes(), len(model.cv_results_["score"])


def _tags(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.random((n, m)) < 0.05
    return expit(3 * y - 2.5 + rng.normal(size=(n, m))), y


def _classes(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of a classifier that prefers some classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(m, size=n)
    logits = rng.normal(size=(n, m))
    logits += rng.normal(size=m)
    logits[np.arange(n), y] += 3
    np.exp(logits, out=logits)  # in place: the data should not set the peak of the memory
    logits /= logits.sum(axis=1, keepdims=True)
    return logits, y


if __name__ == "__main__":
    size, classes, mode = sys.argv[1:]
    print(json.dumps(measure(int(size), int(classes), mode)))
