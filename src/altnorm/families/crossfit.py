"""Cross-fit a family along its path of penalties, and take the strength of least log loss."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from altnorm._base.arrays import Array, array_namespace, map_blocks, put_rows, take_rows

STRENGTHS = (256.0, 64.0, 16.0, 4.0, 1.0, 0.25)
"""Penalties to try, strongest first."""

_PAST_BEST = 1.0  # standard errors behind the best penalty, at which no weaker one is tried
_IN_A_ROW = 2  # where few pairs of classes are set free, the loss may rise before it falls


class Fit(Protocol):
    """What a family leaves at one strength; `rows` are log-probabilities, or log-odds."""

    def proba(self, rows: Array, /) -> Array:
        """Probabilities, (n, m)."""

    def label_log_p(self, rows: Array, labels: np.ndarray, /) -> np.ndarray:
        """Log-probability of what the labels of each row say, (n,)."""


class Path(Protocol):
    """A family along a path of penalties: `bias_path`, `matrix_path`, `labelwise_path`."""

    def __call__(
        self,
        rows: Array,
        labels: np.ndarray,
        weight: np.ndarray,
        strengths: Sequence[float],
        /,
        *,
        rough: bool,
    ) -> Generator[Fit, None, None]:
        """Yield the fit at each of the `strengths`, strongest first, to rows of positive weight.

        With `rough`, as exactly as cross-fitting needs it: the mean log loss to about 1e-4.
        """


@dataclass(frozen=True)
class CrossFit:
    """Fits of a family outside each fold, at the strength of least log loss inside."""

    strength: float
    label_log_p: np.ndarray  # (n,) log-probability of each row's labels, without its fold
    fits: tuple[Fit, ...]  # for each fold
    folds: np.ndarray  # (n,)

    def proba(self, rows: Array) -> Array:
        """Cross-fitted probabilities (n, m), where `rows` is."""
        out = array_namespace(rows).empty_like(rows)
        for fold, fit in enumerate(self.fits):
            inside = self.folds == fold
            out = put_rows(out, inside, map_blocks(fit.proba, take_rows(rows, inside)))
        return out


def cross_fit(
    path: Path,
    rows: Array,
    labels: np.ndarray,
    weight: np.ndarray,
    folds: np.ndarray,
    strengths: Sequence[float],
) -> CrossFit:
    """Fit a family outside each fold, penalty by penalty, strongest first, and try it inside.

    Of equally good strengths the strongest is the best. Weaker penalties are left out once the
    loss is clearly above the least twice: from there on, fits only get more expensive and worse.
    No fit sees a label of its fold, not even by way of where it starts: one that is not quite
    finished would remember it.
    """
    outside = [folds != fold for fold in range(int(folds.max()) + 1)]
    # By their weights, not as copies: each family makes one in the precision that it needs.
    fitting = [path(rows, labels, weight * o, strengths, rough=True) for o in outside]
    # In one piece, which is given back to the system as a whole; the best is copied out of it.
    tried = np.empty((len(strengths), folds.size))
    fits: list[tuple[Fit, ...]] = []
    for log_p, strength in zip(tried, strengths, strict=True):
        fits.append(tuple(_next_fit(fold, last=strength == strengths[-1]) for fold in fitting))
        for fit, o in zip(fits[-1], outside, strict=True):
            log_p[~o] = fit.label_log_p(take_rows(rows, ~o), labels[~o])
        if is_past_best(tried[: len(fits)], weight):
            break
    best = int(np.argmax([np.average(log_p, weights=weight) for log_p in tried[: len(fits)]]))
    return CrossFit(strengths[best], tried[best].copy(), fits[best], folds)


def _next_fit(path: Generator[Fit, None, None], *, last: bool) -> Fit:
    fit = next(path)
    if last:
        path.close()  # it holds a copy of the rows
    return fit


def is_past_best(label_log_p: np.ndarray, weight: np.ndarray) -> bool:
    """Whether the last penalties are all clearly worse than the best one."""
    best, last = max(label_log_p, key=lambda log_p: float(weight @ log_p)), label_log_p[-_IN_A_ROW:]
    return all(is_behind(log_p, best, weight, n_errors=_PAST_BEST) for log_p in last)


def is_behind(
    log_p: np.ndarray, leader: np.ndarray, weight: np.ndarray, *, n_errors: float
) -> bool:
    """Whether log-probabilities of labels are lower than others by so many standard errors."""
    behind = weight * (leader - log_p)
    return bool(behind.sum() > n_errors * np.sqrt(behind @ behind))
