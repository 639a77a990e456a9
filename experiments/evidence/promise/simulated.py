"""The promise on simulated predictions whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from altnorm import Adjuster
from experiments._output import markdown_table
from experiments.evidence.promise.rules import RULES, Labelled, decide, in_sequence
from experiments.evidence.worlds import Rows, World, draw_data

N_FRESH = 20_000
FAMILIES = ("alternating", "bias", "matrix", "curves")
BIAS = ("bias",)  # where all families would take too long for many data sets


class Task(NamedTuple):
    """A world, a target, and the number of labels."""

    world: World
    target: float
    n_rows: int
    families: tuple[str, ...] = FAMILIES


_TWO = World("two classes, calibrated", n_classes=2, spread=3.0)
_SURE = World("two classes, too sure", n_classes=2, spread=3.0, sharpness=2.0)
_SIX = World("six classes, calibrated", n_classes=6, spread=4.0)
_FLAT = World("six classes, flat", n_classes=6, spread=2.0)
_BIASED = World("six classes, biased", n_classes=6, spread=4.0, bias=2.0)
_GROUPS = World("six classes, groups of 5", n_classes=6, spread=4.0, group_size=5, tell_groups=True)
_WEIGHTS = World("six classes, uneven weights", n_classes=6, spread=4.0, weights=1.0)
_MANY = World("50 classes, calibrated", n_classes=50, spread=5.0)
_MANY_BIASED = World("50 classes, biased", n_classes=50, spread=5.0, bias=3.0)
TASKS = (
    Task(_SURE, 0.9, 200),
    Task(_TWO, 0.95, 500),
    Task(_TWO, 0.99, 10_000, BIAS),
    Task(_FLAT, 0.7, 200),
    Task(_BIASED, 0.85, 300),
    Task(_SIX, 0.95, 500),
    Task(_BIASED, 0.9, 1000),
    Task(_SIX, 0.95, 2000),
    Task(_GROUPS, 0.85, 1500),
    Task(_WEIGHTS, 0.85, 1000),
    Task(_MANY, 0.8, 1000),
    Task(_MANY_BIASED, 0.9, 5000, BIAS),
)


NAMES = {
    "adjusted": "adjusted",
    "adjusted_sequence": "adjusted, in sequence",
    "as_they_came": "as they came",
    "mapie_holm": "MAPIE",
    "mapie_hundredths": "MAPIE, at hundredths",
    "mapie_sequence": "MAPIE, in sequence",
}
"""What the table calls the rules."""


def measure(task: Task, seed: int) -> dict[str, Any]:
    """Learn each rule from one data set; compare with what is true of fresh rows."""
    rng = np.random.default_rng([seed, task.n_rows, task.world.n_classes])
    data = draw_data(task.world, task.n_rows, rng, n_fresh=N_FRESH)
    rows = Labelled(data.proba, data.y, data.weight, data.groups)
    adjuster = Adjuster(task.families, target_accuracy=task.target).fit(*rows)
    adjusted, curve = adjuster.transform(data.fresh.proba), adjuster.verdict_.promise.coverage
    results = {
        "adjusted": (adjusted, adjuster.decision_.least),
        "adjusted_sequence": (adjusted, in_sequence(curve, task.target)),
    }
    for name, rule in RULES.items():
        results[name] = data.fresh.proba, rule(rows, task.target)
    record: dict[str, Any] = {
        "world": task.world.name,
        "target": task.target,
        "n_rows": task.n_rows,
        "seed": seed,
        "oracle": oracle_share(data.fresh, task.target),
    }
    for name, (proba, least) in results.items():
        share, accuracy = decide(proba, least, data.fresh.truth)
        record |= {f"{name}_share": share, f"{name}_broken": int(accuracy < task.target)}
    return record


def oracle_share(rows: Rows, target: float) -> float:
    """Share that the classifier without its fault could decide if its accuracy were known."""
    best = rows.fair.argmax(axis=1)
    right = np.take_along_axis(rows.truth, best[:, None], axis=1)[:, 0]
    along = np.cumsum(right[np.argsort(-rows.fair.max(axis=1))])
    passing = np.flatnonzero(along >= target * np.arange(1, best.size + 1))
    return float(passing[-1] + 1) / best.size if passing.size else 0.0


def promise_table(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per world: how often the promise was broken, and the share decided."""
    lines = [
        [world, f"{target:.0%}", f"{n_rows:,}", *_summary(sets)]
        for (world, target, n_rows), sets in _by_task(records).items()
    ]
    lines.append(["all", "", "", *_summary(records)])
    header = ["world", "target", "labels", "broken in", "decided"]
    return markdown_table([*header, "of the oracle's", "nothing decided in"], lines)


def rules_table(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per rule: the share that it decides, and how often it is wrong."""
    lines = []
    for name, words in NAMES.items():
        share, broken = (np.mean([r[f"{name}_{x}"] for r in records]) for x in ("share", "broken"))
        worst = max(
            np.mean([r[f"{name}_broken"] for r in sets]) for sets in _by_task(records).values()
        )
        lines.append([words, f"{share:.1%}", f"{broken:.1%}", f"{worst:.1%}"])
    return markdown_table(["rule", "decided", "broken in", "in the worst world"], lines)


def _by_task(
    records: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, float, int], list[Mapping[str, Any]]]:
    """Records of each world, target and number of labels."""
    sets: dict[tuple[str, float, int], list[Mapping[str, Any]]] = {}
    for record in records:
        sets.setdefault((record["world"], record["target"], record["n_rows"]), []).append(record)
    return sets


def _summary(sets: Sequence[Mapping[str, Any]]) -> list[str]:
    n, broken = len(sets), sum(record["adjusted_broken"] for record in sets)
    high = float(beta.ppf(0.975, broken + 1, n - broken)) if broken < n else 1.0
    share, oracle = (
        np.array([record[name] for record in sets]) for name in ("adjusted_share", "oracle")
    )
    return [
        f"{broken / n:.1%} (at most {high:.1%})",
        f"{share.mean():.1%}",
        f"{share.mean() / oracle.mean():.2f}",
        f"{(share == 0).mean():.1%}",
    ]
