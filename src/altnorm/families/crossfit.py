"""Cross-fit a family along its path of penalties, and take the strength of least log loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from altnorm._base.arrays import Array, array_namespace, take_rows
from altnorm._base.errors import InputError
from altnorm._base.validation import check_choice, check_positive

STRENGTHS = (256.0, 64.0, 16.0, 4.0, 1.0, 0.25)
"""Penalties to try, strongest first."""


class Fit(Protocol):
    """What a family leaves at one strength; `rows` are log-probabilities, or log-odds."""

    def proba(self, rows: Array) -> Array:
        """Probabilities, (n, m)."""

    def label_log_p(self, rows: Array, labels: np.ndarray) -> np.ndarray:
        """Log-probability of what the labels of each row say, (n,)."""


Path = Callable[[Any, np.ndarray, np.ndarray, Sequence[float]], Iterator[Fit]]
"""Rows, labels, weights and strengths in; fits out, strongest penalty first."""


@dataclass(frozen=True)
class CrossFit:
    """Fits of a family outside each fold, along a path of penalties, tried inside it."""

    strengths: tuple[float, ...]  # (k,) those tried, strongest first
    label_log_p: np.ndarray  # (k, n) log-probability of each row's labels, without its fold
    fits: tuple[tuple[Fit, ...], ...]  # [k][fold]
    folds: np.ndarray  # (n,)

    def log_loss(self, weight: np.ndarray) -> np.ndarray:
        """Mean cross-fitted log loss at each strength, (k,)."""
        return -np.average(self.label_log_p, axis=1, weights=weight)

    def best(self, weight: np.ndarray) -> int:
        """Which strength has the least log loss; of equally good ones the strongest."""
        return int(self.log_loss(weight).argmin())

    def proba(self, k: int, rows: Array) -> Array:
        """Cross-fitted probabilities (n, m) at the strength number `k`, where `rows` is."""
        xp = array_namespace(rows)
        parts = [
            fit.proba(take_rows(rows, self.folds == fold)) for fold, fit in enumerate(self.fits[k])
        ]
        # Back from fold by fold to the order in which the rows came.
        order = np.argsort(np.argsort(self.folds, kind="stable"))
        return take_rows(xp.concat(parts, axis=0), order)


def cross_fit(
    path: Path,
    rows: Array,
    labels: np.ndarray,
    weight: np.ndarray,
    folds: np.ndarray,
    strengths: Sequence[float] = STRENGTHS,
) -> CrossFit:
    """Fit a path outside each fold, and stop where weaker penalties have become worse twice."""
    outside = [folds != fold for fold in range(int(folds.max()) + 1)]
    paths = [path(take_rows(rows, o), labels[o], weight[o], strengths) for o in outside]
    tried: list[np.ndarray] = []
    fits: list[tuple[Fit, ...]] = []
    losses: list[float] = []
    for _ in strengths:
        fits.append(tuple(next(one) for one in paths))
        tried.append(np.empty(folds.size))
        for fold, fit in enumerate(fits[-1]):
            inside = ~outside[fold]
            tried[-1][inside] = fit.label_log_p(take_rows(rows, inside), labels[inside])
        losses.append(-float(weight @ tried[-1]))
        if is_past_best(losses):
            break
    return CrossFit(tuple(strengths[: len(fits)]), np.stack(tried), tuple(fits), folds)


def is_past_best(losses: Sequence[float]) -> bool:
    """Whether the last two steps to a weaker penalty each made the loss worse."""
    return len(losses) > 2 and losses[-1] > losses[-2] > losses[-3]


def check_strength(strength: float | str, *, zero: bool = False) -> None:
    """Raise unless `strength` is "cv" or a positive number (or zero, if allowed)."""
    if isinstance(strength, str):
        check_choice(strength, "strength", ("cv",))
    else:
        check_positive(strength, "strength", zero=zero)


def path_down_to(strength: float) -> list[float]:
    """Penalties on the way to `strength`, strongest first: each fit starts from the one before."""
    return [stronger for stronger in STRENGTHS if stronger > strength] + [strength]


def choose_strength(
    strength: float | str,
    path: Path,
    rows: Array,
    labels: np.ndarray,
    weight: np.ndarray,
    folds: np.ndarray,
) -> float:
    """Return the strength given or, with "cv", the one of least cross-fitted log loss."""
    if not isinstance(strength, str):
        return float(strength)
    if folds.max() < 1:
        raise InputError(
            "strength='cv' needs at least 2 rows of positive weight",
            "there is only n_samples=1",
            "Pass a number, for example strength=1.0.",
            code="parameter",
        )
    found = cross_fit(path, rows, labels, weight, folds)
    return found.strengths[found.best(weight)]
