"""Simulated predictions whose truth is known: rows, labels, and what a decision is really worth.

A world draws logits; the probabilities that the labels really have are their softmax (or, for
several labels a row, their logistic function), and the classifier reports these or something
else. So the score of any decisions can be averaged over the labels instead of drawing them, and
the best decisions are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from altnorm.metrics import decide

__all__ = [
    "BIASED",
    "CALIBRATED",
    "NULL",
    "STRENGTHS",
    "Rows",
    "World",
    "best_decisions",
    "decisions",
    "draw_labels",
    "draw_rows",
    "expected_score",
]

SPREAD = 2.0  # standard deviation of the logits
STRENGTHS = (0.25, 0.5, 1.0, 2.0)
AGAINST = 4  # so many of the ten classes the biased classifier is biased against


@dataclass(frozen=True)
class World:
    """How rows are drawn and what the classifier reports.

    Parameters
    ----------
    name : str
        What the tables call it.
    n_classes : int
        Number of classes, or of labels.
    offsets : tuple of float
        Added to the logits: the classes' log-weights, from evenly spread between two ends.
    bias : float
        What the classifier takes off the logits of the first `AGAINST` classes.
    related : bool
        Whether labels have to do with the predictions; otherwise all classes are equally probable.
    multilabel : str, optional
        Mode of the normalizer for several labels a row.
    scoring : str
        Score of the verdict; "accuracy", the normalizer's default, stands for micro-F1 where
        there are several labels.
    """

    name: str
    n_classes: int = 10
    offsets: tuple[float, float] = (0.0, 0.0)
    bias: float = 0.0
    related: bool = True
    multilabel: str | None = None
    scoring: str = "accuracy"

    @property
    def score(self) -> str:
        """The score that `scoring` stands for."""
        several = self.multilabel is not None and self.scoring == "accuracy"
        return "f1_micro" if several else self.scoring

    @property
    def options(self) -> dict[str, Any]:
        """Options of :class:`altnorm.AlternatingNormalizerCV`."""
        scoring = None if self.scoring == "accuracy" else self.scoring
        return {"multilabel": self.multilabel, "scoring": scoring}


class Rows(NamedTuple):
    """Rows of a world, each of shape (n, m)."""

    proba: np.ndarray  # what the classifier reports
    truth: np.ndarray  # the probabilities that the labels really have


def _several(mode: str, scoring: str, told: str) -> World:
    return World(
        f"{mode}, calibrated, {told}",
        n_classes=6,
        offsets=(-1.0, -1.0),
        multilabel=mode,
        scoring=scoring,
    )


CALIBRATED = World("calibrated, balanced")
NULL = (
    CALIBRATED,
    World("calibrated, uneven classes", offsets=(-1.5, 1.5)),
    World("labels unrelated to predictions", related=False),
    World("calibrated, 100 classes", n_classes=100),
    _several("pairs", "accuracy", "micro-F1"),
    _several("labelwise", "accuracy", "micro-F1"),
    _several("pairs", "subset_accuracy", "subset accuracy"),
    _several("labelwise", "subset_accuracy", "subset accuracy"),
)
BIASED = tuple(World(f"bias {strength:g}", bias=strength) for strength in STRENGTHS)


def draw_rows(world: World, n: int, rng: np.random.Generator) -> Rows:
    """Draw `n` rows."""
    m = world.n_classes
    logits = SPREAD * rng.normal(size=(n, m)) + np.linspace(*world.offsets, m)
    reported = logits - world.bias * (np.arange(m) < AGAINST)
    if world.multilabel is not None:
        return Rows(expit(reported), expit(logits))
    truth = softmax(logits, axis=1) if world.related else np.full((n, m), 1 / m)
    return Rows(softmax(reported, axis=1), truth)


def draw_labels(world: World, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels with the given probabilities: class codes (n,), or 0/1 of shape (n, m)."""
    if world.multilabel is not None:
        return (rng.random(truth.shape) < truth).astype(int)
    # Gumbel's trick: the largest of log p + noise is class j with probability p_j.
    return (np.log(truth) + rng.gumbel(size=truth.shape)).argmax(axis=1)


def decisions(world: World, proba: np.ndarray) -> np.ndarray:
    """What a row's probabilities decide: as 0/1 of shape (n, m), one class in single-label rows."""
    if world.multilabel is not None:
        return decide(proba)
    return np.eye(world.n_classes, dtype=int)[proba.argmax(axis=1)]


def expected_score(world: World, truth: np.ndarray, decided: np.ndarray) -> float:
    """Score of 0/1 decisions, averaged over the labels instead of drawing them.

    For micro-F1, the ratio of averages: what the score comes to on ever more rows.
    """
    if world.score == "f1_micro":
        return float(2 * (truth * decided).sum() / (truth.sum() + decided.sum()))
    if world.score == "subset_accuracy":
        return float(np.where(decided, truth, 1 - truth).prod(axis=1).mean())
    return float((truth * decided).sum(axis=1).mean())


def best_decisions(world: World, truth: np.ndarray) -> np.ndarray:
    """The decisions that nobody can beat who knows the truth but not the labels.

    The probable class, or the probable labels; micro-F1 wants more labels than that, as many of
    the most probable ones as make it largest.
    """
    if world.score != "f1_micro":
        return decisions(world, truth)
    descending = np.sort(truth, axis=None)[::-1]
    f1 = 2 * descending.cumsum() / (truth.sum() + np.arange(1, truth.size + 1))
    return (truth >= descending[f1.argmax()]).astype(int)
