"""A few labels decide where nobody knows what has changed: `ask` and `judge` on adapted models."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np

from altnorm import Adjuster, ask, judge
from experiments.label_shift.study import Design
from experiments.label_shift.worlds import WORLDS, Source, World

KINDS = {
    "nothing has changed": [WORLDS[0]],
    "label shift": [world for world in WORLDS[1:] if world.is_label_shift],
    "inputs move": [world for world in WORLDS if world.moved_inputs],
    "something else": [w for w in WORLDS if not (w.is_label_shift or w.moved_inputs)],
}


class Asked(NamedTuple):
    """One set of new rows, labelled until there is an answer."""

    kind: str
    change: str
    n_classes: int
    n_new: int
    p_value: float  # of the test that needs no labels
    changed: int  # rows that adapting decides otherwise
    gain: float  # of adapting, over these rows, in points
    labels: int  # until the first answer
    is_right: bool  # whether it is to adopt where adapting gains, and not to where it does not

    def followed(self, budget: int) -> float:
        """What is gained by adapting only if that many labels say so."""
        is_adopted = (self.gain > 0) == self.is_right and self.labels <= budget
        return self.gain if is_adopted else 0.0


def ask_all(design: Design) -> Iterator[Asked]:
    """Adapt to sets of every kind of world, whatever the test says, and ask."""
    for m in design.n_classes:
        for k in range(design.n_asked_sources):
            rng = np.random.default_rng((design.seed, m, k, 1))
            source = Source(m, rng)
            proba, codes, _ = source.draw(design.n_val)
            adjuster = Adjuster().fit(proba, codes)
            for kind, worlds in KINDS.items():
                # Each source begins with another world, so that all are drawn alike.
                turn = islice(cycle(worlds), k * design.n_asked, (k + 1) * design.n_asked)
                for run, world in enumerate(turn):
                    yield ask_once(adjuster, source, world, kind, design.n_pool, run)


def ask_once(
    adjuster: Adjuster, source: Source, world: World, kind: str, n_new: int, seed: int
) -> Asked:
    """Label rows on which both models differ, one by one, and stop at the first answer."""
    proba, codes, _ = source.draw(n_new, world)
    adapted = adjuster.adapt(proba, assume="label_shift", insist=True)
    rows = ask(adapted, proba, against=adjuster, random_state=seed)

    def decided_after(n: int) -> int | None:
        labels = codes[rows[:n]]
        return judge(adapted, proba, rows, labels, against=adjuster).n_decided

    # All labels leave nothing open; a wrong answer, if there is one, came before the right one.
    n_right = decided_after(rows.size)
    assert n_right is not None
    n_wrong = decided_after(n_right - 1) if n_right else None
    right = [(model.predict(proba) == codes).mean() for model in (adjuster, adapted)]
    return Asked(
        kind,
        world.name,
        source.n_classes,
        n_new,
        adapted.shift_.p_value,
        rows.size,
        100 * float(right[1] - right[0]),
        n_right if n_wrong is None else n_wrong,
        n_wrong is None,
    )
