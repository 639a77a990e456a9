"""Gains over the untouched probabilities: means, intervals over sources, and clear ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from experiments.benchmark.measure import UNTOUCHED
from experiments.benchmark.methods import TARGET

__all__ = [
    "Decided",
    "Gains",
    "Records",
    "accuracy_interval",
    "clear_sources",
    "decided_of",
    "gains_of",
    "loss_interval",
    "methods_of",
    "source_interval",
]

Records = Sequence[Mapping[str, Any]]
N_RESAMPLED = 2000
Z_95 = 1.96


@dataclass(frozen=True)
class Gains:
    """What a method changes for each classifier that it was tried on.

    `accuracy`, `balanced_accuracy` and `brier` are differences, better above 0 (Brier: below);
    `log_loss` is the logarithm of the ratio to the untouched one, better below 0.
    """

    sources: np.ndarray
    accuracy: np.ndarray
    accuracy_se: np.ndarray
    log_loss: np.ndarray
    saved: np.ndarray
    log_loss_se: np.ndarray
    brier: np.ndarray
    balanced_accuracy: np.ndarray
    calibration_error: np.ndarray
    seconds: np.ndarray
    failed: np.ndarray


def methods_of(records: Records) -> list[str]:
    """The methods, in their order."""
    return list(dict.fromkeys(record["method"] for record in records))


def gains_of(records: Records, method: str, over: str = UNTOUCHED) -> Gains:
    """Compare a method's records, of one number of labels, with those of another method.

    Both are compared on the classifiers that the other one was tried on. Standard errors are those
    against the untouched probabilities.
    """
    others = {(r["source"], r["kind"]): r for r in records if r["method"] == over}
    chosen = [r for r in records if r["method"] == method and (r["source"], r["kind"]) in others]

    def column(name: str) -> np.ndarray:
        return np.array([record[name] for record in chosen], dtype=float)

    def before(name: str) -> np.ndarray:
        return np.array([others[r["source"], r["kind"]][name] for r in chosen], dtype=float)

    return Gains(
        sources=np.array([record["source"] for record in chosen]),
        accuracy=column("accuracy") - before("accuracy"),
        accuracy_se=column("accuracy_se"),
        log_loss=np.log(column("log_loss") / before("log_loss")),
        saved=before("log_loss") - column("log_loss"),
        log_loss_se=column("log_loss_se"),
        brier=column("brier") - before("brier"),
        balanced_accuracy=column("balanced_accuracy") - before("balanced_accuracy"),
        calibration_error=column("calibration_error"),
        seconds=column("seconds"),
        failed=np.array([bool(record["failure"]) for record in chosen]),
    )


@dataclass(frozen=True)
class Decided:
    """How many test rows of each classifier a method decides, and how many of these are wrong."""

    sources: np.ndarray
    share: np.ndarray
    rows: np.ndarray
    wrong: np.ndarray

    @property
    def clearly_too_many_wrong(self) -> int:
        """Classifiers with more wrong rows than chance explains at the target."""
        chance = binom.sf(self.wrong - 1, self.rows, 1 - TARGET)
        return int(((self.rows > 0) & (chance < 0.05)).sum())


def decided_of(records: Records, method: str) -> Decided:
    """Rows that are at least as sure as the target, or that a method decides by itself."""
    chosen = [record for record in records if record["method"] == method]
    share, wrong, n = (
        np.array([record[name] for record in chosen], dtype=float)
        for name in ("decided", "decided_wrong", "test_rows")
    )
    rows = np.rint(share / 100 * n)
    sources = np.array([record["source"] for record in chosen])
    return Decided(sources, share, rows, np.rint(wrong / 100 * rows))


def source_interval(values: np.ndarray, sources: np.ndarray) -> tuple[float, float]:
    """Ends of a 95 % interval for the mean, bootstrapped over sources."""
    _, number = np.unique(sources, return_inverse=True)
    sums, counts = np.bincount(number, values), np.bincount(number)
    drawn = np.random.default_rng(0).integers(len(sums), size=(N_RESAMPLED, len(sums)))
    low, high = np.quantile(sums[drawn].sum(1) / counts[drawn].sum(1), (0.025, 0.975))
    return float(low), float(high)


def accuracy_interval(gains: Gains) -> tuple[float, float, float]:
    """Mean gain in accuracy and the ends of its interval, in points."""
    return float(gains.accuracy.mean()), *source_interval(gains.accuracy, gains.sources)


def loss_interval(gains: Gains) -> tuple[float, float, float]:
    """Change of the log loss in per cent, with its interval.

    The mean of the ratios is geometric, so that classifiers of any log loss count alike.
    """
    ends = gains.log_loss.mean(), *source_interval(gains.log_loss, gains.sources)
    mean, low, high = (float(100 * np.expm1(end)) for end in ends)
    return mean, low, high


def clear_sources(values: np.ndarray, errors: np.ndarray, sources: np.ndarray) -> tuple[int, int]:
    """Sources on which the mean gain over their classifiers is clearly above 0, and below.

    The classifiers of a source share their test rows. Whatever that makes of their errors, the
    standard error of the mean is at most the mean of the standard errors, which is taken.
    """
    _, number = np.unique(sources, return_inverse=True)
    count = np.bincount(number)
    mean = np.bincount(number, values) / count
    error = np.bincount(number, errors) / count
    return int((mean > Z_95 * error).sum()), int((mean < -Z_95 * error).sum())
