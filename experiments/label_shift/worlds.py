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


WORLDS = (
    World("nothing has changed"),
    World("label shift", 0.5),
    World("weak label shift", 5.0),
    World("harder data", None, 0.7, 0.7),
    World("a surer classifier", None, 1.0, 1.5),
    World("label shift and harder data", 0.5, 0.7, 0.7),
)


def draw_world(
    world: World, n_classes: int, n_val: int, n_new: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw validation rows and new rows: probabilities, labels, probabilities, labels."""
    m = n_classes
    bias, signal = 0.7 * rng.normal(size=m), 1.2 + 0.3 * np.log(m)
    old = 0.9 * rng.dirichlet(np.full(m, 3.0)) + 0.1 / m
    new = old
    if world.concentration is not None:
        new = rng.dirichlet(np.full(m, world.concentration))

    def draw(n: int, balance: np.ndarray, part: float, slope: float) -> tuple[np.ndarray, ...]:
        codes = rng.choice(m, n, p=balance)
        scores = rng.normal(size=(n, m)) + part * signal * np.eye(m)[codes]
        # Overconfident and biased, as classifiers are.
        return softmax(1.3 * slope * signal * scores + bias, axis=1), codes

    val, val_y = draw(n_val, old, 1.0, 1.0)
    proba, y = draw(n_new, new, world.signal, world.slope)
    return val, val_y, proba, y
