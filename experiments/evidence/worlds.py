"""Simulated predictions whose truth is known: rows, labels, and what a decision is really worth.

A world draws labels, then logits given the labels, so that a sample can have any class counts. The
probabilities that the labels really have are the softmax of these logits; the classifier reports
these or something else. So the score of any decisions can be averaged over the labels instead of
drawing them, and the best decisions are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

__all__ = ["AGAINST", "Data", "Rows", "World", "draw_data"]

SPREAD = 2.0  # standard deviation of the logits
AGAINST = 4  # so many classes the biased classifier is biased against
FRESH_SPEAKERS = 200

Fault = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class World:
    """How rows are drawn and what the classifier reports.

    Parameters
    ----------
    name : str
        What the tables call it.
    n_classes : int
        Number of classes.
    imbalance : float
        Share of the most frequent class over that of the rarest.
    fixed : bool
        Whether validation rows are drawn to fixed class counts, those of the shares.
    related : bool
        Whether labels have to do with the predictions; otherwise all classes are equally probable.
    bias : float
        What the classifier takes off the logits of the first `AGAINST` classes.
    leak : float
        Share of its score that the first class of each pair takes from the second.
    sharpness : float
        What the classifier multiplies its logits by; above 1 it is too sure.
    factor : bool
        Whether it multiplies the logits of a row by a number of its own for each predicted class.
    group_size : int
        Rows that share a label and, nearly, the prediction.
    within : float
        Standard deviation of the logits within a group.
    tell_groups : bool
        Whether the groups are passed to `fit`.
    speakers : int
        Number of speakers, if rows come speaker by speaker: each has class biases of his own.
    order : {"", "class", "confidence", "random"}
        How validation rows are sorted.
    """

    name: str
    n_classes: int = 10
    imbalance: float = 1.0
    fixed: bool = False
    related: bool = True
    bias: float = 0.0
    leak: float = 0.0
    sharpness: float = 1.0
    factor: bool = False
    group_size: int = 1
    within: float = 0.3
    tell_groups: bool = True
    speakers: int = 0
    order: str = ""

    def counts(self, n: int) -> np.ndarray:
        """Class counts of about `n` rows, at least one each; shares are proportional to them."""
        relative = np.geomspace(1, self.imbalance, self.n_classes)
        return np.maximum(1, np.rint(n * relative / relative.sum())).astype(int)


class Rows(NamedTuple):
    """Rows of a world, each of shape (n, m)."""

    proba: np.ndarray  # what the classifier reports
    truth: np.ndarray  # the probabilities that the labels really have
    fair: np.ndarray  # what it would report without its fault: its decisions cannot be beaten


class Data(NamedTuple):
    """Validation data, and the rows on which the truth is taken."""

    proba: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    fresh: Rows


def draw_data(world: World, n: int, rng: np.random.Generator, *, n_fresh: int) -> Data:
    """Draw validation rows with labels, and fresh rows."""
    if world.speakers:
        rows = _draw_speakers(world, world.speakers, n // world.speakers, rng)
        y = (np.log(rows.truth) + rng.gumbel(size=rows.truth.shape)).argmax(axis=1)
        per = n_fresh // FRESH_SPEAKERS
        return Data(rows.proba, y, None, _draw_speakers(world, FRESH_SPEAKERS, per, rng))
    counts, fault = world.counts(n), _make_fault(world, rng)
    shares = counts / counts.sum()
    units = _draw_labels(world, counts, rng)
    rows = _draw_rows(world, units, shares, fault, rng, size=world.group_size)
    more = rng.choice(world.n_classes, n_fresh, p=shares)
    fresh = _draw_rows(world, more, shares, fault, rng)
    y, groups = (np.repeat(a, world.group_size) for a in (units, np.arange(units.size)))
    order = _order(world, rows.proba, y, rng)
    told = world.group_size > 1 and world.tell_groups
    return Data(rows.proba[order], y[order], groups[order] if told else None, fresh)


def _draw_labels(world: World, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label for each unit: a row, or a group of rows."""
    if world.fixed:
        return rng.permutation(np.repeat(np.arange(world.n_classes), counts))
    n_units = counts.sum() // world.group_size
    return rng.choice(world.n_classes, n_units, p=counts / counts.sum())


def _draw_rows(
    world: World,
    labels: np.ndarray,
    shares: np.ndarray,
    fault: Fault,
    rng: np.random.Generator,
    *,
    size: int = 1,
) -> Rows:
    """Rows of units with given labels, `size` for each."""
    m = world.n_classes
    logits = SPREAD * rng.normal(size=(labels.size, m))
    truth = np.full(logits.shape, 1 / m)
    if world.related:
        logits = _given_labels(logits, labels, rng) + np.log(m * shares)
        truth = softmax(logits, axis=1)
    logits, truth = np.repeat(logits, size, axis=0), np.repeat(truth, size, axis=0)
    if world.group_size > 1:
        logits = logits + world.within * rng.normal(size=logits.shape)
    return Rows(softmax(fault(logits), axis=1), truth, softmax(logits, axis=1))


def _given_labels(logits: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Logits as they are given their labels, from logits alike in all classes.

    Draw a label from their softmax, and let the two classes change places: no class is special, so
    that is exact, and costs no rejected row. With other shares than equal ones the probabilities
    that the labels really have are the softmax of logits + log(share), by Bayes' rule.
    """
    rows = np.arange(labels.size)
    drawn = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)  # Gumbel's trick
    out = logits.copy()
    out[rows, drawn], out[rows, labels] = logits[rows, labels], logits[rows, drawn]
    return out


def _make_fault(world: World, rng: np.random.Generator) -> Fault:
    """What the classifier makes of the logits."""
    m = world.n_classes
    factors = np.exp(rng.uniform(-1, 1, m)) if world.factor else np.ones(m)

    def fault(logits: np.ndarray) -> np.ndarray:
        reported = logits.copy()
        first = np.arange(0, m - 1, 2)
        reported[:, first] += world.leak * (logits[:, first + 1] - logits[:, first])
        reported[:, :AGAINST] -= world.bias
        return world.sharpness * factors[reported.argmax(axis=1), None] * reported

    return fault


def _draw_speakers(world: World, n_speakers: int, per: int, rng: np.random.Generator) -> Rows:
    """Rows of speakers, one speaker after the other; over all speakers no class is favoured."""
    logits = SPREAD * rng.normal(size=(n_speakers * per, world.n_classes))
    own = np.repeat(rng.normal(size=(n_speakers, world.n_classes)), per, axis=0)
    proba = softmax(logits, axis=1)
    return Rows(proba, softmax(logits + own, axis=1), proba)


def _order(world: World, proba: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if world.order == "class":
        return np.argsort(y, kind="stable")
    if world.order == "confidence":
        return np.argsort(-proba.max(axis=1), kind="stable")
    return rng.permutation(y.size) if world.order == "random" else np.arange(y.size)
