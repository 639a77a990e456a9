"""One data set: what the verdict says of it, and what is true."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.method.reference import class_prior, post_stratify
from altnorm.peers import MatrixScaling, ShrunkBias
from experiments.evidence.worlds import (
    Data,
    Rows,
    World,
    best_decisions,
    decisions,
    draw_data,
    expected_log_loss,
    expected_score,
)

__all__ = ["ADJUSTER", "ALTERNATING", "Case", "Record", "measure", "refit", "run", "true_gain"]

ALTERNATING, ADJUSTER = "AlternatingNormalizerCV", "Adjuster"
BOTH = (ALTERNATING, ADJUSTER)
# With 1,000 classes the whole grid takes minutes. The evidence rests on the same menu.
SHORT_GRID: dict[str, Any] = {"alphas": (0.5, 1.0, 2.0), "depths": (1,)}


@dataclass(frozen=True)
class Case:
    """A world, a size, and how it is judged."""

    part: str  # of the study
    world: World
    n_rows: int
    n_sets: int
    estimators: tuple[str, ...] = BOTH
    pass_groups: bool = False
    n_unlabelled: int = 0
    random_states: tuple[int, ...] = (0,)
    short_grid: bool = False
    n_fresh: int = 20_000


class Record(NamedTuple):
    """One data set, judged by one estimator. Gains are differences of the score."""

    part: str
    world: str
    n_classes: int
    n_rows: int
    groups: bool  # whether these were passed
    n_unlabelled: int
    number: int
    estimator: str
    random_state: int
    adopted: bool
    family: str  # of the best setting
    reported: float  # the verdict's gain, and its interval
    ci_low: float
    ci_high: float
    p_value: float
    n_dealings: int
    agreement: float
    best: float  # true gain of the best setting, adopted or not
    room: float  # true gain of the best decisions there are
    calibrated: bool  # whether a calibration was adopted
    loss_before: float  # true log-loss: as reported, after the decisions' family, at the end
    loss_decided: float
    loss_after: float
    loss_least: float  # of the true probabilities

    @property
    def gain(self) -> float:
        """True gain of what was adopted; 0 where nothing was."""
        return self.best if self.adopted else 0.0


def run(cases: Sequence[Case], *, seed: int = 0, n_jobs: int | None = None) -> Iterator[Record]:
    """Judge all data sets, one after the other."""
    tasks = (
        delayed(measure)(case, number, seed) for case in cases for number in range(case.n_sets)
    )
    for records in Parallel(n_jobs=n_jobs, return_as="generator")(tasks):
        yield from records


def measure(case: Case, number: int, seed: int = 0) -> list[Record]:
    """Draw one data set and judge it with each estimator.

    Seed and thread count are its own, so that the result does not depend on how the work is dealt
    out to processes. The same world and size give the same data set, however it is judged.
    """
    world = case.world
    rng = np.random.default_rng([seed, zlib.crc32(repr(world).encode()), case.n_rows, number])
    data = draw_data(world, case.n_rows, rng, n_fresh=case.n_fresh, n_unlabelled=case.n_unlabelled)
    records = []
    with threadpool_limits(1):
        for estimator in case.estimators:
            for random_state in case.random_states:
                tuned = _fit(estimator, case, data, random_state)
                known = (case.part, world.name, world.n_classes, len(data.y), case.pass_groups)
                asked = (case.n_unlabelled, number, estimator, random_state)
                records.append(Record(*known, *asked, **_judge(tuned, world, data)))
    return records


def _fit(estimator: str, case: Case, data: Data, random_state: int) -> Any:
    options = {"random_state": random_state, **case.world.options}
    if estimator == ALTERNATING:
        tuned: Any = AlternatingNormalizerCV(**options, **(SHORT_GRID if case.short_grid else {}))
    else:
        tuned = Adjuster(**options)
    proba, y = np.concatenate([data.proba, data.unlabelled]), data.y
    if case.n_unlabelled:
        y = np.append(y, np.full(case.n_unlabelled, np.nan))
    return tuned.fit(proba, y, groups=data.groups if case.pass_groups else None)


def _judge(tuned: Any, world: World, data: Data) -> dict[str, Any]:
    """What the verdict says, beside what is true."""
    verdict, fresh = tuned.verdict_, data.fresh
    best = tuned.best_normalizer_ if verdict.adopted else refit(tuned, data)
    before = expected_score(world, fresh.truth, decisions(world, fresh.proba))
    room = expected_score(world, fresh.truth, best_decisions(world, fresh)) - before
    calibration = getattr(tuned, "calibration_", None)
    return {
        "adopted": bool(verdict.adopted),
        "family": _family(tuned.best_params_),
        "reported": float(verdict.gain),
        "ci_low": float(verdict.ci_low),
        "ci_high": float(verdict.ci_high),
        "p_value": float(verdict.p_value),
        "n_dealings": int(verdict.n_dealings),
        "agreement": float(verdict.agreement),
        "best": true_gain(world, best, fresh),
        "room": room,
        "calibrated": calibration is not None and bool(calibration.adopted),
        **_log_losses(tuned, world, fresh),
    }


def _log_losses(tuned: Any, world: World, fresh: Rows) -> dict[str, float]:
    if world.multilabel is not None:
        return dict.fromkeys(("loss_before", "loss_decided", "loss_after", "loss_least"), 0.0)
    stages = {
        "loss_before": fresh.proba,
        "loss_decided": tuned.best_normalizer_.transform(fresh.proba),
        "loss_after": tuned.transform(fresh.proba),
        "loss_least": fresh.truth,
    }
    return {name: expected_log_loss(fresh.truth, proba) for name, proba in stages.items()}


def _family(best: dict[str, Any]) -> str:
    if "member" in best:
        return "bias"
    return "alternating" if "alpha" in best else "matrix"


def refit(tuned: Any, data: Data) -> Any:
    """The best setting, fitted on all rows, whatever the verdict: what would have been applied."""
    best, m = tuned.best_params_, data.proba.shape[1]
    if tuned.multilabel is not None:
        options = {"prior": tuned.prior, "multilabel": tuned.multilabel}
        return AlternatingNormalizer(**best, **options).fit(data.proba, data.y)
    prior = class_prior(data.y, m, tuned.prior)
    strata = post_stratify(data.y, m, tuned.prior)
    family = _family(best)
    if family == "bias":
        return ShrunkBias(**best, prior=prior).fit(data.proba, data.y, strata.weight)
    if family == "matrix":
        return MatrixScaling(**best).fit(data.proba, data.y, strata.weight)
    absent = np.flatnonzero(strata.absent)
    rows = np.concatenate([data.proba, data.unlabelled, np.eye(m)[absent]])
    ones = np.ones(len(data.unlabelled))
    weight = np.concatenate([strata.weight, ones, strata.absent[absent]])
    return AlternatingNormalizer(**best, prior=prior).fit(rows, sample_weight=weight)


def true_gain(world: World, normalizer: Any, fresh: Rows) -> float:
    """What a fitted normalizer really gains, on fresh rows and without the luck of labels."""
    before, after = (
        expected_score(world, fresh.truth, decisions(world, proba))
        for proba in (fresh.proba, normalizer.transform(fresh.proba))
    )
    return after - before
