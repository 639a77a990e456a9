"""The evidence for a gain: exact and resampled tests of paired predictions, and intervals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array, issparse
from scipy.special import ndtri
from scipy.stats import binomtest, t
from sklearn.utils import check_random_state

from altnorm._base.validation import check_integer
from altnorm.evidence.scores import Score

# Numbers a block of resamples may hold at once; fixed, so that results do not depend on memory.
_BLOCK = 2**22
_N_RESAMPLES, _N_RESAMPLES_SLOW = 2000, 400


class Evidence(NamedTuple):
    """The p-value of a gain, its interval and its standard error."""

    p_value: float
    ci_low: float
    ci_high: float
    std_error: float


def mcnemar_p_value(n_fixed: int, n_broken: int) -> float:
    """Two-sided p-value of McNemar's exact test [1]_ of whether as many rows are fixed as broken.

    If fixing and breaking were equally probable, the rows fixed among those that went either way
    would follow a binomial distribution with probability 1/2.

    References
    ----------
    .. [1] Q. McNemar, "Note on the sampling error of the difference between correlated
       proportions or percentages", Psychometrika 12, 1947.

    Examples
    --------
    >>> from altnorm.evidence.verdict import mcnemar_p_value
    >>> mcnemar_p_value(5, 0)
    0.0625
    """
    n_either = int(n_fixed) + int(n_broken)
    if n_either == 0:
        return 1.0
    return float(binomtest(int(n_fixed), n_either).pvalue)


def paired_interval(
    n_fixed: int, n_broken: int, n_rows: int, confidence: float = 0.95
) -> tuple[float, float]:
    r"""Tango's score interval for a difference of paired proportions [1]_.

    The interval holds every difference :math:`\delta` that the score test does not reject,

    .. math::
        (b - c - n \delta)^2 \le z^2 \, n \, (2 \tilde q + \delta (1 - \delta)),

    with `b` rows fixed, `c` broken, of `n`, and :math:`\tilde q` the maximum-likelihood estimate
    of the probability of breaking a row given :math:`\delta`. Unlike Wald's interval it stays
    within [-1, 1], has a width where no row was broken, and covers close to its level when few
    rows changed.

    References
    ----------
    .. [1] T. Tango, "Equivalence test and confidence interval for the difference in proportions
       for the paired-sample design", Statistics in Medicine 17, 1998.

    Examples
    --------
    >>> from altnorm.evidence.verdict import paired_interval
    >>> low, high = paired_interval(n_fixed=14, n_broken=5, n_rows=100)
    >>> print(f"{low:.3f} {high:.3f}")
    0.005 0.181
    """
    z = float(ndtri(0.5 + confidence / 2))
    low = _tango_low(n_fixed, n_broken, n_rows, z)
    return low, -_tango_low(n_broken, n_fixed, n_rows, z)


def _tango_low(b: int, c: int, n: int, z: float) -> float:
    def excess(delta: float) -> float:
        linear = (2 * n - b + c) * delta - b - c
        root = math.sqrt(max(0.0, linear**2 + 8 * n * c * delta * (1 - delta)))
        variance = n * (2 * (root - linear) / (4 * n) + delta * (1 - delta))
        return b - c - n * delta - z * math.sqrt(max(0.0, variance))

    # The variance may vanish at the estimate itself, where `excess` then has a root to step over.
    high = (b - c) / n - 1e-12
    return -1.0 if high <= -1 else float(brentq(excess, -1.0, high, xtol=1e-13))


class _AdditivePair:
    """A score of sums over rows: exchanging and resampling are matrix products.

    `exchanged` gives the gains with changed rows exchanged where `flips` (r, n_changed) is true,
    `resampled` those with each row taken as often as `times` (r, n_rows) says.
    """

    def __init__(self, old: Any, new: Any, of_counts: Callable[[np.ndarray], np.ndarray]) -> None:
        change = new - old
        self.old, self.new, self.of_counts = old, new, of_counts
        self.change = change[np.flatnonzero(abs(change).sum(axis=1))]
        self.n_rows, self.n_changed = old.shape[0], self.change.shape[0]
        self.width = max(old.shape)

    def exchanged(self, flips: np.ndarray) -> np.ndarray:
        moved = flips.astype(float) @ self.change
        new, old = self.new.sum(axis=0) - moved, self.old.sum(axis=0) + moved
        return self.of_counts(new) - self.of_counts(old)

    def resampled(self, times: np.ndarray) -> np.ndarray:
        return self.of_counts(times @ self.new) - self.of_counts(times @ self.old)


class _OpaquePair:
    """Any score at all: it is called for each resample."""

    def __init__(self, score: Score, truth: Any, old: Any, new: Any, weight: Any) -> None:
        self.score, self.truth, self.old, self.new, self.weight = score, truth, old, new, weight
        self.changed = np.flatnonzero((old != new).reshape(len(old), -1).any(axis=1))
        self.n_rows, self.n_changed = len(old), self.changed.size
        self.width = self.n_rows

    def exchanged(self, flips: np.ndarray) -> np.ndarray:
        rows = np.arange(self.n_rows)
        return np.array([self._gain(rows, self.changed[flip]) for flip in flips])

    def resampled(self, times: np.ndarray) -> np.ndarray:
        rows = np.arange(self.n_rows)
        return np.array([self._gain(rows.repeat(count.astype(int)), rows[:0]) for count in times])

    def _gain(self, rows: np.ndarray, swapped: np.ndarray) -> float:
        old, new = self.old, self.new
        if swapped.size:
            old, new = old.copy(), new.copy()
            old[swapped], new[swapped] = self.new[swapped], self.old[swapped]
        weight = None if self.weight is None else self.weight[rows]
        with warnings.catch_warnings():  # a resample may lack a class; the user's sample does not
            warnings.simplefilter("ignore")
            try:
                after, before = (self.score(self.truth[rows], v[rows], weight) for v in (new, old))
            except ValueError:
                return math.nan
        return after - before


_Pair = _AdditivePair | _OpaquePair


def weigh(
    score: Score, truth: Any, old: Any, new: Any, weight: Any, gain: float, sampler: Sampler
) -> Evidence:
    """Weigh the evidence for the gain by the means that the score allows."""
    if score.per_row is not None:
        return _weigh_rows(score.per_row(truth, new) - score.per_row(truth, old), weight, sampler)
    pair: _Pair
    if score.counts is not None and score.of_counts is not None:
        both = score.counts(np.concatenate([truth, truth]), np.concatenate([old, new]))
        if weight is not None:
            both = both * np.tile(weight, 2)[:, None]
        both = csr_array(both) if issparse(both) else both
        pair = _AdditivePair(both[: len(old)], both[len(old) :], score.of_counts)
    else:
        pair = _OpaquePair(score, truth, old, new, weight)
    std_error = sampler.bootstrap_error(pair)
    return Evidence(sampler.exchange(pair, gain), *_t_interval(gain, std_error, len(old), sampler))


def _weigh_rows(difference: np.ndarray, weight: Any, sampler: Sampler) -> Evidence:
    """Weigh the evidence for an average over rows, given the rows' differences."""
    n = difference.size
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    gain = float(share @ difference)
    # With fixed weights a weighted average is a ratio of means; this is its linearised variance.
    variance = float(((share * (difference - gain)) ** 2).sum()) * n / max(n - 1, 1)
    std_error = math.sqrt(variance)
    if weight is None and np.isin(difference, (-1, 0, 1)).all():
        fixed, broken = int((difference > 0).sum()), int((difference < 0).sum())
        low, high = paired_interval(fixed, broken, n, sampler.confidence)
        return Evidence(mcnemar_p_value(fixed, broken), low, high, std_error)
    terms = (share * difference)[:, None]
    pair = _AdditivePair(np.zeros_like(terms), terms, lambda sums: sums[..., 0])
    return Evidence(sampler.exchange(pair, gain), *_t_interval(gain, std_error, n, sampler))


