"""Which worlds are drawn, of what size, and what decisions are for."""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments.evidence.worlds import World

__all__ = [
    "CASES",
    "COST_CASES",
    "INTERVAL_CASES",
    "NOTHING",
    "PURPOSES_NOTHING",
    "REPETITIONS",
    "SIZES",
    "SOMETHING",
    "TOLD",
    "Case",
]

REPETITIONS = 200
SIZES = (200, 500, 1000)


class Case(NamedTuple):
    """A world, the number of its validation rows, and a purpose."""

    world: World
    n_rows: int
    purpose: str = "accuracy"
    told: tuple[str, ...] = ()  # cautions that name what labels cannot show
    times: int = 1  # as many data sets: of worlds where fewer leave open whether few are adopted

    @property
    def key(self) -> tuple[str, int, str]:
        """What a record of it says."""
        return self.world.name, self.n_rows, self.purpose


def _labels(name: str, **options: Any) -> World:
    return World(name, several=True, **options)


_RARE_BIAS = World("bias 1 against rare classes", imbalance=30.0, bias=1.0)
_BIAS = {bias: World(f"bias {bias:g}", bias=bias) for bias in (0.5, 1.0, 2.0)}
_CONFUSED = World("confused pairs", leak=0.6)
SOMETHING = (
    Case(_BIAS[0.5], 1000),
    *(Case(_BIAS[1.0], n) for n in SIZES),
    *(Case(_BIAS[2.0], n) for n in (200, 500)),
    *(Case(_CONFUSED, n) for n in (200, 500)),
    Case(World("bias 1, sorted by class", bias=1.0, order="class"), 1000),
    Case(World("bias 1, sorted by confidence", bias=1.0, order="confidence"), 1000),
    Case(_RARE_BIAS, 1500, "balanced accuracy"),
    Case(_RARE_BIAS, 1500, "macro-F1"),
    Case(_BIAS[1.0], 1000, "costs, two classes 10"),
    Case(_BIAS[1.0], 1000, "costs, a person 0.5"),
    Case(_labels("labels, bias 1", bias=1.0), 500, "micro-F1 of labels"),
    Case(_labels("labels, bias 1", bias=1.0), 500, "macro-F1 of labels"),
    Case(_labels("labels that nothing tells", related=False), 300, "micro-F1 of labels"),
)
"""Decisions can become better."""

NOTHING = (
    Case(World("calibrated"), 200),
    Case(World("calibrated"), 1000),
    Case(World("calibrated, two classes", n_classes=2), 200),
    Case(World("uneven classes", imbalance=9.0), 1000),
    Case(World("too sure", sharpness=2.0), 500),
    Case(World("unrelated labels", related=False), 200),
    Case(World("unrelated labels, three classes", n_classes=3, related=False), 300),
    Case(World("unrelated labels, sorted", related=False, order="class"), 500),
    Case(World("unrelated labels, balanced", related=False, fixed=True), 200),
    Case(World("balanced", fixed=True), 400),
    Case(World("stratified", fixed=True, imbalance=9.0), 400),
    Case(World("sorted by class", order="class"), 500),
    Case(World("sorted by confidence", order="confidence"), 500),
    Case(World("confidence by class", n_classes=5, factor=True), 400, times=2),
    Case(World("confidence by class", factor=True), 1000, times=2),
    Case(World("wrong tails", n_classes=8, tails=True), 800),
    Case(World("wrong tails", n_classes=5, tails=True), 1500),
    Case(World("top 3 of 20 classes", n_classes=20, kept=3), 1000),
    Case(World("weights, log sd 1", weights=1.0), 500),
    Case(World("groups of 5, passed", group_size=5, tell_groups=True), 600),
    Case(World("one large group", n_classes=6, speakers=11, tell_groups=True), 660),
    Case(World("40 speakers in a row", n_classes=6, speakers=40), 2000),
    Case(World("leave-one-out", n_classes=3, related=False, left_out=True), 100),
    Case(World("leave-one-out, one feature", n_classes=3, left_out=True), 90),
)
"""Decisions are the best already, and the purpose is accuracy."""

