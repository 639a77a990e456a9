r"""Evidence that grows label by label, valid whenever one looks: bets on a finite pool.

A pool has units :math:`i` (rows). The change of a unit is worth :math:`x_i \in [-k_i, k_i]`, which
its label tells, and its size :math:`k_i > 0` is known beforehand. Units are drawn without
replacement, the next one with probability proportional to :math:`k_i` among those left. Let
:math:`W = \sum k_i` and :math:`S = \sum x_i` over the pool. Given all earlier draws, the share
:math:`z_t = x_t / k_t \in [-1, 1]` of the next one has the mean

.. math:: m_t(S) = \frac{S - \sum_{u < t} x_u}{W - \sum_{u < t} k_u} .

Betting a fraction :math:`c \in (0, 1)` of the capital on a total above :math:`s` yields

.. math:: E_t(s) = \prod_{u \le t} \Bigl(1 - c + c \, \frac{1 + z_u}{1 + m_u(s)}\Bigr) .

It is a martingale that starts at 1 if :math:`S = s`, and can only do worse if :math:`S < s`, so it
ever reaches :math:`1 / \alpha` with probability at most :math:`\alpha` (Ville). The same holds for
the average over several :math:`c`. Each factor falls with :math:`s`, so the totals that are still
in the running are an interval, found by bisection.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from altnorm.method.scaling import logsumexp

# Equal bets on the middles of 32 equal intervals. Any choice is valid; this one, a uniform
# mixture, needs nothing to be known about the share of fixed rows and is seldom far from the best.
_PARTS = (np.arange(32) + 0.5) / 32
_RESOLUTION = 2.0**-16  # of the limits, relative to all that could be gained


class DrawnUnits(NamedTuple):
    """What was drawn from the pool, in order."""

    x: np.ndarray  # what the change of each drawn unit is worth
    k: np.ndarray  # size of each drawn unit: the most that its change can be worth, or cost
    total: float  # sum of the sizes over the whole pool
    n_units: int  # units in the whole pool
    step: float = 0.0  # all totals are multiples of this; 0 where they may be any number

    @property
    def rounding(self) -> float:
        """What the sums may be off by, in double precision."""
        return float(np.finfo(float).eps) * self.total * (self.x.size + 1)

    def mirrored(self) -> DrawnUnits:
        """The same draws with gains and losses exchanged."""
        return self._replace(x=-self.x)


def log_capital(draws: DrawnUnits, s: float) -> np.ndarray:
    """Logarithm of the capital after 0, 1, .. draws, bet on the pool's total being above `s`."""
    steps = np.cumsum(_log_factors(draws, s), axis=0)
    return _log_mean(np.vstack([np.zeros(_PARTS.size), steps]))


def _log_mean(log_capitals: np.ndarray) -> np.ndarray:
    """Logarithm of the mean over the parts of the capital, which are the columns."""
    return np.asarray(logsumexp(log_capitals, axis=1)[:, 0] - np.log(_PARTS.size))


def _log_factors(draws: DrawnUnits, s: float) -> np.ndarray:
    """Logarithm of the factor of each draw (rows) for each part of the capital (columns)."""
    left = draws.total - (np.cumsum(draws.k) - draws.k)
    room = left + s - (np.cumsum(draws.x) - draws.x)
    # Without room all that is left must be lost, or `s` is impossible: nothing to bet on.
    ratio = np.ones(room.shape)
    np.divide((1 + draws.x / draws.k) * left, room, out=ratio, where=room > draws.rounding)
    return np.log1p(_PARTS * (ratio[:, None] - 1))