def _t_interval(
    gain: float, std_error: float, n: int, sampler: Sampler
) -> tuple[float, float, float]:
    half = float(t.ppf(0.5 + sampler.confidence / 2, n - 1)) * std_error if n > 1 else math.inf
    return gain - half, gain + half, std_error


class Sampler:
    """Draws the exchanges and the resamples."""

    def __init__(
        self, score: Score, n_resamples: Any, random_state: Any, confidence: float
    ) -> None:
        if n_resamples is None:
            n_resamples = _N_RESAMPLES if score.function is None else _N_RESAMPLES_SLOW
        self.n_resamples = check_integer(n_resamples, "n_resamples", low=1)
        self.confidence = confidence
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        self.rng = np.random.default_rng(seed)

    def exchange(self, pair: _Pair, gain: float) -> float:
        """Two-sided p-value of the exchange test: all exchanges if they are few, else random."""
        # Exchanges that are equal but for rounding count as reached, the observed one among them.
        least = abs(gain) * (1 - 1e-12) - 1e-12
        # Fewer possible exchanges than random ones: all of them give the exact p-value.
        if pair.n_changed < math.log2(self.n_resamples):
            every = np.arange(2**pair.n_changed)[:, None] >> np.arange(pair.n_changed) & 1
            return float(np.mean(abs(pair.exchanged(every.astype(bool))) >= least))
        reached = 1  # the observed gain is one of the possible exchanges
        for size in self._blocks(max(pair.width, pair.n_changed)):
            flips = self.rng.integers(0, 2, (size, pair.n_changed), dtype=bool)
            reached += int(np.sum(~(abs(pair.exchanged(flips)) < least)))
        return reached / (self.n_resamples + 1)

    def bootstrap_error(self, pair: _Pair) -> float:
        """Standard deviation of the gain over rows drawn with replacement, where it is defined."""
        gains = []
        for size in self._blocks(pair.width):
            drawn = self.rng.integers(0, pair.n_rows, (size, pair.n_rows))
            # One `bincount` counts all resamples, each in numbers of its own.
            drawn += pair.n_rows * np.arange(size)[:, None]
            times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
            gains.append(pair.resampled(times.astype(float)))
        found = np.concatenate(gains)
        # A resample that lacks a class may have no score.
        found = found[np.isfinite(found)]
        return float(np.std(found, ddof=1)) if found.size > 1 else math.nan

    def _blocks(self, width: int) -> Iterator[int]:
        step = max(1, _BLOCK // width)
        for start in range(0, self.n_resamples, step):
            yield min(step, self.n_resamples - start)