_UNEVEN = 9.0
PURPOSES_NOTHING = (
    Case(World("best already", n_classes=5, imbalance=_UNEVEN, favour="balance"), 600,
         "balanced accuracy"),
    Case(World("best already, confidence by class", n_classes=5, imbalance=_UNEVEN,
               favour="balance", factor=True), 600, "balanced accuracy"),
    *(Case(World("best already, 90:10", n_classes=2, imbalance=1 / 9, favour="balance"), n,
           "balanced accuracy") for n in (40, 100)),
    Case(World("calibrated, five classes", n_classes=5), 600, "macro-F1"),
    Case(World("best already, 1 % positives", n_classes=2, imbalance=1 / 99, favour="f1"), 1000,
         "F1"),
    Case(World("best already, 3 % positives", n_classes=2, imbalance=3 / 97, favour="f1"), 500,
         "F1"),
    Case(World("best already, 3 % positives", n_classes=2, imbalance=3 / 97, favour="fbeta=2"), 500,
         "F2"),
    *(Case(World(f"best already, 1 : {dear}", n_classes=2, imbalance=0.25, favour=float(dear)), 600,
           f"costs 1 : {dear}") for dear in (10, 50)),
    Case(World("calibrated"), 500, "costs, a person 0.5"),
    Case(World("calibrated"), 500, "costs, two classes 10"),
    Case(_labels("labels, best already", favour="f1"), 300, "micro-F1 of labels"),
    Case(_labels("labels, best already", favour="f1"), 300, "macro-F1 of labels"),
)  # fmt: skip
"""Decisions are the best already for another purpose."""

_COPIES: dict[str, Any] = {"n_classes": 6, "within": 0.1, "order": "random"}
TOLD = (
    Case(World("40 cases, 6 near copies each", group_size=6, **_COPIES), 240,
         told=("likeness", "duplicates")),
    Case(World("30 cases, 40 near copies each", group_size=40, **_COPIES), 1200,
         told=("likeness", "duplicates")),
    Case(World("100 cases, 12 copies that differ more", n_classes=6, group_size=12, within=0.5,
               order="random"), 1200, told=("likeness", "duplicates")),
    Case(World("300 cases, 2 copies that differ more", group_size=2, within=0.3, order="random"),
         600, told=("likeness", "duplicates")),
    Case(World("100 cases, copies in 5 blocks", n_classes=6, group_size=5, order="blocks"), 500,
         told=("likeness",)),
    Case(World("groups of 5, not passed", group_size=5), 600,
         told=("likeness", "neighbours_alike")),
    Case(World("bias 2, repaired half-way", bias=2.0, fading=True), 1000, told=("fading",)),
    Case(World("labels of the 30 % least sure", labelled=0.3), 1000, told=("unlike_labelled",)),
    Case(World("bias 1, labels of the 30 % least sure", bias=1.0, labelled=0.3), 1000,
         told=("unlike_labelled",)),
    Case(World("weights, log sd 3", weights=3.0), 500, told=("uneven_weights",)),
)  # fmt: skip
"""Labels cannot show the truth: nothing is adopted, or a caution names it."""

CASES = SOMETHING + NOTHING + PURPOSES_NOTHING + TOLD
INTERVAL_CASES = (
    *(case for case in SOMETHING if case.purpose == "accuracy" and not case.world.order),
    *(Case(World("calibrated"), n) for n in (200, 1000)),
    Case(World("too sure", sharpness=2.0), 500),
    Case(World("confidence by class", n_classes=5, factor=True), 400),
)
"""Where the interval is compared with the truth, whether anything is adopted or not."""
COST_CASES = tuple(Case(World(f"bias {bias:g}", bias=bias), 1500) for bias in (1.0, 2.0))
