"""What is measured: simulated predictions, and real ones re-sampled to other balances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from altnorm import Adjuster
from experiments.label_shift.worlds import WORLDS, Source
from experiments.suite.files import Classifier

CONCENTRATION = {"weak": 5.0, "medium": 1.0, "strong": 0.3}
SHIFTS = (*CONCENTRATION, "one class dominates")
OTHER_PEOPLE = ("uavhuman", "iemocap4")
"""Validation and test rows are of other people; nobody changed the class balance."""

FEWEST = 20
"""Test rows that a class needs to be drawn from."""

FEWEST_ROWS = 80


@dataclass(frozen=True)
class Design:
    """Sizes of the study."""

    n_new: tuple[int, ...] = (300, 1000)
    n_classes: tuple[int, ...] = (3, 10)
    n_val: int = 1000
    n_sources: int = 4
    n_sets: int = 5
    sizes: tuple[int, ...] = (1000,)
    n_repeats: int = 1
    n_asked_sources: int = 25  # for each number of classes
    n_pool: int = 4000  # new rows, of which some are labelled
    n_asked: int = 10  # sets of each kind of world that a source is asked about
    seed: int = 0


class Found(NamedTuple):
    """One set of new rows; accuracies in per cent."""

    source: str
    change: str
    n_classes: int
    n_new: int
    p_value: float
    covered: float  # share of the intervals that hold the true share
    none: float
    word: float  # adapted on the word that only the balance changed, insisting where needed
    oracle: float  # the balance is known


def measure(
    adjuster: Adjuster, rows: tuple[np.ndarray, ...], old: np.ndarray, **which: Any
) -> Found:
    """Adapt to new rows, and ask the oracle, who knows their balance."""
    proba, codes, balance = rows
    adapted = adjuster.adapt(proba, assume="label_shift", insist=True)
    seen, known = adapted.shift_, adjuster.transform(proba) * balance / old
    inside = (np.array(seen.low) <= balance) & (balance <= np.array(seen.high))

    def accuracy(decided: np.ndarray) -> float:
        return 100 * float((decided == codes).mean())

    return Found(
        **which,
        n_classes=old.size,
        n_new=len(codes),
        p_value=seen.p_value,
        covered=float(inside.mean()),
        none=accuracy(adjuster.predict(proba)),
        word=accuracy(adapted.predict(proba)),
        oracle=accuracy(known.argmax(axis=1)),
    )


def simulate(design: Design) -> Iterator[Found]:
    """Draw every world again and again; validation data are fitted once for several sets."""
    for m in design.n_classes:
        for k in range(design.n_sources):
            rng = np.random.default_rng((design.seed, m, k))
            source = Source(m, rng)
            proba, codes, _ = source.draw(design.n_val)
            adjuster = Adjuster().fit(proba, codes)
            for world in WORLDS:
                for n in design.n_new:
                    for _ in range(design.n_sets):
                        rows = source.draw(n, world)
                        which = {"source": f"simulated {k}", "change": world.name}
                        yield measure(adjuster, rows, source.balance, **which)


def resampled(classifier: Classifier, design: Design) -> Iterator[Found]:
    """Re-sample the test rows of a classifier; where they are of other people, take them all."""
    rng = np.random.default_rng(design.seed)
    m, y = classifier.val_proba.shape[1], classifier.test_y
    adjuster = Adjuster().fit(classifier.val_proba, classifier.val_y)
    old = np.maximum(np.bincount(classifier.val_y, minlength=m), 0.5) / classifier.val_y.size
    if classifier.name.startswith(OTHER_PEOPLE):
        rows = classifier.test_proba, y, np.bincount(y, minlength=m) / y.size
        yield measure(adjuster, rows, old, source=classifier.name, change="other people")
        return
    for n in design.sizes:
        for shift in SHIFTS:
            for _ in range(design.n_repeats if n <= y.size else 0):
                balance = new_balance(y, m, shift, rng)
                chosen = resample(y, balance, n, rng)
                if chosen.size >= FEWEST_ROWS:
                    rows = classifier.test_proba[chosen], y[chosen], balance
                    yield measure(adjuster, rows, old, source=classifier.name, change=shift)


def new_balance(y: np.ndarray, n_classes: int, shift: str, rng: np.random.Generator) -> np.ndarray:
    """Draw the class balance of new data."""
    counts = np.bincount(y, minlength=n_classes)
    balance = counts / counts.sum()
    if shift in CONCENTRATION:
        balance = rng.dirichlet(np.full(n_classes, CONCENTRATION[shift]))
        balance = balance * (counts >= FEWEST) + 1e-12 * counts
    else:
        chosen = rng.choice(np.flatnonzero(counts >= FEWEST))
        balance *= 0.5 / (balance.sum() - balance[chosen])
        balance[chosen] = 0.5
    return np.asarray(balance / balance.sum())


def resample(y: np.ndarray, balance: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Row numbers of a sample with that balance; fewer than `n` where classes are used up.

    No row comes twice: a repeated row is not a new one, and would look like another distribution.
    """
    counts = np.bincount(y, minlength=balance.size)
    room = np.divide(counts, balance, out=np.full(balance.size, np.inf), where=balance > 1e-9)
    wanted = np.minimum(rng.multinomial(int(min(n, room.min())), balance), counts)
    parts = [
        rng.choice(np.flatnonzero(y == j), k, replace=False) for j, k in enumerate(wanted) if k
    ]
    return np.concatenate(parts)
