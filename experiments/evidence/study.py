"""One data set: what the verdict says of it, and what is true."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from altnorm import Adjuster
from experiments.evidence import truth
from experiments.evidence.plan import Case
from experiments.evidence.purposes import COSTS, PURPOSES
from experiments.evidence.worlds import Data, draw_data

__all__ = ["PARTS", "measure_costs", "measure_interval", "measure_world", "run"]

N_FRESH = 10_000

Record = dict[str, Any]
Measure = Callable[[Case, Data], list[Record]]


def measure_world(case: Case, data: Data) -> list[Record]:
    """The verdict on decisions and probabilities beside the truth.

    Gains are in points; those of costs in per cent of what decisions cost before.
    """
    purpose = PURPOSES[case.purpose]
    adjuster = _fit(Adjuster(**purpose.options), data)
    verdict, fresh = adjuster.verdict_, data.fresh
    before = purpose.before(fresh.proba, fresh.truth)
    after = _codes(adjuster, fresh.proba) if verdict.adopted else before
    best = purpose.best(fresh.fair)
    scores = [purpose.score(fresh.truth, decided) for decided in (before, after, best)]
    unit = 100 / (-scores[0] if "costs" in purpose.options else 1)
    loss = truth.label_log_loss if case.world.several else truth.log_loss
    record = {
        "adopted": bool(verdict.adopted),
        "evidence": verdict.evidence or "none",
        "family": adjuster.family_ or "none",
        "cautions": " ".join(caution.code for caution in verdict.cautions) or "none",
        "reported": unit * verdict.gain,
        "true": unit * (scores[1] - scores[0]),
        "room": unit * (scores[2] - scores[0]),
        "loss_before": loss(fresh.truth, fresh.proba),
        "loss_after": loss(fresh.truth, adjuster.predict_proba(fresh.proba)),
        "loss_least": loss(fresh.truth, fresh.truth),
    }
    return [record]


def _fit(adjuster: Adjuster, data: Data) -> Adjuster:
    classes = None if data.y.ndim == 2 else range(data.proba.shape[1])
    return adjuster.fit(
        data.proba, data.y, groups=data.groups, sample_weight=data.weight, classes=classes
    )


def _codes(adjuster: Adjuster, proba: np.ndarray) -> np.ndarray:
    """Decisions as columns; a row that is left to a person is the column beyond."""
    decided, m = adjuster.predict(proba), proba.shape[1]
    if decided.dtype != object:
        return np.asarray(decided)
    return np.array([m if code is None else code for code in decided], dtype=int)


def measure_interval(case: Case, data: Data) -> list[Record]:
    """The interval beside the true gain of what it is about, adopted or not."""
    purpose, fresh = PURPOSES[case.purpose], data.fresh
    adjuster = _fit(Adjuster(**purpose.options, insist=True), data)
    verdict = adjuster.verdict_
    before, after = (
        purpose.score(fresh.truth, codes)
        for codes in (purpose.plain(fresh.proba), _codes(adjuster, fresh.proba))
    )
    record = {
        "adopted": bool(verdict.adopted and not verdict.insisted),
        "reported": 100 * verdict.gain,
        "ci_low": 100 * verdict.ci_low,
        "ci_high": 100 * verdict.ci_high,
        "true": 100 * (after - before),
        "room": 100 * (purpose.score(fresh.truth, purpose.best(fresh.fair)) - before),
    }
    return [record]


def measure_costs(case: Case, data: Data) -> list[Record]:
    """What decisions cost: as they came, by costs, by `Adjuster`, by the true probabilities."""
    del case
    records, fresh = [], data.fresh
    for name, costs in COSTS.items():
        adjuster = Adjuster(costs=costs).fit(data.proba, data.y)
        m = costs.shape[0]
        codes = {
            "argmax": fresh.proba.argmax(axis=1),
            "by_costs": (fresh.proba @ costs).argmin(axis=1),
            "adjuster": _codes(adjuster, fresh.proba),
            "least": (fresh.truth @ costs).argmin(axis=1),
        }
        record: Record = {"costs": name, "adopted": bool(adjuster.verdict_.adopted)}
        for who, code in codes.items():
            kept = code < m
            record[who] = truth.mean_cost(fresh.truth, code, costs)
            record[f"{who}_left"] = 100 * float(1 - kept.mean())
            record[f"{who}_right"] = 100 * truth.accuracy(fresh.truth[kept], code[kept])
        records.append(record)
    return records


PARTS: dict[str, Measure] = {
    "worlds": measure_world,
    "intervals": measure_interval,
    "costs": measure_costs,
}


def run(
    part: str, cases: Sequence[Case], n_sets: int, *, seed: int = 0, n_jobs: int | None = None
) -> Iterator[Record]:
    """Measure all data sets of a part, one after the other."""
    tasks = (
        delayed(measure_set)(part, case, number, seed)
        for case in cases
        for number in range(case.times * n_sets)
    )
    parallel = Parallel(n_jobs=n_jobs, return_as="generator", batch_size=4)
    for records in parallel(tasks):
        yield from records


def measure_set(part: str, case: Case, number: int, seed: int) -> list[Record]:
    """Draw one data set and measure it.

    Its seed is its own: the result does not depend on how the work is shared out.
    """
    known = dict(zip(("world", "n_rows", "purpose"), case.key, strict=True))
    key = zlib.crc32(repr(case.world).encode())
    rng = np.random.default_rng([seed, key, case.n_rows, number])
    data = draw_data(case.world, case.n_rows, rng, n_fresh=N_FRESH)
    with threadpool_limits(1):
        return [known | record for record in PARTS[part](case, data)]
