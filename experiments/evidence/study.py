"""One data set: what the verdict says of it, and what is true."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from altnorm import Adjuster, AlternatingNormalizer
from altnorm.method.reference import class_prior, post_stratify
from altnorm.peers import BiasCorrectedTemperature, MatrixScaling
from experiments.evidence import truth
from experiments.evidence.plan import COSTS, Case
from experiments.evidence.worlds import Data, draw_data

__all__ = ["PARTS", "candidate", "measure_costs", "measure_purposes", "measure_world", "run"]

N_FRESH = 10_000

Record = dict[str, Any]
Measure = Callable[[Case, Data], list[Record]]


def measure_world(case: Case, data: Data) -> list[Record]:
    """The verdict on decisions and probabilities beside the truth; gains are in points."""
    adjuster = Adjuster().fit(data.proba, data.y, groups=data.groups)
    verdict, fresh = adjuster.verdict_, data.fresh
    codes = fresh.proba.argmax(axis=1), candidate(adjuster, data)(fresh.proba)
    codes += (fresh.fair.argmax(axis=1),)
    before, after, best = (truth.accuracy(fresh.truth, decided) for decided in codes)
    record = {
        "adopted": bool(verdict.adopted),
        "family": adjuster.family_ or "none",
        "reported": 100 * verdict.gain,
        "ci_low": 100 * verdict.ci_low,
        "ci_high": 100 * verdict.ci_high,
        "true": 100 * (after - before),  # of the candidate, adopted or not
        "room": 100 * (best - before),
        "loss_before": truth.log_loss(fresh.truth, fresh.proba),
        "loss_after": truth.log_loss(fresh.truth, adjuster.predict_proba(fresh.proba)),
        "loss_least": truth.log_loss(fresh.truth, fresh.truth),
    }
    return [record]


def candidate(adjuster: Adjuster, data: Data) -> Callable[[np.ndarray], np.ndarray]:
    """What the verdict is about: what is applied or, if nothing is, what would have been."""
    if adjuster.verdict_.adopted:
        return adjuster.predict
    table = adjuster.cv_results_
    loss = np.where(np.isin(table["family"], ("none", "temperature")), np.inf, table["log_loss"])
    row = {name: values[loss.argmin()].item() for name, values in table.items()}
    if row["family"] == "bias":
        model: Any = BiasCorrectedTemperature(row["strength"]).fit(data.proba, data.y)
    elif row["family"] == "matrix":
        model = MatrixScaling(row["strength"], penalty=row["penalty"]).fit(data.proba, data.y)
    else:
        model = _fit_alternating(row, adjuster.prior, data)
    return lambda proba: model.transform(proba).argmax(axis=1)


def _fit_alternating(row: Record, prior: str, data: Data) -> AlternatingNormalizer:
    """A setting as `Adjuster` fits it: rows weighted so that each class has its prior's share."""
    m = data.proba.shape[1]
    strata = post_stratify(data.y, m, prior)
    absent = np.flatnonzero(strata.absent)
    setting = {name: row[name] for name in ("alpha", "threshold", "reference", "smoothing")}
    model = AlternatingNormalizer(
        **setting, depth=int(row["depth"]), prior=class_prior(data.y, m, prior)
    )
    weight = np.concatenate([strata.weight, strata.absent[absent]])
    return model.fit(np.concatenate([data.proba, np.eye(m)[absent]]), sample_weight=weight)


def measure_costs(case: Case, data: Data) -> list[Record]:
    """What decisions cost: as they came, by costs, by `Adjuster`, by the true probabilities."""
    del case
    records, fresh = [], data.fresh
    for name, costs in COSTS.items():
        adjuster = Adjuster(costs=costs).fit(data.proba, data.y)
        decided = adjuster.predict(fresh.proba)
        m = costs.shape[0]
        codes = {
            "argmax": fresh.proba.argmax(axis=1),
            "by_costs": (fresh.proba @ costs).argmin(axis=1),
            "adjuster": np.array([m if one is None else one for one in decided], dtype=int),
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


def measure_purposes(case: Case, data: Data) -> list[Record]:
    """Balanced accuracy and macro-F1, of `Adjuster` for it and of the best rule, in points."""
    del case
    fresh, default = data.fresh, Adjuster().fit(data.proba, data.y)
    scores = {
        "balanced_accuracy": (truth.balanced_accuracy, truth.best_balanced),
        "f1_macro": (truth.macro_f1, truth.best_macro_f1),
    }
    records = []
    for name, (score, best) in scores.items():
        adjuster = Adjuster(scoring=name).fit(data.proba, data.y)
        codes = {
            "before": fresh.proba.argmax(axis=1),
            "for_accuracy": default.predict(fresh.proba),
            "after": adjuster.predict(fresh.proba),
            "best": best(fresh.truth),
        }
        points = {who: 100 * score(fresh.truth, code) for who, code in codes.items()}
        verdict = adjuster.verdict_
        said = {k: 100 * getattr(verdict, k) for k in ("gain", "ci_low", "ci_high")}
        records.append({"scoring": name, "adopted": bool(verdict.adopted), **said, **points})
    return records


PARTS: dict[str, Measure] = {
    "worlds": measure_world,
    "costs": measure_costs,
    "purposes": measure_purposes,
}


def run(
    part: str, cases: Sequence[Case], n_sets: int, *, seed: int = 0, n_jobs: int | None = None
) -> Iterator[Record]:
    """Measure all data sets of a part, one after the other."""
    tasks = (
        delayed(_measure)(part, case, number, seed) for case in cases for number in range(n_sets)
    )
    parallel = Parallel(n_jobs=n_jobs, return_as="generator", batch_size=4)
    for records in parallel(tasks):
        yield from records


def _measure(part: str, case: Case, number: int, seed: int) -> list[Record]:
    """Draw one data set and measure it.

    Its seed is its own: the result does not depend on how the work is shared out.
    """
    known = {"world": case.world.name, "n_rows": case.n_rows}
    key = zlib.crc32(repr(case.world).encode())
    rng = np.random.default_rng([seed, key, case.n_rows, number])
    data = draw_data(case.world, case.n_rows, rng, n_fresh=N_FRESH)
    with threadpool_limits(1):
        return [known | record for record in PARTS[part](case, data)]
