"""What is measured: real predictions re-sampled to other balances, and simulated ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from altnorm import Adjuster
from altnorm.label_shift import balance_of_counts, profile_rows, take_in
from altnorm.peers import LabelShiftEM, ShrunkBias
from altnorm.shift import judge_shift
from experiments.label_shift.worlds import WORLDS, draw_world
from experiments.suite.files import Classifier

__all__ = ["METHODS", "OTHER_PEOPLE", "SHIFTS", "Case", "Design", "Simulated", "run", "simulate"]

METHODS = ("none", "adapt", "EM", "EM, bare", "BBSE", "oracle")
SHIFTS = ("no shift", "weak", "medium", "strong", "one class gone", "one class dominates")
_CONCENTRATION = {"weak": 5.0, "medium": 1.0, "strong": 0.3}
OTHER_PEOPLE = ("uavhuman", "iemocap4")
"""Validation and test rows are of other people; nobody changed the class balance."""

_FEWEST = 20  # test rows that a class needs to be drawn from
FEWEST_ROWS = 80


@dataclass(frozen=True)
class Design:
    """Sizes of the study."""

    sizes: tuple[int, ...] = (200, 1000, 5000)
    n_repeats: int = 2
    n_unshifted: int = 6
    worlds: tuple[tuple[int, int, int], ...] = ((4, 800, 400), (20, 2000, 1000), (150, 2000, 2000))
    n_simulated: int = 40
    seed: int = 0


class Case(NamedTuple):
    """One re-sampled set of new rows; accuracies in per cent."""

    classifier: str
    n_classes: int
    shift: str
    n_new: int
    reason: str
    p_value: float
    unexplained: float
    distance: float
    true_distance: float
    scores: dict[str, float]


class Simulated(NamedTuple):
    """One simulated set of new rows."""

    world: str
    n_classes: int
    n_new: int
    reason: str
    p_value: float
    unexplained: float
    covered: float
    gain: float


def adjuster() -> Adjuster:
    """The family that is quick to fit for every number of classes."""
    return Adjuster(("bias",), n_repeats=1)


def run(classifier: Classifier, design: Design) -> Iterator[Case]:
    """Re-sample the test rows of one classifier."""
    rng = np.random.default_rng(design.seed)
    fitted = Fitted(classifier)
    other = classifier.name.startswith(OTHER_PEOPLE)
    for n in design.sizes:
        if n > len(classifier.test_y):
            continue
        for shift in SHIFTS[:1] if other else SHIFTS:
            for _ in range(design.n_unshifted if shift == "no shift" else design.n_repeats):
                balance = new_balance(classifier.test_y, fitted.n_classes, shift, rng)
                rows = resample(classifier.test_y, balance, n, rng)
                if rows.size >= FEWEST_ROWS:
                    yield fitted.measure(shift, rows, balance)
    if other:
        balance = new_balance(classifier.test_y, fitted.n_classes, "no shift", rng)
        yield fitted.measure("no shift", np.arange(len(classifier.test_y)), balance)


def new_balance(y: np.ndarray, n_classes: int, shift: str, rng: np.random.Generator) -> np.ndarray:
    """Draw the class balance of new data."""
    counts = np.bincount(y, minlength=n_classes)
    balance = counts / counts.sum()
    if shift in _CONCENTRATION:
        balance = rng.dirichlet(np.full(n_classes, _CONCENTRATION[shift]))
        balance = balance * (counts >= _FEWEST) + 1e-12 * counts
    elif shift == "one class gone":
        balance[rng.choice(n_classes, p=balance)] = 0
    elif shift == "one class dominates":
        chosen = rng.choice(np.flatnonzero(counts >= _FEWEST))
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


class Fitted:
    """Everything that is fitted on validation rows, once for a classifier."""

    def __init__(self, data: Classifier) -> None:
        self.data = data
        self.n_classes = data.val_proba.shape[1]
        self.before = np.bincount(data.val_y, minlength=self.n_classes) / data.val_y.size
        self.adjuster = adjuster().fit(data.val_proba, data.val_y)
        self.bare = LabelShiftEM(calibrate=False, tol=1e-4).fit(data.val_proba, data.val_y)
        calibrated = self._calibrated(data.val_proba)
        self.profile = profile_rows(calibrated, data.val_y)
        self.em = LabelShiftEM("predictions", calibrate=False, tol=1e-4).fit(calibrated)

    def _calibrated(self, proba: np.ndarray) -> np.ndarray:
        return np.asarray(self.adjuster.shift_calibrator_.transform(proba))

    def measure(self, shift: str, rows: np.ndarray, balance: np.ndarray) -> Case:
        """Apply all methods to some test rows; the oracle knows the balance they are drawn from."""
        proba, y = self.data.test_proba[rows], self.data.test_y[rows]
        calibrated, source = self._calibrated(proba), self.profile.balance
        adapted = self.adjuster.adapt(proba)
        counts = take_in(self.profile, calibrated).counts
        rated = {
            "none": self.adjuster.transform(proba),
            "adapt": adapted.transform(proba),
            "EM": self.em.transform(calibrated),
            "EM, bare": self.bare.transform(proba),
            "BBSE": calibrated * balance_of_counts(self.profile, counts) / source,
            "oracle": calibrated * balance / source,
        }
        found: Any = adapted.shift_
        return Case(
            self.data.name,
            self.n_classes,
            shift,
            y.size,
            found.reason,
            found.p_value,
            found.unexplained,
            found.distance,
            float(np.abs(balance - self.before).sum() / 2),
            {name: 100 * float((p.argmax(axis=1) == y).mean()) for name, p in rated.items()},
        )


def simulate(design: Design) -> Iterator[Simulated]:
    """Draw every world again and again."""
    rng = np.random.default_rng(design.seed)
    for world in WORLDS:
        for m, n_val, n_new in design.worlds:
            for _ in range(design.n_simulated):
                val, val_y, proba, y = draw_world(world, m, n_val, n_new, rng)
                yield _simulated(world.name, m, val, val_y, proba, y)


def _simulated(
    world: str, m: int, val: np.ndarray, val_y: np.ndarray, proba: np.ndarray, y: np.ndarray
) -> Simulated:
    """As `adapt` does where nothing was adopted; without the search, which takes longer."""
    calibrator = ShrunkBias("labels", 1.0).fit(val, val_y)
    profile = profile_rows(calibrator.transform(val), val_y)
    new = calibrator.transform(proba)
    found = judge_shift(profile, take_in(profile, new))
    truth = np.bincount(y, minlength=m) / y.size
    inside = (np.array(found.after_low) <= truth) & (truth <= found.after_high)
    gain = 0.0
    if found.adapted:
        after = (new * np.divide(found.after, found.before)).argmax(axis=1)
        gain = 100 * float((after == y).mean() - (new.argmax(axis=1) == y).mean())
    return Simulated(
        world, m, y.size, found.reason, found.p_value, found.unexplained, inside.mean(), gain
    )
