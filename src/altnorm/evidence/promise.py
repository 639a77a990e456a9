r"""A promise: of the rows that are decided, at least a target share is right.

Rows are decided most confident first, as many as the labels prove to be right often enough: of
:math:`n` rows decided, :math:`h` are right, and the exact binomial test rejects an accuracy below
the target :math:`t`:

.. math:: \Pr(\mathrm{Bin}(n, t) \ge h) \le 0.025

The largest share that passes is decided. All shares are looked at, and 2.5 % at each allows for
that: the promise is broken in at most about 5 % of data sets (``experiments/evidence``).

Rows of a group may all be right or wrong together, so that groups are counted, and with weights the
effective number of rows, :math:`(\sum w)^2 / \sum w^2`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from altnorm._base.fitted import TINY, Fields
from altnorm._base.persistence import storable
from altnorm._base.words import percent, plural

LEVEL = 0.025  # level of the test at each share
CONFIDENCE = 0.95  # how sure the promise is, after a look at all shares
NOTHING = 2.0  # a threshold above any probability: no row is decided
MOST_TIMES = 100  # more labels than that times those at hand are not worth advising
N_POINTS = 200  # more points of a curve than that cannot be told apart in a figure


@storable
@dataclass(frozen=True, eq=False)
class Coverage:
    """What is right among the rows decided, the most confident first, by how many are decided.

    Rows of equal confidence are decided together, so there is one entry for each confidence.
    """

    confidence: np.ndarray  # (k,) of the last row decided, decreasing
    share: np.ndarray  # (k,) of the rows, that is decided
    accuracy: np.ndarray  # (k,) among them
    units: np.ndarray  # (k,) effective number of independent rows among them
    n_decided: np.ndarray  # (k,)
    expected: np.ndarray  # (k,) accuracy among them, as the confidences have it

    def _check_fitted(self, fields: Fields) -> None:
        k = len(fields.array("share", "f", (None,), 0, 1))
        fields.array("accuracy", "f", (k,), 0, 1)
        for name in ("confidence", "expected"):  # sums of probabilities are rounded
            fields.array(name, "f", (k,), 0, 1 + 1e-6)
        fields.array("units", "f", (k,), TINY)
        fields.array("n_decided", "i", (k,), 1)

    @property
    def area(self) -> float:
        """Area under the curve of accuracy against share: one minus that of risk and coverage."""
        return float(np.diff(self.share, prepend=0.0) @ self.accuracy)

    def passes(self, target: float) -> np.ndarray:
        """Where an accuracy below the target is rejected."""
        hits = self.units * self.accuracy
        return np.asarray(_tail(hits, self.units, target) <= LEVEL)

    def lower(self) -> np.ndarray:
        """Lower bound of the accuracy at each share."""
        return lower_bound(self.accuracy, self.units)

    def upper(self) -> np.ndarray:
        """Upper bound of the accuracy at each share."""
        return 1 - lower_bound(1 - self.accuracy, self.units)

    def largest(self, target: float) -> int:
        """Number of the largest share that passes; -1 if none does."""
        passing = np.flatnonzero(self.passes(target))
        return int(passing[-1]) if passing.size else -1

    def largest_share(self, target: float) -> float:
        """Largest share of the rows that may be decided; 0 if nothing is proved."""
        k = self.largest(target)
        return float(self.share[k]) if k >= 0 else 0.0

    def at(self, share: float) -> int:
        """Number of the smallest share that is at least this one."""
        k = int(np.searchsorted(self.share, share - 1e-9))
        return min(k, self.share.size - 1)

    def thinned(self, *kept: int) -> Coverage:
        """Return as many points as a figure can show, these numbers among them."""
        steps = np.searchsorted(self.share, np.linspace(0, 1, N_POINTS) - 1e-9)
        at = np.unique([*steps.tolist(), *(k for k in kept if k >= 0)])
        return Coverage(*(getattr(self, part.name)[at] for part in fields(self)))

    def threshold(self, k: int) -> float:
        """Confidence from which on rows are decided, if the share of this number is.

        It lies midway between two confidences, so that rounding does not move a row across.
        """
        if k < 0:
            return NOTHING
        if k == len(self.confidence) - 1:
            return 0.0
        return float(self.confidence[k : k + 2].mean())


def coverage(
    confidence: np.ndarray,
    right: np.ndarray,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Coverage:
    """Return what is right among the most confident rows, for every share of them."""
    order = np.argsort(-confidence, kind="stable")
    falling = confidence[order].astype(np.float64)
    w = np.ones(order.size) if weight is None else weight[order].astype(np.float64)
    total = np.cumsum(w)
    squares = np.cumsum(w**2 if groups is None else _squares_added(w, groups[order]))
    ends = np.append(np.flatnonzero(np.diff(falling)), order.size - 1)
    hits = np.cumsum(w * right[order])[ends]
    used = squares[ends] > 0  # rows of weight 0, or as good as 0, are no evidence
    ends, hits = ends[used], hits[used]
    return Coverage(
        falling[ends],
        total[ends] / total[-1],
        np.minimum(hits / total[ends], 1.0),
        total[ends] ** 2 / squares[ends],
        ends + 1,
        np.cumsum(w * falling)[ends] / total[ends],
    )


def coverage_of(proba: np.ndarray, truth: np.ndarray) -> Coverage:
    """Return the same for probabilities, of which the most probable class is decided."""
    return coverage(proba.max(axis=1), proba.argmax(axis=1) == truth)


def _squares_added(weight: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """What each row adds to the sum of the squared weights of groups, in the order of the rows."""
    order = np.argsort(groups, kind="stable")
    along = np.cumsum(weight[order])
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    before = np.repeat(along[starts] - weight[order][starts], np.diff([*starts, order.size]))
    added = np.empty(order.size)
    added[order] = along - before
    return 2 * added * weight - weight**2


def _tail(hits: np.ndarray, units: np.ndarray, target: float) -> np.ndarray:
    """Probability of at least so many hits at the target; hits need not be whole."""
    return np.where(hits > 0, betainc(np.maximum(hits, 1e-9), units - hits + 1, target), 1.0)


def lower_bound(accuracy: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Lower bound of an accuracy, by Clopper and Pearson, at `LEVEL`."""
    hits = np.maximum(accuracy * units, 1e-9)
    return np.where(accuracy > 0, betaincinv(hits, units - hits + 1, LEVEL), 0.0)


