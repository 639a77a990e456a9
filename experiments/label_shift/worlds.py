"""Simulated predictions whose truth is known: label shift, and what is none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

CONFIDENCE, LEANING = 1.3, 0.7  # what the classifier gets wrong, before and after


class World(NamedTuple):
    """How new data differ from validation data."""

    name: str
    concentration: float | None = None  # of the Dirichlet distribution of the new balance
    moved_inputs: float = 0.0  # added to the score of class 0, which stays right about it
    slope: float = 1.0  # how sure the classifier is, compared with before
    moved_classes: float = 0.0  # how far the classes have moved, as a share of what they differ by

    @property
    def is_label_shift(self) -> bool:
        """Whether nothing but the balance changes."""
        return self[2:] == (0.0, 1.0, 0.0)


WORLDS = (
    World("nothing has changed"),
    World("strong label shift", 0.3),
    World("label shift", 1.0),
    World("weak label shift", 5.0),
    *(World(f"inputs move to class 0 by {by}", moved_inputs=by) for by in (0.75, 1.0, 1.5, 2.0)),
    World("a surer classifier", slope=1.3),
    World("a duller classifier", slope=0.7),
    World("other people, a little", moved_classes=0.1),
    World("other people", moved_classes=0.2),
    World("strong label shift, other people", 0.3, moved_classes=0.2),
)


class Source:
    """A classifier and its validation data: normal classes, an old balance.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    rng : numpy.random.Generator
        What everything is drawn with.
    """

    def __init__(self, n_classes: int, rng: np.random.Generator) -> None:
        m = n_classes
        self.rng, self.n_classes = rng, m
        self.balance = 0.9 * rng.dirichlet(np.full(m, 3.0)) + 0.1 / m
        self.signal = 1.2 + 0.3 * np.log(m)
        self.bias = LEANING * rng.normal(size=m)

    def draw(self, n: int, world: World = WORLDS[0]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return predictions, labels, and the balance that the labels were drawn from."""
        m, rng = self.n_classes, self.rng
        balance = self.balance
        if world.concentration is not None:
            balance = rng.dirichlet(np.full(m, world.concentration))
        means = np.eye(m) + world.moved_classes * rng.normal(size=(m, m))
        codes = rng.choice(m, n, p=balance)
        scores = rng.normal(size=(n, m)) + self.signal * means[codes]
        log_p = log_softmax(self.signal * scores + np.log(self.balance), axis=1)
        if world.moved_inputs:
            # Other inputs, and labels as the classifier's true probabilities for them say.
            log_p = log_softmax(log_p + world.moved_inputs * np.eye(m)[0], axis=1)
            codes = (np.exp(log_p).cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
            codes = np.minimum(codes, m - 1)
        proba = softmax(world.slope * CONFIDENCE * log_p + self.bias, axis=1)
        return proba, codes, balance