def possible(draws: DrawnUnits) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest total that the pool can still have after 0, 1, .. draws."""
    seen = np.append(0.0, np.cumsum(draws.x))
    left = draws.total - np.append(0.0, np.cumsum(draws.k))
    # Where all units are drawn what is left is rounding.
    left[np.arange(left.size) >= draws.n_units] = 0.0
    return seen - left, seen + left


def first_crossing(draws: DrawnUnits, s: float, significance: float) -> int | None:
    """Number of draws after which the total is taken to be above `s`; None if it never is."""
    is_certain = possible(draws)[0] > s + draws.rounding
    crossed = np.flatnonzero(is_certain | (log_capital(draws, s) >= -np.log(significance)))
    return int(crossed[0]) if crossed.size else None


def total_limits(draws: DrawnUnits, significance: float) -> tuple[float, float]:
    """Confidence sequence for the pool's total, both limits the tightest since the first draw.

    The two sides share `significance` evenly.
    """
    low = _lower_limit(draws, significance / 2)
    high = -_lower_limit(draws.mirrored(), significance / 2)
    lowest, highest = (float(bound[-1]) for bound in possible(draws))
    # Labels of (nearly) all units can contradict earlier evidence; then only they count.
    low, high = (low, high) if low <= high else (lowest, highest)
    return low + 0.0, high + 0.0  # no -0.0


def _lower_limit(draws: DrawnUnits, significance: float) -> float:
    """Total below which all were rejected as too small."""
    low, high = (float(bound[-1]) for bound in possible(draws))
    # The capital falls as the total that is bet on grows, so bisection finds the limit.
    while high - low > _RESOLUTION * draws.total:
        middle = (low + high) / 2
        if log_capital(draws, middle).max() >= -np.log(significance):
            low = middle
        else:
            high = middle
    # The first total that there can be from here on; one that is as near as rounding is there.
    return draws.step * float(np.ceil(low / draws.step - _RESOLUTION)) if draws.step else low


def expected_labels(draws: DrawnUnits, significance: float) -> int:
    """About how many further units until a decision, if the others are like those drawn.

    The share of fixed among fixed and broken takes nine quantiles of its posterior (uniform
    prior); for each, evidence is followed along the mean path. The median is returned.
    """
    left = draws.n_units - draws.x.size
    if left <= 1:
        return left
    share = draws.x / draws.k
    fixed, broken = np.clip(share, 0, 1).sum(), np.clip(-share, 0, 1).sum()
    neither = (share.size - fixed - broken + 0.5) / (share.size + 1.5)
    quantiles = betaincinv(fixed + 1, broken + 1, np.arange(1, 10) / 10)
    lengths = [_path_length(draws, p, neither, left, significance) for p in quantiles]
    return int(np.median(lengths))


def _path_length(
    draws: DrawnUnits, p: float, neither: float, left: int, significance: float
) -> int:
    """Further draws until a decision along the mean path, with a share `p` of fixed units."""
    # The mean path is smooth: two hundred points on it, dense at the start, are as good as all.
    ends = np.unique(np.geomspace(1, left, 200).round().astype(int))
    shares = (1 - neither) * np.array([p, 1 - p])
    # Evidence for a total above 0, and the mirrored evidence for a total that is not.
    up = _path(draws, 0.0, shares, neither, ends)
    down = _path(draws.mirrored(), -draws.step, shares[::-1], neither, ends)
    reached = np.maximum(up, down) >= -np.log(significance)
    return int(ends[reached][0]) if reached.any() else left


def _path(
    draws: DrawnUnits, s: float, shares: np.ndarray, neither: float, ends: np.ndarray
) -> np.ndarray:
    """Logarithm of the capital at `ends` further draws that all go as expected."""
    starts = np.append(0, ends[:-1])
    seen_x, left = draws.x.sum(), draws.total - draws.k.sum()
    per_unit = left / (draws.n_units - draws.x.size)
    # All draws of a stretch are taken to be those in its middle.
    middle = (starts + ends - 1) / 2 * per_unit
    low = 1 + (s - seen_x - middle * (shares[0] - shares[1])) / (left - middle)
    # Where nothing is left to bet on the factor would divide by zero.
    low = np.maximum(low, np.finfo(float).eps)[:, None]
    outcomes = zip((2.0, 1.0, 0.0), (shares[0], neither, shares[1]), strict=True)
    growth = sum(q * np.log1p(_PARTS * (gain / low - 1)) for gain, q in outcomes)
    now = _log_factors(draws, s).sum(axis=0)
    steps = now + np.cumsum((ends - starts)[:, None] * growth, axis=0)
    return _log_mean(steps)
