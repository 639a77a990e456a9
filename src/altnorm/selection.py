"""One dealing of the validation rows into folds: what scores how, and what would be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context

from altnorm._array import quiet
from altnorm._kinds import resolve_kind
from altnorm._scores import Score
from altnorm.crossfit import ClassCrossFit, Grid, YesCrossFit
from altnorm.normalizer import AlternatingNormalizer
from altnorm.refine import BiasCrossFit
from altnorm.search import IDENTITY, FoldScorer, Scored, Setting, choose

__all__ = ["Dealing", "Plan", "Validation", "make_plan"]

COARSE = 3  # every third exponent is tried first
BEST = 3  # near so many of the best exponents the others are tried
WORKING_MEMORY = 256  # MiB: the validation data are in memory several times already
DEEPER = 5  # so many of the best exponents are iterated further


class Validation(NamedTuple):
    """Clean validation data and how to read it."""

    proba: np.ndarray  # (n, m)
    labels: np.ndarray  # class codes (n,) or booleans (n, m)
    weight: np.ndarray | None  # (n,)
    multilabel: str | None
    k_max: int
    prior: Any
    score: Score
    decide: Callable[[np.ndarray], np.ndarray]

    def count_prior(self, rows: Any = slice(None)) -> np.ndarray:
        """Class prior counted from some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        kind = resolve_kind(self.multilabel)
        return kind.count_prior(self.labels[rows], self.proba.shape[1], self.prior, weight)

    def normalizer(self, setting: Setting, prior: np.ndarray) -> AlternatingNormalizer:
        """Return the unfitted normalizer of a setting."""
        return AlternatingNormalizer(
            **setting._asdict(), k_max=self.k_max, prior=prior, multilabel=self.multilabel
        )


class Plan(NamedTuple):
    """Which settings to score: whole grids at depth 1, and some settings deeper."""

    alphas: tuple[float, ...]
    deeper: tuple[Setting, ...]


class Dealing:
    """Cross-fitted scores of settings for one dealing of the rows into folds."""

    def __init__(self, data: Validation, folds: np.ndarray) -> None:
        self.data, self.folds = data, folds
        self.priors = [data.count_prior(folds != k) for k in range(folds.max() + 1)]
        self.scorer = FoldScorer(data.score, data.labels, folds, data.weight)
        self.crossfit: ClassCrossFit | YesCrossFit
        if data.multilabel is None:
            self.crossfit = ClassCrossFit(
                data.proba,
                folds,
                np.stack(self.priors),
                data.weight,
                data.k_max,
                keep_proba=data.score.needs == "proba",
            )
            self.base = self.crossfit.base
        else:
            yes = [q[:1] if data.multilabel == "pairs" else q for q in self.priors]
            self.crossfit = YesCrossFit(data.proba, folds, np.stack(yes), data.weight)
            self.base = self._pred(data.proba)

    def identity(self) -> Scored:
        """Score doing nothing."""
        return Scored(IDENTITY, self.scorer(self.base), 0)

    def first(self, alpha: float, grid: Grid) -> list[Scored]:
        """Score the grid at depth 1 for one exponent."""
        return self._scored(self.crossfit.first(alpha, grid))

    def deeper(self, setting: Setting, depth: int) -> list[Scored]:
        """Score a setting at depths 2 to `depth`."""
        return self._scored(self.crossfit.deeper(setting, depth))

    def nested(self, scored: Sequence[Scored]) -> np.ndarray:
        """Apply to each fold, exactly, the setting that is best on the others."""
        data, after = self.data, self.data.proba.copy()
        for k, prior in enumerate(self.priors):
            best, inside = choose(scored, fold=k), self.folds == k
            if best.setting is not IDENTITY:
                normalizer = data.normalizer(best.setting, prior)
                weight = None if data.weight is None else data.weight[~inside]
                with config_context(working_memory=WORKING_MEMORY):
                    normalizer.fit(data.proba[~inside], sample_weight=weight)
                    after[inside] = normalizer.transform(data.proba[inside])
        return after

    def biases(self) -> BiasCrossFit:
        """Fit temperature and biases for each fold without it."""
        data = self.data
        with quiet(np):
            log_p = np.log(data.proba)
        weight = np.ones(len(log_p)) if data.weight is None else data.weight
        return BiasCrossFit(log_p, data.labels, weight, self.folds, self.priors)

    def _pred(self, proba: np.ndarray) -> np.ndarray:
        """Predictions as the score needs them."""
        if self.data.multilabel is None or self.data.score.needs == "proba":
            return proba
        return self.data.decide(proba)

    def _scored(self, predictions: Iterable[tuple[Setting, np.ndarray]]) -> list[Scored]:
        found = []
        for setting, proba in predictions:
            pred = self._pred(proba)
            changed = (pred != self.base).reshape(len(pred), -1).any(axis=1)
            found.append(Scored(setting, self.scorer(pred), int(changed.sum())))
        return found


def make_plan(
    alphas: Sequence[float], depth: int, score: Callable[[Sequence[float]], list[Scored]]
) -> tuple[Plan, list[Scored]]:
    """Search coarsely, then near the best.

    Scores change slowly with the exponent: every third is tried, then the neighbours of the best.
    Deeper iterations mostly act like another exponent, so only the best exponents, each with the
    threshold, reference and smoothing that suit it best, are worth iterating further.

    Parameters
    ----------
    alphas : sequence of float
        Exponents.
    depth : int
        Largest depth.
    score : callable
        Scores the grid at depth 1 for some exponents.

    Returns
    -------
    plan : Plan
        What to score.
    scored : list of Scored
        What was scored on the way: the plan's settings of depth 1.
    """
    order = sorted({float(alpha) for alpha in alphas})
    coarse = sorted({*range(0, len(order), COARSE), len(order) - 1})
    scored = score([order[i] for i in coarse])
    best = _best_alphas(scored, BEST)
    near = {
        j
        for i in coarse
        if order[i] in best
        for j in range(max(0, i - COARSE + 1), min(len(order), i + COARSE))
    }
    scored += score([order[i] for i in sorted(near - set(coarse))])
    tried = tuple(sorted({one.setting.alpha for one in scored}))
    deeper = tuple(_best_alphas(scored, DEEPER).values()) if depth > 1 else ()
    return Plan(tried, deeper), scored


def _best_alphas(scored: Sequence[Scored], n: int) -> dict[float, Setting]:
    """The best setting of each of the `n` best exponents."""
    by_alpha: dict[float, list[Scored]] = {}
    for one in scored:
        by_alpha.setdefault(one.setting.alpha, []).append(one)
    best = [choose(group) for group in by_alpha.values()]
    found: dict[float, Setting] = {}
    while best and len(found) < n:
        top = choose(best)
        best.remove(top)
        found[top.setting.alpha] = top.setting
    return found
