"""Is the promise of a target accuracy kept? How much is decided of what could be.

``python -m experiments.evidence.promise [--repetitions N] [--minutes M] [--tables] [--output DIR]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from altnorm import Adjuster
from experiments._output import fill_page, markdown_table, read_records, write_records
from experiments.evidence.worlds import Rows, World, draw_data

PAGE = Path(__file__).parent / "results" / "README.md"
REPETITIONS, N_FRESH = 1000, 20_000


class Task(NamedTuple):
    """A world, a target, and the number of labels."""

    world: World
    target: float
    n_rows: int
    families: tuple[str, ...] = ("alternating", "bias", "matrix", "curves")


_FEW = ("bias",)  # where all families would take too long for many data sets
_TWO = World("two classes, calibrated", n_classes=2, spread=3.0)
_SURE = World("two classes, too sure", n_classes=2, spread=3.0, sharpness=2.0)
_SIX = World("six classes, calibrated", n_classes=6, spread=4.0)
_BIASED = World("six classes, biased", n_classes=6, spread=4.0, bias=2.0)
_MANY = World("50 classes, calibrated", n_classes=50, spread=5.0)
_MANY_BIASED = World("50 classes, biased", n_classes=50, spread=5.0, bias=3.0)
_GROUPS = World("six classes, groups of 5", n_classes=6, spread=4.0, group_size=5)
TASKS = (
    Task(_SURE, 0.9, 200),
    Task(_TWO, 0.95, 500),
    Task(_TWO, 0.99, 10_000, _FEW),
    Task(_SIX, 0.7, 200),
    Task(_BIASED, 0.85, 300),
    Task(_BIASED, 0.9, 1000),
    Task(_SIX, 0.95, 2000, _FEW),
    Task(_GROUPS, 0.85, 1500, _FEW),
    Task(_MANY, 0.8, 1000, _FEW),
    Task(_MANY_BIASED, 0.9, 5000, _FEW),
)


def measure(task: Task, seed: int) -> dict[str, Any]:
    """Fit to one data set; compare with what is true of fresh rows."""
    rng = np.random.default_rng([seed, task.n_rows, task.world.n_classes])
    data = draw_data(task.world, task.n_rows, rng, n_fresh=N_FRESH)
    adjuster = Adjuster(task.families, target_accuracy=task.target)
    adjuster.fit(data.proba, data.y, groups=data.groups)
    adjusted = adjuster.transform(data.fresh.proba)
    decided = adjusted.max(axis=1) >= adjuster.decision_.least
    right = np.take_along_axis(data.fresh.truth, adjusted.argmax(axis=1)[:, None], axis=1)[:, 0]
    accuracy = float(right[decided].mean()) if decided.any() else float("nan")
    return {
        "world": task.world.name,
        "target": task.target,
        "n_rows": task.n_rows,
        "families": len(task.families),
        "seed": seed,
        "share": float(decided.mean()),
        "share_before": adjuster.verdict_.promise.share_before,
        "accuracy": accuracy,
        "broken": int(accuracy < task.target),
        "oracle": oracle_share(data.fresh, task.target),
    }


def oracle_share(rows: Rows, target: float) -> float:
    """Share that the classifier without its fault could decide if its accuracy were known."""
    best = rows.fair.argmax(axis=1)
    right = np.take_along_axis(rows.truth, best[:, None], axis=1)[:, 0]
    along = np.cumsum(right[np.argsort(-rows.fair.max(axis=1))])
    passing = np.flatnonzero(along >= target * np.arange(1, best.size + 1))
    return float(passing[-1] + 1) / best.size if passing.size else 0.0


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per world: how often the promise was broken, and the share decided."""
    header = ["world", "target", "labels", "data sets", "broken in", "decided", "of the oracle's"]
    header += ["nothing decided in", "as they came"]
    lines = []
    for task in dict.fromkeys(map(_task_of, records)):
        sets = [record for record in records if _task_of(record) == task]
        lines.append([task[0], f"{task[1]:.0%}", f"{task[2]:,}", *_summary(sets)])
    return markdown_table(header, lines)


def _summary(sets: Sequence[Mapping[str, Any]]) -> list[str]:
    n, broken = len(sets), sum(record["broken"] for record in sets)
    high = float(beta.ppf(0.975, broken + 1, n - broken)) if broken < n else 1.0
    share, before, oracle = (
        np.array([record[name] for record in sets]) for name in ("share", "share_before", "oracle")
    )
    return [
        f"{n}",
        f"{broken / n:.1%} (at most {high:.1%})",
        f"{share.mean():.1%}",
        f"{share.mean() / oracle.mean():.2f}",
        f"{(share == 0).mean():.0%}",
        f"{before.mean():.1%}",
    ]


def _task_of(record: Mapping[str, Any]) -> tuple[str, float, int]:
    return record["world"], record["target"], record["n_rows"]


def run(n_sets: int, minutes: float) -> Iterator[dict[str, Any]]:
    """Measure in turns, one data set of each task, until all are done or the time is up."""
    end = time.monotonic() + 60 * minutes
    for seed in range(n_sets):
        for task in TASKS:
            if time.monotonic() > end:
                return
            yield measure(task, seed)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study, and write one line per data set."""
    parser = argparse.ArgumentParser(description="Is the promise of a target accuracy kept?")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="data sets per world")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--tables", action="store_true", help="only the table, from the CSV file")
    parser.add_argument("--output", type=Path, default=PAGE.parent)
    arguments = parser.parse_args(argv)
    path = arguments.output / "promise.csv"
    if not arguments.tables:
        write_records(path, list(run(arguments.repetitions, arguments.minutes)))
    fill_page(PAGE, arguments.output, {"promise": table(read_records(path))})


if __name__ == "__main__":
    main()
