"""Simulated predictions whose truth is known: label shift, and what is none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

__all__ = ["WORLDS", "World", "draw_world"]


class World(NamedTuple):
    """How new data differ from validation data."""

    name: str
    concentration: float | None = None  # of the Dirichlet distribution of the new balance
    signal: float = 1.0  # what classes still differ by, as a share of what they did
    slope: float = 1.0  # how sure the classifier is, compared with before
    moved: float = 0.0  # how far the classes have moved, as a share of what they differ by
    leaning: float = 0.0  # how much more it favours some classes, in logits


WORLDS = (
    World("nothing has changed"),
    World("strong label shift", 0.3),
    World("label shift", 1.0),
    World("weak label shift", 5.0),
    World("harder data", None, 0.7, 0.7),
    World("a surer classifier", None, 1.0, 1.5),
    World("strong label shift, harder data", 0.3, 0.8, 0.8),
    World("strong label shift, surer classifier", 0.3, 1.0, 1.4),
    World("strong label shift, other people", 0.3, moved=0.2),
    World("other people", moved=0.2),
    World("classes have moved", moved=0.4),
    World("classes have moved far", moved=0.6),
    World("classes have moved far, harder data", None, 0.7, 0.7, 0.6),
    World("leans to some classes", leaning=0.5),
    World("leans to some classes, harder data", None, 0.7, 0.7, leaning=0.5),
    World("leans much to some classes", leaning=1.0),
)


def draw_world(
    world: World, n_classes: int, n_val: int, n_new: int, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Draw rows: validation probabilities and labels, new ones, and the balance of the new."""
    m = n_classes
    bias, signal = 0.7 * rng.normal(size=m), 1.2 + 0.3 * np.log(m)
    old = 0.9 * rng.dirichlet(np.full(m, 3.0)) + 0.1 / m
    new = old
    if world.concentration is not None:
        new = rng.dirichlet(np.full(m, world.concentration))

    def draw(
        n: int, balance: np.ndarray, means: np.ndarray, slope: float, bias: np.ndarray
    ) -> list[np.ndarray]:
        codes = rng.choice(m, n, p=balance)
        scores = rng.normal(size=(n, m)) + signal * means[codes]
        # Overconfident and biased, as classifiers are.
        return [softmax(1.3 * slope * signal * scores + bias, axis=1), codes]

    means = np.eye(m)
    changed = world.signal * means + world.moved * rng.normal(size=(m, m))
    leaning = bias + world.leaning * rng.normal(size=m)
    before = draw(n_val, old, means, 1.0, bias)
    return *before, *draw(n_new, new, changed, world.slope, leaning), new
