"""Which worlds are drawn, how often, and how they are judged: the parts of the study."""

from __future__ import annotations

from dataclasses import replace

from experiments.evidence.study import ALTERNATING, Case
from experiments.evidence.worlds import STRENGTHS, World

__all__ = [
    "BIASED",
    "CALIBRATED",
    "CONFUSED",
    "DESIGNS",
    "GROUPED",
    "NOTHING",
    "PARTS",
    "SEVERAL",
    "SIZES",
    "SURE",
    "UNRELATED",
    "make_plan",
]

PARTS = ("nothing", "something", "designs", "groups", "stability", "unlabelled")
SIZES = (200, 1000)
PER_CLASS = (2, 5, 20)
CLASSES = (10, 100, 1000)

CALIBRATED = World("calibrated")
UNRELATED = World("labels unrelated to predictions", related=False)
NOTHING = (UNRELATED, CALIBRATED, World("calibrated, uneven classes", uneven=True))
SEVERAL = tuple(
    World(f"{mode}, {name}", n_classes=6, multilabel=mode, scoring=scoring)
    for name, scoring in (("micro-F1", None), ("subset accuracy", "subset_accuracy"))
    for mode in ("pairs", "labelwise")
)
BIASED = tuple(World(f"bias {strength:g}", bias=strength) for strength in STRENGTHS)
CONFUSED = World("confused pairs", leak=0.6)
SURE = World("too sure, right decisions", sharpness=2.0)
DESIGNS = {
    "random": World("random"),
    "balanced": World("balanced", fixed=True),
    "stratified": World("stratified", fixed=True, uneven=True),
}
GROUPED = (
    World("labels unrelated to predictions", related=False, group_size=10),
    World("calibrated", group_size=10),
    World("bias 2", group_size=10, bias=2.0),
)


def make_plan(*, quick: bool = False) -> list[Case]:
    """All cases, part by part; a quick run takes one data set of each, of few rows and classes."""
    cases = [*_nothing(), *_something(), *_designs(), *_groups(), *_stability(), *_unlabelled()]
    if not quick:
        return cases
    return [
        replace(case, n_sets=1, n_rows=min(case.n_rows, 300), n_fresh=2000)
        for case in cases
        if case.world.n_classes < 100
    ]


def _nothing() -> list[Case]:
    cases = []
    for n in SIZES:
        # Every decision is as good as any other: the sharpest test of the level.
        cases.append(Case("nothing", UNRELATED, n, 200))
        cases += [Case("nothing", world, n, 30) for world in (*NOTHING[1:], SURE)]
        cases += [Case("nothing", world, n, 30, (ALTERNATING,)) for world in SEVERAL]
    return cases


def _designs() -> list[Case]:
    n_sets = {10: (40, 40, 40), 100: (12, 12, 12), 1000: (2, 2, 1)}
    cases = []
    for m in reversed(CLASSES):  # the longest first
        for per_class, n in zip(PER_CLASS[::-1], n_sets[m][::-1], strict=True):
            for world in DESIGNS.values():
                case = Case("designs", replace(world, n_classes=m), m * per_class, n)
                cases.append(_shortened(case) if m == 1000 else case)
    return cases


def _shortened(case: Case) -> Case:
    """With 1,000 classes a fit takes minutes: fewer exponents, fewer fresh rows.

    And beyond 5,000 rows one estimator only.
    """
    chosen = case.estimators if case.n_rows <= 5000 else (ALTERNATING,)
    return replace(case, estimators=chosen, short_grid=True, n_fresh=2000)


def _groups() -> list[Case]:
    n_sets = (40, 15, 15)
    return [
        Case("groups", world, 1000, n, pass_groups=passed)
        for world, n in zip(GROUPED, n_sets, strict=True)
        for passed in (True, False)
    ]


def _something() -> list[Case]:
    # A bias of 1 and 1,000 rows are where it is decided whether the test has power.
    n_sets = ((60, 60), (60, 60), (60, 150), (60, 60), (30, 30))
    return [
        Case("something", world, n, k)
        for world, numbers in zip((*BIASED, CONFUSED), n_sets, strict=True)
        for n, k in zip(SIZES, numbers, strict=True)
    ]


def _stability() -> list[Case]:
    states = (0, 1, 2, 3)
    places = ((BIASED[1], 1000), (BIASED[2], 1000), (BIASED[3], 200))
    return [Case("stability", world, n, 12, random_states=states) for world, n in places]


def _unlabelled() -> list[Case]:
    return [
        Case("unlabelled", BIASED[-1], n, 15, n_unlabelled=more)
        for n in (50, 100, 200, 500)
        for more in (0, 2000)
    ]
