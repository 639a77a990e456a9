"""Simulated predictions whose truth is known: rows, labels, and what a decision is really worth.

A world draws labels, then logits given the labels, so that a sample can have any class counts; the
probabilities that the labels really have are the softmax of these logits (or, for several labels
per row, their logistic function), and the classifier reports these or something else. So the score
of any decisions can be averaged over the labels instead of drawing them, and the best decisions
are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

__all__ = [
    "AGAINST",
    "STRENGTHS",
    "Data",
    "Rows",
    "World",
    "best_decisions",
    "decisions",
    "draw_data",
    "expected_log_loss",
    "expected_score",
]

SPREAD = 2.0  # standard deviation of the logits
STRENGTHS = (0.25, 0.5, 1.0, 2.0)
AGAINST = 4  # so many of the ten classes the biased classifier is biased against
UNEVEN = (0.2, 1.8)  # shares of the rarest and the most frequent class, relative to the mean
WITHIN = 0.3  # standard deviation of the logits within a group
LABEL_OFFSET = -1.0  # mean logit of a label, where a row has several


@dataclass(frozen=True)
class World:
    """How rows are drawn and what the classifier reports.

    Parameters
    ----------
    name : str
        What the tables call it.
    n_classes : int
        Number of classes, or of labels.
    uneven : bool
        Whether the classes have uneven shares.
    fixed : bool
        Whether validation rows are drawn to fixed class counts, those of the shares.
    related : bool
        Whether labels have to do with the predictions; otherwise all classes are equally probable.
    group_size : int
        Rows that share a label and, nearly, the prediction.
    bias : float
        What the classifier takes off the logits of the first `AGAINST` classes.
    leak : float
        Share of its score that the first class of each pair takes from the second.
    sharpness : float
        What the classifier multiplies its logits by; above 1 it is too sure.
    multilabel : str, optional
        Mode of the normalizer for several labels per row.
    scoring : str, optional
        Score of the verdict; None is accuracy, or micro-F1 where there are several labels.
    """

    name: str
    n_classes: int = 10
    uneven: bool = False
    fixed: bool = False
    related: bool = True
    group_size: int = 1
    bias: float = 0.0
    leak: float = 0.0
    sharpness: float = 1.0
    multilabel: str | None = None
    scoring: str | None = None

    @property
    def score(self) -> str:
        """The score that `scoring` stands for."""
        natural = "accuracy" if self.multilabel is None else "f1_micro"
        return self.scoring or natural

    @property
    def options(self) -> dict[str, Any]:
        """Options of the estimators."""
        return {"multilabel": self.multilabel, "scoring": self.scoring}

    def counts(self, n: int) -> np.ndarray:
        """Class counts of about `n` rows, at least one each; shares are proportional to them."""
        relative = np.linspace(*UNEVEN, self.n_classes) if self.uneven else np.ones(self.n_classes)
        return np.maximum(1, np.rint(n / self.n_classes * relative)).astype(int)


class Rows(NamedTuple):
    """Rows of a world, each of shape (n, m)."""

    proba: np.ndarray  # what the classifier reports
    truth: np.ndarray  # the probabilities that the labels really have
    fair: np.ndarray  # what it would report without its fault: its decisions cannot be beaten


class Data(NamedTuple):
    """Validation data, and the rows on which the truth is taken."""

    proba: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    unlabelled: np.ndarray
    fresh: Rows


def draw_data(
    world: World, n: int, rng: np.random.Generator, *, n_fresh: int, n_unlabelled: int = 0
) -> Data:
    """Draw validation rows with labels, rows without, and fresh ones."""
    if world.multilabel is not None:
        rows, fresh = (_draw_multilabel(world, k, rng) for k in (n, n_fresh))
        y = (rng.random(rows.truth.shape) < rows.truth).astype(int)
        return Data(rows.proba, y, np.arange(n), rows.proba[:0], fresh)
    counts = world.counts(n)
    shares = counts / counts.sum()
    y = _draw_labels(world, counts, rng)
    labels = np.repeat(y, world.group_size)
    rows = _draw_rows(world, y, shares, rng, size=world.group_size)
    more, fresh = (
        _draw_rows(world, rng.choice(world.n_classes, k, p=shares), shares, rng)
        for k in (n_unlabelled, n_fresh)
    )
    return Data(
        rows.proba, labels, np.repeat(np.arange(y.size), world.group_size), more.proba, fresh
    )


def _draw_labels(world: World, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label for each unit: a row, or a group of rows."""
    n_units = counts.sum() // world.group_size
    if world.fixed:
        return rng.permutation(np.repeat(np.arange(world.n_classes), counts))
    return rng.choice(world.n_classes, n_units, p=counts / counts.sum())


def _draw_rows(
    world: World, labels: np.ndarray, shares: np.ndarray, rng: np.random.Generator, *, size: int = 1
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
        logits = logits + WITHIN * rng.normal(size=logits.shape)
    return Rows(softmax(_fault(world, logits), axis=1), truth, softmax(logits, axis=1))


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


def _fault(world: World, logits: np.ndarray) -> np.ndarray:
    """What the classifier makes of the logits."""
    reported = logits.copy()
    first = np.arange(0, world.n_classes - 1, 2)
    reported[:, first] += world.leak * (logits[:, first + 1] - logits[:, first])
    reported[:, :AGAINST] -= world.bias
    return world.sharpness * reported


def _draw_multilabel(world: World, n: int, rng: np.random.Generator) -> Rows:
    """Rows of several independent labels each."""
    truth = expit(SPREAD * rng.normal(size=(n, world.n_classes)) + LABEL_OFFSET)
    return Rows(truth, truth, truth)


def decisions(world: World, proba: np.ndarray) -> np.ndarray:
    """What a row's probabilities decide: class codes (n,), or 0/1 of shape (n, m)."""
    return proba.argmax(axis=1) if world.multilabel is None else (proba > 0.5).astype(np.int8)


def expected_score(world: World, truth: np.ndarray, decided: np.ndarray) -> float:
    """Score of decisions, averaged over the labels instead of drawing them.

    For micro-F1, the ratio of averages: what the score comes to on ever more rows.
    """
    if world.score == "f1_micro":
        return float(2 * (truth * decided).sum() / (truth.sum() + decided.sum()))
    if world.score == "subset_accuracy":
        return float(np.where(decided, truth, 1 - truth).prod(axis=1).mean())
    return float(truth[np.arange(len(truth)), decided].mean())


def expected_log_loss(truth: np.ndarray, proba: np.ndarray) -> float:
    """Log-loss averaged over the labels; truth against itself is the lowest there is."""
    smallest = np.finfo(float).tiny
    return float(-(truth * np.log(np.maximum(proba, smallest))).sum(axis=1).mean())


def best_decisions(world: World, rows: Rows) -> np.ndarray:
    """The decisions that nobody can beat who sees no labels.

    Those of a classifier without fault; micro-F1 wants more labels than that, as many of the most
    probable ones as make it largest.
    """
    if world.score != "f1_micro":
        return decisions(world, rows.fair)
    truth = rows.truth
    descending = np.sort(truth, axis=None)[::-1]
    f1 = 2 * descending.cumsum() / (truth.sum() + np.arange(1, truth.size + 1))
    return (truth >= descending[f1.argmax()]).astype(int)
