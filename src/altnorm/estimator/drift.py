"""Does the reference still fit what comes in? Class use and doubt, then and now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.words import html_card, percent
from altnorm.estimator.kinds import FittedModel, kind_of

_N_DRAWS = 400
_NOISE = 4.0  # standard deviations beyond what chance does
_SMALL = 0.05  # a change that is real but smaller than this does not matter
_LARGE = 0.3  # a change of the mix of classes that nobody would call small


@storable
@dataclass(frozen=True, eq=False)
class Usage:
    """How a batch of predictions uses the classes."""

    counts: np.ndarray  # (m,) confident predictions of each class
    n_doubtful: int
    n_total: int  # rows, or entries of a multi-label problem

    def _check_fitted(self, fields: Fields) -> None:
        fields.array("counts", ("i", "u"), (fields.n_classes,), 0)
        fields.number("n_doubtful", 0, self.n_total)


@dataclass(frozen=True)
class Drift:
    """How far incoming predictions are from those the model was fitted on.

    Attributes
    ----------
    doubt_before, doubt_now : float
        Share of doubtful predictions at `fit` and now.
    class_distance : float
        Total variation distance between the class use of confident predictions then and now,
        less what chance alone would give; between 0 and 1.
    drifted : bool
        Whether one of the two changed by more than chance explains and by more than 0.05.
    n_rows : int
        Predictions looked at.
    advice : {"nothing", "adapt", "stop"}
        What follows: nothing has changed; adapt, if you know that only the class balance has
        changed, which nothing contradicts; or stop, since something else has changed.
    """

    doubt_before: float
    doubt_now: float
    class_distance: float
    drifted: bool
    n_rows: int
    advice: str = "nothing"

    def __bool__(self) -> bool:
        return self.drifted

    def __str__(self) -> str:
        doubt = f"{percent(self.doubt_now)} are in doubt ({percent(self.doubt_before)} at fit)"
        seen = f"{doubt}, and the mix of predicted classes {self._mix_words()}"
        if self.advice == "adapt":
            return (
                f"The class balance may have changed: {seen}. If you know that nothing else has, "
                "adapt with assume='label_shift'; otherwise a few labels can decide."
            )
        if self.advice == "stop":
            return (
                f"These predictions no longer look like those at fit: {seen}. Stop using this "
                "model, and fit again on current validation data."
            )
        return f"These predictions look like those at fit: {seen}."

    def _mix_words(self) -> str:
        if self.class_distance <= _SMALL:
            return "is about the same"
        much = " a lot" if self.class_distance > _LARGE else ""
        return f"has changed{much} ({percent(self.class_distance, 0)})"

    def _repr_html_(self) -> str:
        return html_card(str(self))


def count_usage(model: FittedModel, proba: np.ndarray) -> Usage:
    """Count how clean probabilities use the classes, with a model's notion of doubt."""
    kind = kind_of(model)  # a model without doubt of its own: AlternatingNormalizer's
    threshold, k_max = getattr(model, "threshold", 0.75), getattr(model, "k_max", 10)
    doubt = kind.in_doubt(proba, threshold, k_max=k_max)
    return Usage(kind.count_use(proba, doubt), int(doubt.sum()), doubt.size)


def measure_drift(before: Usage, now: Usage) -> Drift:
    """Compare the use of classes and the share of doubt of two batches."""
    then, current = (usage.n_doubtful / max(usage.n_total, 1) for usage in (before, now))
    pooled = (before.n_doubtful + now.n_doubtful) / max(before.n_total + now.n_total, 1)
    # Variance of the difference of two shares, if both batches came from one source.
    spread = pooled * (1 - pooled) * sum(1 / max(u.n_total, 1) for u in (before, now))
    more_doubt = abs(current - then) > _SMALL + _NOISE * np.sqrt(spread)
    distance, excess = _class_distance(before.counts, now.counts)
    drifted = bool(more_doubt or excess)
    advice = "stop" if drifted else "nothing"
    return Drift(then, current, distance, drifted, now.n_total, advice)


def _class_distance(before: np.ndarray, now: np.ndarray) -> tuple[float, bool]:
    """Distance beyond that of two samples from the pooled use, and whether it is beyond doubt."""
    sizes = int(before.sum()), int(now.sum())
    if not all(sizes):
        return 0.0, False  # no confident row on one side: there is nothing to compare
    rng = np.random.default_rng(0)  # the same rows, the same answer
    pooled = (before + now) / sum(sizes)
    draws = [rng.multinomial(size, pooled, _N_DRAWS) / size for size in sizes]
    chance = np.abs(draws[0] - draws[1]).sum(axis=1) / 2
    observed = np.abs(before / sizes[0] - now / sizes[1]).sum() / 2
    distance = max(0.0, float(observed - chance.mean()))
    return distance, bool(distance > _SMALL + _NOISE * chance.std())
