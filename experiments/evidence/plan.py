"""Which worlds are drawn, and of what size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments.evidence.worlds import World

__all__ = [
    "COSTS",
    "COST_CASES",
    "FACTOR",
    "NOTHING",
    "PURPOSE_CASES",
    "REPETITIONS",
    "SIZES",
    "SOMETHING",
    "UNTOLD",
    "Case",
    "world_cases",
]

REPETITIONS = 300
SIZES = (200, 500, 1000)


class Case(NamedTuple):
    """A world and the number of its validation rows."""

    world: World
    n_rows: int


_FAULTY = (
    *(World(f"bias {bias:g}", bias=bias) for bias in (0.5, 1.0, 2.0)),
    World("confused pairs", leak=0.6),
)
SOMETHING = (
    *(Case(world, n) for world in _FAULTY for n in SIZES),
    Case(World("bias 1, sorted by class", bias=1.0, order="class"), 1000),
    Case(World("bias 1, sorted by confidence", bias=1.0, order="confidence"), 1000),
)
NOTHING = (
    Case(World("calibrated"), 200),
    Case(World("calibrated"), 1000),
    Case(World("uneven classes", imbalance=9.0), 1000),
    Case(World("too sure", sharpness=2.0), 500),
    Case(World("unrelated labels", related=False), 500),
    Case(World("balanced", fixed=True), 400),
    Case(World("stratified", fixed=True, imbalance=9.0), 400),
    Case(World("groups of 5, passed", group_size=5), 600),
    Case(World("sorted by class", order="class"), 500),
    Case(World("sorted by confidence", order="confidence"), 500),
    Case(World("40 speakers in a row", n_classes=6, speakers=40), 2000),
    Case(
        World(
            "40 cases, 6 near copies each",
            n_classes=6,
            group_size=6,
            within=0.1,
            tell_groups=False,
            order="random",
        ),
        240,
    ),
)
UNTOLD = (Case(World("groups of 5, not passed", group_size=5, tell_groups=False), 600),)
"""Rows belong together and nobody says so: nothing is promised."""
FACTOR = tuple(Case(World("confidence by class", factor=True), n) for n in (300, 1000))

COST_CASES = tuple(Case(World(f"bias {bias:g}", bias=bias), 1500) for bias in (1.0, 2.0))
PURPOSE_CASES = tuple(
    Case(World("bias 1 against rare classes", imbalance=30.0, bias=1.0), n) for n in (500, 1500)
)


def world_cases() -> tuple[Case, ...]:
    """All cases of the main part."""
    return SOMETHING + NOTHING + FACTOR + UNTOLD


def _costs(grave: float, *, person: float | None) -> np.ndarray:
    """Costs of 1 for a mistake, `grave` if a row of the first two classes is missed."""
    m = 10
    costs = 1 - np.eye(m)
    costs[:2] *= grave
    return costs if person is None else np.column_stack([costs, np.full(m, person)])


COSTS = {
    "missing two classes costs 10": _costs(10, person=None),
    "missing two classes costs 10, a person 0.5": _costs(10, person=0.5),
    "every mistake costs 1, a person 0.5": _costs(1, person=0.5),
}
"""What decisions cost, true classes in rows; one more column leaves a row to a person."""
