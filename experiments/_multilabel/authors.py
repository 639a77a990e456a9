"""The authors' own choices on our classifiers: a sampled reference, and the settings they list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import altnorm
from experiments._multilabel.grid import THRESHOLDS, GridPoint, best_point, fit_point, scan
from experiments._multilabel.methods import BASE, Fitted, describe_setting
from experiments._multilabel.tables import gain
from experiments._output import markdown_table

__all__ = ["SAMPLED", "Setting", "authors_table", "fit_sampled", "fit_settings"]

N_PAIRS = 1000
SAMPLED = f"tuned as published, {N_PAIRS:,} sure pairs as reference"


class Setting(NamedTuple):
    """An exponent and a depth of the paper's Table 3; tau where we know it, else all of them."""

    alpha: float
    depth: int
    thresholds: tuple[float, ...] = THRESHOLDS


class Pooled(NamedTuple):
    """A normalizer of single entries, for rows of any number of labels."""

    normalizer: altnorm.AlternatingNormalizer

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Adjust every entry."""
        return np.asarray(self.normalizer.transform(proba.reshape(-1, 1))).reshape(proba.shape)


def fit_sampled(
    proba: np.ndarray, prior: float, score: Callable[[np.ndarray], float], seed: int
) -> Fitted:
    """Tune as the paper does, with pairs that are drawn from the sure ones as reference."""
    rng = np.random.default_rng(seed)
    samples = {tau: _sample_pairs(proba, tau, rng) for tau in THRESHOLDS}
    points = [
        point
        for tau, sample in samples.items()
        for point in scan(proba, prior, score, thresholds=(tau,), reference=sample)
    ]
    best = best_point(points)
    normalizer = fit_point(best, samples[best.threshold][:, None], prior)
    return Fitted(SAMPLED, Pooled(normalizer), describe_setting(**best._asdict()))


def _sample_pairs(proba: np.ndarray, threshold: float, rng: np.random.Generator) -> np.ndarray:
    entries = proba.ravel()
    sure = entries[altnorm.ambiguity(np.stack([entries, 1 - entries], axis=1)) <= threshold]
    return rng.choice(sure, min(N_PAIRS, sure.size), replace=False)


def fit_settings(
    settings: Mapping[str, Sequence[Setting]], proba: np.ndarray, prior: float
) -> Iterator[Fitted]:
    """The settings that the paper lists for its classifiers, without tuning."""
    for name, listed in settings.items():
        for alpha, depth, thresholds in listed:
            for tau in thresholds:
                point = GridPoint(alpha, depth, tau, np.nan)
                words = describe_setting(**point._asdict())
                yield Fitted(f"{name}, tau {tau:g}", fit_point(point, proba, prior), words)


def authors_table(rows: Sequence[Any], authors: Sequence[Any]) -> str:
    """Mean gain over the base of each choice, over seeds and over the settings of a classifier."""
    lines = []
    for choice in dict.fromkeys(row.method for row in authors):
        its = [row for row in authors if row.method == choice]
        if choice == SAMPLED:
            cells = [str(gain([*rows, *its], choice, field)) for field in ("macro", "micro")]
        else:
            cells = [_mean_over_settings(rows, its, field) for field in ("macro", "micro")]
        lines.append([choice, *cells])
    return markdown_table(["the authors' choice", "macro-F1", "micro-F1"], lines)


def _mean_over_settings(rows: Sequence[Any], its: Sequence[Any], field: str) -> str:
    base = {row.classifier: getattr(row, field) for row in rows if row.method == BASE}
    by_setting: dict[str, list[float]] = {}
    for row in its:
        by_setting.setdefault(row.setting, []).append(getattr(row, field) - base[row.classifier])
    means = [float(np.mean(values)) for values in by_setting.values()]
    span = f" ({min(means):+.2f} to {max(means):+.2f})" if len(means) > 1 else ""
    return f"{np.mean(means):+.2f}{span}"
