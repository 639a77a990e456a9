"""Fitting with defaults: CPU time beside a logistic regression's, threads, and memory."""

from __future__ import annotations

import json
import sys
import warnings
from time import process_time

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegressionCV
from threadpoolctl import threadpool_limits

from altnorm import Adjuster
from benchmarks.harness import Row, benchmark, peak_gigabytes, run_alone, seconds

SIZES = (3_000, 6), (3_000, 10), (3_000, 50), (3_000, 150), (10_000, 100)
"""Rows and classes."""

MOST_TIME = 1.0
"""CPU time of a fit, relative to the regression's."""

SHORT, SHORT_ROUNDS = 30_000, 5
"""Probabilities up to which fits take turns so many times: neighbours on a machine disturb them."""

MOST_THREADS = 1.5
"""CPU time of a fit with all threads, relative to one thread."""


@benchmark
def tuning() -> list[Row]:
    """CPU time of a fit relative to ``LogisticRegressionCV(Cs=6, cv=5)`` on the same inputs."""
    return [_beside_regression(n, m) for n, m in SIZES]


@benchmark
def tuning_threads() -> list[Row]:
    """CPU time of a fit with all threads relative to one."""
    ratio = float(run_alone("bench_tuning", "threads", 3_000, 10))
    what = "Adjuster, 3,000 x 10, CPU time with all threads / with one"
    target = f"<= {MOST_THREADS:g}"
    return [Row("tuning_threads", what, f"{ratio:.2f}", target, ratio <= MOST_THREADS)]


@benchmark
def tuning_memory() -> list[Row]:
    """Memory of a process that makes many rows of few classes and fits."""
    rows = []
    for kind in ("adopted", "kept"):
        time, gigabytes = run_alone("bench_tuning", kind, 1_000_000, 10)
        what = f"Adjuster, 1,000,000 x 10, 80 MB of probabilities, decisions {kind}"
        measured = f"{gigabytes:.2f} GB ({gigabytes * 1e9 / 2**30:.2f} GiB) resident, {time:.0f} s"
        rows.append(Row("tuning_memory", what, measured, "<= 1 GB", gigabytes <= 1))
    return rows


@benchmark
def tuning_large() -> list[Row]:
    """The size of ImageNet's validation set."""
    time, gigabytes = run_alone("bench_tuning", "large", 50_000, 1_000)
    ok = time <= 120 and gigabytes <= 3
    measured = f"{time:.0f} s, {gigabytes:.1f} GB"
    return [Row("tuning_large", "Adjuster, 50,000 x 1,000", measured, "<= 120 s, <= 3 GB", ok)]


def _beside_regression(n: int, m: int) -> Row:
    ours, theirs = run_alone("bench_tuning", "ratio", n, m)
    ratio = ours / theirs
    measured = f"{ratio:.2f} ({ours:.1f} of {theirs:.1f} s)"
    what = f"Adjuster / LogisticRegressionCV, {n:,} x {m}, CPU time of one thread"
    return Row("tuning", what, measured, f"<= {MOST_TIME:g}", ratio <= MOST_TIME)


def cpu_seconds(proba: np.ndarray, y: np.ndarray) -> float:
    """CPU time of a fit."""
    start = process_time()
    Adjuster().fit(proba, y)
    return process_time() - start


def regression_seconds(proba: np.ndarray, y: np.ndarray) -> float:
    """CPU time of the regression on the same inputs."""
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge in its hundred steps
        LogisticRegressionCV(Cs=6, cv=5).fit(np.log(proba), y)
    return process_time() - start


def measure_ratio(n: int, m: int) -> tuple[float, float]:
    """CPU times of a fit and of the regression, one thread each; of short ones the best of five."""
    proba, y = confused_pairs(n, m)
    cpu_seconds(proba[: 20 * m], y[: 20 * m])  # what is imported and compiled only once
    with threadpool_limits(1):
        times = [
            (cpu_seconds(proba, y), regression_seconds(proba, y))
            for _ in range(SHORT_ROUNDS if n * m <= SHORT else 1)
        ]
    return min(ours for ours, _ in times), min(theirs for _, theirs in times)


def measure_threads(n: int, m: int) -> float:
    """CPU time with all threads relative to one."""
    proba, y = confused_pairs(n, m)
    cpu_seconds(proba, y)
    free = cpu_seconds(proba, y)
    with threadpool_limits(1):
        return free / cpu_seconds(proba, y)


def measure_large(n: int, m: int) -> tuple[float, float]:
    """Seconds of a fit, and the memory of this process."""
    return _time_and_memory(Adjuster(n_jobs=2), _favourites(n, m))


def measure_adopted(n: int, m: int) -> tuple[float, float]:
    """The same where decisions are adopted, one family after another."""
    return _time_and_memory(Adjuster(), _favourites(n, m))


def measure_kept(n: int, m: int) -> tuple[float, float]:
    """The same where probabilities alone are corrected."""
    return _time_and_memory(Adjuster(), _unsure(n, m))


def _time_and_memory(model: Adjuster, data: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
    return seconds(lambda: model.fit(*data)), peak_gigabytes()


def confused_pairs(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of a classifier that is too sure and confuses some pairs of classes."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(n, m))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    first = np.arange(0, m - 1, 2)[:5]
    logits[:, first] += 0.6 * (logits[:, first + 1] - logits[:, first])
    return softmax(1.5 * logits, axis=1), y


def _favourites(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of a classifier that prefers some classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(m, size=n)
    logits = rng.normal(size=(n, m))
    logits += rng.normal(size=m)
    logits[np.arange(n), y] += 3
    np.exp(logits, out=logits)  # in place: the data should not set the peak of the memory
    logits /= logits.sum(axis=1, keepdims=True)
    return logits, y


def _unsure(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of a classifier that favours no class and is not sure enough."""
    rng = np.random.default_rng(0)
    y = rng.integers(m, size=n)
    proba = rng.standard_exponential((n, m))
    proba /= proba.sum(axis=1, keepdims=True)
    proba[np.arange(n), y] += 0.3
    proba /= 1.3
    return proba, y


if __name__ == "__main__":
    kind, rows, classes = sys.argv[1:]
    measure = {
        "ratio": measure_ratio,
        "threads": measure_threads,
        "large": measure_large,
        "adopted": measure_adopted,
        "kept": measure_kept,
    }[kind]
    print(json.dumps(measure(int(rows), int(classes))))
