"""Tuning with defaults: how long, and how much memory."""

from __future__ import annotations

import json
import sys

import numpy as np
from scipy.special import expit

from altnorm import AlternatingNormalizerCV
from benchmarks.harness import Row, benchmark, peak_gigabytes, run_alone, seconds


@benchmark
def tuning() -> list[Row]:
    """The sizes of DialogRE and of a usual classifier."""
    return [_row(1_914, 36, "pairs", 10), _row(10_000, 100, "classes", 60)]


@benchmark
def tuning_large() -> list[Row]:
    """The size of ImageNet's validation set."""
    return [_row(50_000, 1_000, "classes", 1_200, 4)]


def _row(n: int, m: int, mode: str, limit: float, memory: float | None = None) -> Row:
    time, gigabytes, n_settings = run_alone("bench_tuning", n, m, mode)
    ok = time <= limit and (memory is None or gigabytes <= memory)
    told = f"{time:.1f} s, {gigabytes:.1f} GB, {n_settings} settings"
    target = f"<= {limit:g} s" + ("" if memory is None else f", <= {memory:g} GB")
    what = f"AlternatingNormalizerCV, defaults, {n:,} x {m:,}{' pairs' if mode == 'pairs' else ''}"
    return Row("tuning", what, told, target, ok)


def measure(n: int, m: int, mode: str) -> tuple[float, float, int]:
    """Seconds of `fit`, the memory of this process, and how many settings were scored."""
    if mode == "pairs":
        data = _tags(n, m)
        model = AlternatingNormalizerCV(multilabel="pairs", random_state=0)
    else:
        data = _classes(n, m)
        model = AlternatingNormalizerCV(n_jobs=2, random_state=0)
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
