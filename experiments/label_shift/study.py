"""What is measured: real predictions re-sampled to other balances, and simulated ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from altnorm import Adjuster
from altnorm.balance.label_shift import Profile, balance_of_counts, profile_rows, take_in
from altnorm.balance.shift import judge_shift
from altnorm.peers import BiasCorrectedTemperature
from experiments._methods import LabelShiftEM
from experiments.label_shift.informed import informed_balance
from experiments.label_shift.worlds import WORLDS, draw_world
from experiments.suite.files import Classifier

__all__ = [
    "METHODS",
    "OTHER_PEOPLE",
    "SHIFTS",
    "Case",
    "Design",
    "Simulated",
    "new_balance",
    "resample",
    "run",
    "simulate",
]

METHODS = {
    "adapt": "adapt",
    "always": "always",
    "em": "EM",
    "em_bare": "EM, bare",
    "bbse": "BBSE",
    "informed": "informed",
    "oracle": "oracle",
}
"""Columns of the tables, by the field of a case."""

SHIFTS = ("no shift", "weak", "medium", "strong", "one class gone", "one class dominates")
CONCENTRATION = {"weak": 5.0, "medium": 1.0, "strong": 0.3}
OTHER_PEOPLE = ("uavhuman", "iemocap4")
"""Validation and test rows are of other people; nobody changed the class balance."""

FEWEST = 20
"""Test rows that a class needs to be drawn from."""

FEWEST_ROWS = 80


@dataclass(frozen=True)
class Design:
    """Sizes of the study."""

    sizes: tuple[int, ...] = (200, 1000, 5000)
    n_repeats: int = 2
    n_unshifted: int = 6
    worlds: tuple[tuple[int, int, int], ...] = ((4, 800, 400), (20, 2000, 1000), (150, 2000, 1000))
    n_simulated: int = 12
    n_unchanged: int = 48
    seed: int = 0


class Case(NamedTuple):
    """One re-sampled set of new rows; accuracies in per cent."""

    classifier: str
    n_classes: int
    shift: str
    n_new: int
    reason: str
    p_value: float
    strength: float
    unexplained: float
    distance: float
    true_distance: float
    none: float
    adapt: float
    always: float
    em: float
    em_bare: float
    bbse: float
    informed: float
    oracle: float
    none_bias: float = np.nan  # not in the lines of earlier runs
    adapt_bias: float = np.nan
    oracle_bias: float = np.nan


class Simulated(NamedTuple):
    """One simulated set of new rows."""

    world: str
    n_classes: int
    n_new: int
    reason: str
    p_value: float
    strength: float
    unexplained: float
    covered: float
    gain: float
    oracle: float


def adjuster(*families: str) -> Adjuster:
    """The families that are quick to fit for every number of classes."""
    return Adjuster(families, n_repeats=1)


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
    if shift in CONCENTRATION:
        balance = rng.dirichlet(np.full(n_classes, CONCENTRATION[shift]))
        balance = balance * (counts >= FEWEST) + 1e-12 * counts
    elif shift == "one class gone":
        balance[rng.choice(n_classes, p=balance)] = 0
    elif shift == "one class dominates":
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


class Fitted:
    """Everything that is fitted on validation rows, once for a classifier."""

    def __init__(self, data: Classifier) -> None:
        self.data = data
        self.n_classes = data.val_proba.shape[1]
        self.before = np.bincount(data.val_y, minlength=self.n_classes) / data.val_y.size
        self.adjuster = adjuster("bias", "matrix").fit(data.val_proba, data.val_y)
        self.biases = adjuster("bias").fit(data.val_proba, data.val_y)
        self.bare = LabelShiftEM(tol=1e-4).fit(data.val_proba, data.val_y)
        self.profile = Profile(*self.adjuster.shift_profile_)
        calibrated = self._calibrated(data.val_proba)
        self.em = LabelShiftEM("predictions", tol=1e-4).fit(calibrated)

    def _calibrated(self, proba: np.ndarray) -> np.ndarray:
        """As `adapt` calibrates for its estimate."""
        known = self.adjuster.shift_matrix_ or self.adjuster.shift_calibrator_
        return np.asarray(known.transform(proba))

    def measure(self, shift: str, rows: np.ndarray, balance: np.ndarray) -> Case:
        """Apply all methods to some test rows; the oracle knows the balance they are drawn from."""
        proba, y = self.data.test_proba[rows], self.data.test_y[rows]
        calibrated, window = self._calibrated(proba), self.adjuster.take_in(proba)
        adapted, source = self.adjuster.adapt(window), self.profile.balance
        known = informed_balance(calibrated / source, source, self.possible(shift))
        rated = {
            "none": self.adjuster.transform(proba),
            "adapt": adapted.transform(proba),
            "always": self.adjuster.adapt(window, only_balance=True).transform(proba),
            "em": self.em.transform(calibrated),
            "em_bare": self.bare.transform(proba),
            "bbse": calibrated * balance_of_counts(self.profile, window.intake.counts) / source,
            "informed": calibrated * known / source,
            "oracle": calibrated * balance / source,
            **self._with_biases(proba, balance),
        }
        found: Any = adapted.shift_
        return Case(
            self.data.name,
            self.n_classes,
            shift,
            y.size,
            found.reason,
            found.p_value,
            found.strength,
            found.unexplained,
            found.distance,
            float(np.abs(balance - self.before).sum() / 2),
            **{name: 100 * float((p.argmax(axis=1) == y).mean()) for name, p in rated.items()},
        )

    def _with_biases(self, proba: np.ndarray, balance: np.ndarray) -> dict[str, np.ndarray]:
        """The same if there were no matrix family."""
        adapted, ratio = self.biases.adapt(proba), balance / self.biases.shift_profile_[2]
        return {
            "none_bias": self.biases.transform(proba),
            "adapt_bias": adapted.transform(proba),
            "oracle_bias": self.biases.shift_calibrator_.transform(proba) * ratio,
        }

    def possible(self, shift: str) -> np.ndarray:
        """What the informed know: pseudo-rows (m,), or all balances that can be, (k, m)."""
        counts = np.bincount(self.data.test_y, minlength=self.n_classes)
        often = counts >= FEWEST
        if shift in CONCENTRATION:
            return np.asarray(CONCENTRATION[shift] * often + 1e-3)
        share = counts / counts.sum()
        if shift == "no shift":
            return share[None]
        same = 1.0 - np.eye(self.n_classes)
        if shift == "one class gone":
            kept = same * share
            return np.asarray(kept / kept.sum(axis=1, keepdims=True))
        halves = same * share / (same @ share)[:, None] / 2 + np.eye(self.n_classes) / 2
        return np.asarray(halves[often])


def simulate(design: Design) -> Iterator[Simulated]:
    """Draw every world again and again."""
    rng = np.random.default_rng(design.seed)
    for world in WORLDS:
        for m, n_val, n_new in design.worlds:
            still = world == WORLDS[0]
            for _ in range(design.n_unchanged if still else design.n_simulated):
                drawn = draw_world(world, m, n_val, n_new, rng)
                yield _simulated(world.name, m, *drawn)


def _simulated(
    world: str,
    m: int,
    val: np.ndarray,
    val_y: np.ndarray,
    proba: np.ndarray,
    y: np.ndarray,
    balance: np.ndarray,
) -> Simulated:
    """As `adapt` does where nothing was adopted; without the search, which takes longer."""
    calibrator = BiasCorrectedTemperature(1.0).fit(val, val_y)
    profile = profile_rows(calibrator.transform(val), val_y)
    new = calibrator.transform(proba)
    found = judge_shift(profile, take_in(profile, new))

    def accuracy(after: np.ndarray) -> float:
        return 100 * float(((new * after / profile.balance).argmax(axis=1) == y).mean())

    before, inside = accuracy(profile.balance), found.after_low <= balance
    inside &= balance <= found.after_high
    return Simulated(
        world,
        m,
        y.size,
        found.reason,
        found.p_value,
        found.strength,
        found.unexplained,
        float(inside.mean()),
        accuracy(np.array(found.after)) - before,
        accuracy(balance) - before,
    )