@storable
@dataclass(frozen=True)
class Promise:
    """What may be decided so that a target share of it is right.

    Attributes
    ----------
    target : float
        The share of the decided rows that must be right.
    share : float
        Share of the rows that is decided; the others are left to a person.
    n_decided, n_rows : int
        The same as numbers of labelled rows.
    accuracy, lower : float
        Share that is right among them, cross-fitted, and its lower bound; 0 where none is decided.
    share_before : float
        Share that the predictions as they came would have decided with the same promise.
    coverage_before, coverage : Coverage
        Accuracy among the rows decided by their share, as they came and adjusted: what
        ``verdict_.plot()`` draws.
    n_labels : int
        Where none is decided: how many labels might do; 0 if it is unknown.
    """

    target: float
    share: float
    n_decided: int
    n_rows: int
    accuracy: float
    lower: float
    share_before: float
    coverage_before: Coverage = field(repr=False, compare=False)
    coverage: Coverage = field(repr=False, compare=False)
    n_labels: int = 0

    def _check_fitted(self, fields: Fields) -> None:
        fields.record("coverage_before", Coverage)
        fields.record("coverage", Coverage)
        for name in ("target", "share", "accuracy", "lower", "share_before"):
            fields.number(name, 0, 1)
        fields.number("n_rows", 1)
        fields.number("n_decided", 0, self.n_rows)
        fields.number("n_labels", 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, without the curves."""
        return {
            name: value for name, value in vars(self).items() if not isinstance(value, Coverage)
        }

    def __str__(self) -> str:
        target, sure = percent_of(self.target), percent(CONFIDENCE, 0)
        if not self.n_decided:
            more = (
                f"about {plural(self.n_labels, 'label')} might do"
                if self.n_labels
                else "more labels are not likely to help"
            )
            return (
                "It decides nothing, and every row is left to a person: no share of the rows is "
                f"proved to be {target} right by {plural(self.n_rows, 'label')}; {more}."
            )
        right = (
            f"{percent(self.accuracy)} of them are right, at least {percent(self.lower)} with "
            f"{sure} confidence"
        )
        if self.n_decided == self.n_rows:
            return f"It decides every row, as the target of {target} allows: {right}."
        before = f"the predictions as they came would decide {percent(self.share_before)}"
        return (
            f"It decides {percent(self.share)} of the rows, for a target of {target}, and leaves "
            f"the others to a person: {right}; {before}."
        )


def percent_of(target: float) -> str:
    """A target in per cent, with as many digits as it has."""
    return f"{100 * target:.4g}%"


def make_promise(target: float, curve: Coverage, before: Coverage) -> tuple[Promise, float]:
    """Return what may be decided, and the confidence from which on it is."""
    k = curve.largest(target)
    curves = before.thinned(before.largest(target)), curve.thinned(k)
    share, n_decided, accuracy, lower = 0.0, 0, 0.0, 0.0
    if k >= 0:
        share, n_decided = float(curve.share[k]), int(curve.n_decided[k])
        accuracy = float(curve.accuracy[k])
        lower = float(lower_bound(curve.accuracy[k], curve.units[k]))
    promise = Promise(
        target,
        share,
        n_decided,
        int(curve.n_decided[-1]),
        accuracy,
        lower,
        before.largest_share(target),
        *curves,
        n_labels=0 if n_decided else _enough(target, curve),
    )
    return promise, curve.threshold(k)


def _enough(target: float, curve: Coverage) -> int:
    """Number of labels at which a share might pass, if the confidences are right; 0: unknown."""
    times = 1.25
    while times <= MOST_TIMES:
        more = replace(curve, units=times * curve.units, accuracy=np.minimum(curve.expected, 1))
        if more.passes(target).any():
            n = times * curve.n_decided[-1]
            size = 10 ** (len(str(int(n))) - 2)
            return int(-(-n // size) * size)  # two digits are more than is known
        times *= 1.25
    return 0


@dataclass(frozen=True)
class Kept:
    """Whether a promise holds on labelled rows that had no part in it."""

    target: float  # what was promised
    share: float  # of the rows, that is decided here
    share_at_fit: float
    n_decided: int
    accuracy: float  # among them
    low: float  # ends of its interval
    high: float

    @property
    def outcome(self) -> str:
        """One of "holds", "broken", "open" and "nothing_decided"."""
        if not self.n_decided:
            return "nothing_decided"
        if self.high < self.target:
            return "broken"
        return "holds" if self.low >= self.target else "open"

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {**vars(self), "outcome": self.outcome}

    def __str__(self) -> str:
        target = percent_of(self.target)
        if not self.n_decided:
            return f"No row is decided, so there is nothing to hold a promise of {target} to."
        says = {
            "broken": f"the promise of {target} is broken",
            "holds": f"the promise of {target} holds",
            "open": f"these labels neither prove nor refute the promise of {target}",
        }[self.outcome]
        return (
            f"It decides {percent(self.share)} of the rows (at fit {percent(self.share_at_fit)}), "
            f"and {percent(self.accuracy)} of them are right, 95% interval {percent(self.low)} to "
            f"{percent(self.high)}: {says}."
        )


def check_promise(
    promise: Promise, decided: np.ndarray, right: np.ndarray, groups: np.ndarray | None = None
) -> Kept:
    """Hold decisions on labelled rows to a promise; (n,) booleans, and numbers of groups."""
    n, share = int(decided.sum()), float(decided.mean())
    if not n:
        return Kept(promise.target, share, promise.share, 0, 0.0, 0.0, 1.0)
    curve = coverage(np.ones(n), right[decided], None, None if groups is None else groups[decided])
    accuracy, low, high = (float(a[0]) for a in (curve.accuracy, curve.lower(), curve.upper()))
    return Kept(promise.target, share, promise.share, n, accuracy, low, high)
