"""One data set: what the verdict says of it, and what is true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.peers import MatrixScaling, ShrunkBias
from experiments.evidence.worlds import (
    BIASED,
    NULL,
    Rows,
    World,
    best_decisions,
    decisions,
    draw_labels,
    draw_rows,
    expected_score,
)

__all__ = ["PLAIN", "REFINED", "Design", "Record", "measure", "run", "true_gain"]

PLAIN, REFINED = "AlternatingNormalizerCV", "Adjuster"
WORLDS = (*NULL, *BIASED)
MANY = 50  # worlds of more classes take longer, and are drawn less often


@dataclass(frozen=True)
class Design:
    """Sizes of the study."""

    sizes: tuple[int, ...] = (200, 1000)  # validation rows
    n_null: int = 100  # data sets of each world without effect, and size
    n_many: int = 50  # the same, where classes are many
    n_sharp: int = 400  # the same, where labels are unrelated: the sharpest test of the level
    n_biased: int = 60  # data sets of each strength of the bias, and size
    n_fresh: int = 20_000  # rows on which the truth is taken
    worlds: tuple[World, ...] = WORLDS
    search: dict[str, Any] = field(default_factory=dict)  # of AlternatingNormalizerCV; {}: defaults
    seed: int = 0

    def n_sets(self, world: World) -> int:
        """Number of data sets of a world, for each size."""
        if world in BIASED:
            return self.n_biased
        if not world.related:
            return self.n_sharp
        return self.n_many if world.n_classes > MANY else self.n_null


class Record(NamedTuple):
    """One data set, judged by one variant of the normalizer. Gains are differences of the score."""

    world: str
    n_rows: int
    variant: str
    number: int
    adopted: bool
    reported: float  # the verdict's gain, and its interval
    ci_low: float
    ci_high: float
    p_value: float
    best: float  # true gain of the best setting, adopted or not
    gain: float  # true gain of what was adopted; 0 where nothing was
    room: float  # true gain of the best decisions there are
    setting: str


def run(design: Design, *, n_jobs: int | None = None) -> Iterator[list[Record]]:
    """Judge all data sets; yields the records of one after the other."""
    tasks = (
        delayed(measure)(world, n, number, design)
        for world in design.worlds
        for n in design.sizes
        for number in range(design.n_sets(world))
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator")(tasks)


def measure(world: World, n: int, number: int, design: Design) -> list[Record]:
    """Draw one data set and judge it with each variant.

    Seed and thread count are its own, so that the result does not depend on how the work is dealt
    out to processes.
    """
    rng = np.random.default_rng([design.seed, WORLDS.index(world), n, number])
    proba, truth = draw_rows(world, n, rng)
    y = draw_labels(world, truth, rng)
    fresh = draw_rows(world, design.n_fresh, rng)
    random_state = int(rng.integers(2**31))
    before = expected_score(world, fresh.truth, decisions(world, fresh.proba))
    top = expected_score(world, fresh.truth, best_decisions(world, fresh.truth))
    records = []
    with threadpool_limits(1):
        for variant in (PLAIN,) if world.multilabel else (PLAIN, REFINED):
            make = Adjuster if variant == REFINED else AlternatingNormalizerCV
            search = design.search if variant == PLAIN else {}
            tuned = make(**world.options, **search, random_state=random_state).fit(proba, y)
            judged = _judge(tuned, true_gain(world, _best(tuned, proba, y), fresh))
            records.append(Record(world.name, n, variant, number, room=top - before, **judged))
    return records


def _best(tuned: Any, proba: np.ndarray, y: np.ndarray) -> Any:
    """The best setting, fitted on all rows, whatever the verdict."""
    if tuned.verdict_.adopted:
        return tuned.best_normalizer_
    best = tuned.best_params_
    if "member" in best:
        return ShrunkBias(**best).fit(proba, y)
    if "alpha" not in best:
        return MatrixScaling(**best).fit(proba, y)
    options = {"prior": tuned.prior, "multilabel": tuned.multilabel}
    return AlternatingNormalizer(**best, **options).fit(proba, y)


def true_gain(world: World, normalizer: Any, fresh: Rows) -> float:
    """What a fitted normalizer really gains, on fresh rows and without the luck of labels."""
    before, after = (
        expected_score(world, fresh.truth, decisions(world, proba))
        for proba in (fresh.proba, normalizer.transform(fresh.proba))
    )
    return after - before


def _judge(tuned: Any, best: float) -> dict[str, Any]:
    """What the verdict says, beside the true gain of the best setting."""
    verdict = tuned.verdict_
    return {
        "adopted": verdict.adopted,
        "reported": float(verdict.gain),
        "ci_low": float(verdict.ci_low),
        "ci_high": float(verdict.ci_high),
        "p_value": float(verdict.p_value),
        "best": best,
        "gain": best if verdict.adopted else 0.0,
        "setting": " ".join(f"{name}={value}" for name, value in tuned.best_params_.items()),
    }
