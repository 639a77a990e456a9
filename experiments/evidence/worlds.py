"""Simulated predictions whose truth is known: rows, labels, and what a decision is really worth.

A world draws labels, then logits given the labels, so that a sample can have any class counts. The
probabilities that the labels really have are the softmax of these logits; the classifier reports
these or something else. So the score of any decisions can be averaged over the labels instead of
drawing them, and the best decisions are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from experiments.evidence.truth import best_factor

__all__ = ["AGAINST", "Data", "Rows", "World", "draw_data"]

SPREAD = 2.0  # standard deviation of the logits, unless a world says otherwise
AGAINST = 4  # so many classes the biased classifier is biased against
FRESH_SPEAKERS = 200
LARGE, SMALL = 600, 6  # rows of the large group, and of each small one
COMMON = -1.5  # mean log-odds of a label, where a row has several
N_MANY = 200_000  # rows that the best threshold of an F-score is found on
JITTER = 1e-3  # standard deviation of logits that are nearly equal
STEP = 0.7  # standard deviations between the means of classes along a line

Fault = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class World:
    """How rows are drawn and what the classifier reports.

    Parameters
    ----------
    name : str
        What the tables call it.
    n_classes : int
        Number of classes, or of labels.
    several : bool
        Whether a row has several labels, each independent of the others.
    imbalance : float
        Share of the last class over that of the first; shares are a geometric series.
    fixed : bool
        Whether validation rows are drawn to fixed class counts, those of the shares.
    related : bool
        Whether labels have to do with the predictions; otherwise all classes are equally probable.
    bias : float
        What the classifier takes off the logits of the first `AGAINST` classes.
    fading : bool
        Whether the bias was repaired half-way: later rows of the file, and fresh ones, are without.
    leak : float
        Share of its score that the first class of each pair takes from the second.
    sharpness : float
        What the classifier multiplies its logits by; above 1 it is too sure.
    factor : bool
        Whether it multiplies the logits of a row by a number of its own for each predicted class.
    favour : float, "balance", "f1" or "fbeta=2"
        What probabilities of the last class, or odds of every label, were multiplied by: plain
        decisions are then the best for costs, or for an F-score. "balance" divides by class shares.
    tails : bool
        Whether all but the two largest probabilities are in the wrong order.
    kept : int
        Number of largest probabilities that are kept, the others being 0; 0 keeps all.
    left_out : bool
        Whether a row is predicted by a fit to all other rows (leave-one-out): of one feature or,
        where labels are not related, of nothing but the class shares.
    group_size : int
        Rows that share a label and, nearly, the prediction.
    within : float
        Standard deviation of the logits within a group.
    tell_groups : bool
        Whether the groups are passed to `fit`.
    speakers : int
        Number of speakers, if rows come speaker by speaker: each has class biases of his own. Where
        the groups are passed, the first has many rows and the others few.
    weights : float
        Standard deviation of the logarithms of the rows' weights; 0: none are passed.
    labelled : float
        Share of the rows that have a label: those the classifier is least sure of.
    order : {"", "class", "confidence", "random", "blocks"}
        How validation rows are sorted; in blocks, one copy of each case after another.
    spread : float
        Standard deviation of the logits: the larger, the more rows have one probable class.
    """

    name: str
    n_classes: int = 10
    several: bool = False
    imbalance: float = 1.0
    fixed: bool = False
    related: bool = True
    bias: float = 0.0
    fading: bool = False
    leak: float = 0.0
    sharpness: float = 1.0
    factor: bool = False
    favour: float | str = 1.0
    tails: bool = False
    kept: int = 0
    left_out: bool = False
    group_size: int = 1
    within: float = 0.3
    tell_groups: bool = False
    speakers: int = 0
    weights: float = 0.0
    labelled: float = 1.0
    order: str = ""
    spread: float = SPREAD

    def counts(self, n: int) -> np.ndarray:
        """Class counts of about `n` rows, at least one each; shares are proportional to them."""
        relative = self.shares() * n
        return np.maximum(1, np.rint(relative)).astype(int)

    def shares(self) -> np.ndarray:
        """Shares of the classes."""
        relative = np.geomspace(1, self.imbalance, self.n_classes)
        return np.asarray(relative / relative.sum())


class Rows(NamedTuple):
    """Rows of a world, each of shape (n, m)."""

    proba: np.ndarray  # what the classifier reports
    truth: np.ndarray  # the probabilities that the labels really have
    fair: np.ndarray  # what it would report without its fault: its decisions cannot be beaten


class Data(NamedTuple):
    """Validation data, and the rows on which the truth is taken."""

    proba: np.ndarray
    y: np.ndarray  # -1: no label
    groups: np.ndarray | None
    weight: np.ndarray | None
    fresh: Rows


def draw_data(world: World, n: int, rng: np.random.Generator, *, n_fresh: int) -> Data:
    """Draw validation rows with labels, and fresh rows."""
    if world.speakers:
        return _draw_speaker_data(world, n, rng, n_fresh)
    if world.left_out and world.related:
        return _draw_left_out_of_a_line(world, n, rng, n_fresh)
    if world.several:
        rows, fresh = (_draw_several(world, size, rng) for size in (n, n_fresh))
        return Data(rows.proba, (rng.random(rows.truth.shape) < rows.truth) * 1, None, None, fresh)
    counts, fault = world.counts(n), _make_fault(world, rng)
    shares = counts / counts.sum() if world.fixed else world.shares()
    units = _draw_labels(world, counts, rng)
    n_rows = units.size * world.group_size
    strength = np.where(world.fading & (np.arange(n_rows) >= n_rows / 2), 0.0, 1.0)
    rows = _draw_rows(world, units, shares, fault, rng, strength, size=world.group_size)
    more = rng.choice(world.n_classes, n_fresh, p=shares)
    fresh = _draw_rows(world, more, shares, fault, rng, np.full(n_fresh, 1.0 - world.fading))
    y, groups = (np.repeat(a, world.group_size) for a in (units, np.arange(units.size)))
    if world.left_out:
        rows = rows._replace(proba=_leave_one_out(y, world.n_classes, rng))
    order = _order(world, rows.proba, y, rng)
    weight = np.exp(world.weights * rng.normal(size=y.size)) if world.weights else None
    told = groups[order] if world.tell_groups else None
    return Data(rows.proba[order], _hide(world, rows.proba, y)[order], told, weight, fresh)


def _draw_labels(world: World, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label for each unit: a row, or a group of rows."""
    if world.fixed:
        return rng.permutation(np.repeat(np.arange(world.n_classes), counts))
    return rng.choice(world.n_classes, counts.sum() // world.group_size, p=world.shares())


def _draw_rows(
    world: World,
    labels: np.ndarray,
    shares: np.ndarray,
    fault: Fault,
    rng: np.random.Generator,
    strength: np.ndarray,
    *,
    size: int = 1,
) -> Rows:
    """Rows of units with given labels, `size` for each."""
    m = world.n_classes
    logits = world.spread * rng.normal(size=(labels.size, m))
    truth = np.full(logits.shape, 1 / m)
    if world.related:
        logits = _given_labels(logits, labels, rng) + np.log(m * shares)
        truth = softmax(logits, axis=1)
    logits, truth = np.repeat(logits, size, axis=0), np.repeat(truth, size, axis=0)
    if world.group_size > 1:
        logits = logits + world.within * rng.normal(size=logits.shape)
    if world.left_out:
        logits = JITTER * logits
    proba = _spoil(world, softmax(fault(logits, strength), axis=1))
    return Rows(proba, truth, softmax(logits, axis=1))


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
    """What the classifier makes of the logits; `strength` is how much of its bias is left."""
    m = world.n_classes
    factors = np.exp(rng.uniform(-1, 1, m)) if world.factor else np.ones(m)
    favoured = np.log(_favour(world))

    def fault(logits: np.ndarray, strength: np.ndarray) -> np.ndarray:
        reported = logits + favoured
        first = np.arange(0, m - 1, 2)
        reported[:, first] += world.leak * (logits[:, first + 1] - logits[:, first])
        reported[:, :AGAINST] -= world.bias * strength[:, None]
        return world.sharpness * factors[reported.argmax(axis=1), None] * reported

    return fault


def _favour(world: World) -> np.ndarray:
    """What the probability of each class was multiplied by."""
    if world.favour == "balance":
        return 1 / world.shares()
    factors = np.ones(world.n_classes)
    factors[-1] = _f_factor(world) if isinstance(world.favour, str) else world.favour
    return factors


@cache
def _f_factor(world: World) -> float:
    """What odds are multiplied by, so that deciding at a half is the best for an F-score."""
    beta = 1.0 if world.favour == "f1" else 2.0
    rng = np.random.default_rng(0)
    if world.several:
        return best_factor(expit(_draw_log_odds(world, N_MANY // world.n_classes, rng)), beta)
    shares = world.shares()
    logits = world.spread * rng.normal(size=(N_MANY, world.n_classes))
    given = _given_labels(logits, rng.choice(world.n_classes, N_MANY, p=shares), rng)
    p = softmax(given + np.log(shares), axis=1)
    return best_factor(p[:, -1:], beta)


def _spoil(world: World, proba: np.ndarray) -> np.ndarray:
    """What is wrong with the smaller probabilities."""
    order = np.argsort(-proba, axis=1)
    if world.tails:
        tail = np.take_along_axis(proba, order[:, :1:-1], axis=1)
        proba = proba.copy()
        np.put_along_axis(proba, order[:, 2:], tail, axis=1)
    if world.kept:
        kept = proba >= np.take_along_axis(proba, order[:, [world.kept - 1]], axis=1)
        proba = np.where(kept, proba, 0.0)
        proba /= proba.sum(axis=1, keepdims=True)
    return proba


def _leave_one_out(y: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Class shares of all other rows: a classifier that has learnt nothing else."""
    counts = np.bincount(y, minlength=n_classes) + 1 - np.eye(n_classes)[y]
    return softmax(np.log(counts) + JITTER * rng.normal(size=counts.shape), axis=1)


def _draw_left_out_of_a_line(world: World, n: int, rng: np.random.Generator, n_fresh: int) -> Data:
    """Classes along one feature, normal with the same variance, and logistic regression."""
    means, line = STEP * np.arange(world.n_classes), LogisticRegression()
    y, more = (rng.integers(world.n_classes, size=size) for size in (n, n_fresh))
    x, fresh = (means[labels][:, None] + rng.normal(size=(labels.size, 1)) for labels in (y, more))
    left_out = cross_val_predict(line, x, y, cv=LeaveOneOut(), method="predict_proba")
    truth, proba = softmax(-((fresh - means) ** 2) / 2, axis=1), line.fit(x, y).predict_proba(fresh)
    return Data(left_out, y, None, None, Rows(proba, truth, truth))


def _draw_log_odds(world: World, n: int, rng: np.random.Generator) -> np.ndarray:
    return COMMON + world.spread * rng.normal(size=(n, world.n_classes))


def _draw_several(world: World, n: int, rng: np.random.Generator) -> Rows:
    """Rows with several labels: log-odds of each are normal."""
    log_odds = _draw_log_odds(world, n, rng)
    fair = expit(log_odds)
    truth = fair if world.related else np.full(fair.shape, expit(COMMON))
    factor = _f_factor(world) if isinstance(world.favour, str) else world.favour
    reported = log_odds + np.log(factor)
    reported[:, :AGAINST] -= world.bias
    return Rows(expit(world.sharpness * reported), truth, fair if world.related else truth)


def _draw_speaker_data(world: World, n: int, rng: np.random.Generator, n_fresh: int) -> Data:
    """Rows of speakers, with a large one among small ones where groups are passed."""
    sizes = np.full(world.speakers, n // world.speakers)
    if world.tell_groups:
        sizes = np.array([LARGE, *[SMALL] * (world.speakers - 1)])
    rows = _draw_speakers(world, sizes, rng)
    y = (np.log(rows.truth) + rng.gumbel(size=rows.truth.shape)).argmax(axis=1)
    groups = np.repeat(np.arange(sizes.size), sizes) if world.tell_groups else None
    per = np.full(FRESH_SPEAKERS, n_fresh // FRESH_SPEAKERS)
    return Data(rows.proba, y, groups, None, _draw_speakers(world, per, rng))


def _draw_speakers(world: World, sizes: np.ndarray, rng: np.random.Generator) -> Rows:
    """Rows of speakers, one speaker after the other; over all speakers no class is favoured."""
    logits = world.spread * rng.normal(size=(sizes.sum(), world.n_classes))
    own = np.repeat(rng.normal(size=(sizes.size, world.n_classes)), sizes, axis=0)
    proba = softmax(logits, axis=1)
    return Rows(proba, softmax(logits + own, axis=1), proba)


def _hide(world: World, proba: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels, of the least sure rows alone."""
    if world.labelled == 1:
        return y
    top = proba.max(axis=1)
    return np.where(top <= np.quantile(top, world.labelled), y, -1)


def _order(world: World, proba: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if world.order == "class":
        return np.argsort(y, kind="stable")
    if world.order == "confidence":
        return np.argsort(-proba.max(axis=1), kind="stable")
    if world.order == "blocks":
        return np.argsort(np.arange(y.size) % world.group_size, kind="stable")
    return rng.permutation(y.size) if world.order == "random" else np.arange(y.size)
