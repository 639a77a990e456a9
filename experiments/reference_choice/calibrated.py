r"""Predictions that need no adjustment, and what alternating normalization does to them.

Class :math:`j` of m has its mean at distance :math:`r_j` from the origin, on an axis of its own.
All classes are equally frequent, with normal noise of variance 1. The predictions are the true
probabilities :math:`p_j(x) \propto \exp(r_j x_j - r_j^2 / 2)`: calibrated, so that no decision can
be better. Classes far out are easy, those near the origin hard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

import altnorm
from experiments._output import markdown_table

__all__ = [
    "ALL",
    "CONFIDENT",
    "REFERENCES",
    "SPREADS",
    "Design",
    "Record",
    "calibrated_tables",
    "draw",
    "mean_and_error",
    "measure",
]

CONFIDENT = {f"confident, tau {tau:g}": tau for tau in (0.25, 0.5, 0.75)}
ALL, ALL_TAU = "all rows", 0.25
REFERENCES = (*CONFIDENT, ALL)
MIDDLE = 2.5  # mean distance of the classes
SPREADS = (0.0, 0.5, 1.0, 1.5, 2.0)
SHOWN = (0.0, 1.0, 2.0)  # spreads on the page


class Design(NamedTuple):
    """What is drawn."""

    sizes: tuple[int, ...] = (4, 10, 30)
    n_reference: int = 2000
    n_test: int = 20_000
    n_draws: int = 20


class Record(NamedTuple):
    """One reference on one draw; accuracy, gain and shares in per cent and points."""

    classes: int
    spread: float
    draw: int
    reference: str
    accuracy: float
    gain: float
    in_doubt: float
    hard_half: float  # share of the reference's mass on the harder half of the classes


def draw(m: int, spread: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """True probabilities of `n` rows, and their labels; class 0 is the hardest."""
    distance = np.linspace(MIDDLE - spread, MIDDLE + spread, m)
    y = rng.integers(m, size=n)
    x = rng.normal(size=(n, m))
    x[np.arange(n), y] += distance[y]
    return softmax(x * distance - distance**2 / 2, axis=1), y


def measure(m: int, spread: float, number: int, design: Design, seed: int) -> list[Record]:
    """Alpha 1 and depth 1 with each reference, on one draw."""
    rng = np.random.default_rng([seed, m, round(10 * spread), number])
    rows, _ = draw(m, spread, design.n_reference, rng)
    test, y = draw(m, spread, design.n_test, rng)
    before = test.argmax(axis=1) == y
    ambiguity, doubts = altnorm.ambiguity(rows), altnorm.ambiguity(test)
    records = []
    for name in REFERENCES:
        tau = CONFIDENT.get(name, ALL_TAU)
        kind = "all" if name == ALL else "confident"
        method = altnorm.AlternatingNormalizer(threshold=tau, prior="uniform", reference=kind)
        after = method.fit(rows).transform(test).argmax(axis=1) == y
        mass = rows[ambiguity <= tau if name in CONFIDENT else slice(None)].sum(axis=0)
        shares = (
            after.mean() - before.mean(),
            (doubts > tau).mean(),
            mass[: m // 2].sum() / mass.sum(),
        )
        values = (100 * float(x) for x in (before.mean(), *shares))
        records.append(Record(m, spread, number, name, *values))
    return records


def calibrated_tables(records: Sequence[Record]) -> dict[str, str]:
    """Mean gains over the draws."""
    worlds = dict.fromkeys((r.classes, r.spread) for r in records if r.spread in SHOWN)
    gains = []
    for world in worlds:
        by_reference = [
            [r for r in records if (r.classes, r.spread, r.reference) == (*world, name)]
            for name in REFERENCES
        ]
        accuracy = np.mean([r.accuracy for r in by_reference[0]])
        means = (f"{np.mean([r.gain for r in its]):+.2f}" for its in by_reference)
        gains.append([str(world[0]), f"{world[1]:g}", f"{accuracy:.1f} %", *means])
    return {"calibrated": markdown_table(["classes", "spread", "right before", *REFERENCES], gains)}


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean over the draws, and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(np.mean(values)), float(error)
