"""Do two samples use the same cells equally often? For tables with many nearly empty cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

_N_DRAWS = 200
_MOST_ROWS = 10**8


class CountTest(NamedTuple):
    """A two-sample chi-squared test of counts."""

    statistic: float
    expected: float  # under the hypothesis that both samples are alike
    p_value: float

    @property
    def excess(self) -> float:
        """What of the statistic chance does not explain."""
        return max(0.0, self.statistic - self.expected)


def compare_counts(before: np.ndarray, now: np.ndarray, *, random_state: int = 0) -> CountTest:
    """Test whether counts come from the same proportions, within each row of a table.

    Many cells may be nearly empty, so the statistic's mean and variance are simulated given the
    totals, and its tail is that of the scaled chi-squared distribution that has them.

    Parameters
    ----------
    before, now : ndarray of shape (k,) or (g, k)
        Counts, rounded to integers; with two dimensions each row is a comparison of its own and
        they are added up.
    random_state : int, default=0
        Seed of the simulation.

    Returns
    -------
    CountTest
        Statistic, its expectation, and the p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.count_tests import compare_counts
    >>> compare_counts(np.array([500, 500]), np.array([48, 52])).p_value > 0.5
    True
    >>> compare_counts(np.array([500, 500]), np.array([20, 80])).p_value < 1e-6
    True
    """
    before, now = _whole_rows(before, now)
    used = (before.sum(axis=1) > 0) & (now.sum(axis=1) > 0)
    if not used.any():
        return CountTest(0.0, 0.0, 1.0)
    before, now = before[used], now[used]
    null = _null(before + now, now.sum(axis=1), np.random.default_rng(random_state))
    statistic, mean, variance = float(_chi_squared(before, now)), null.mean(), null.var()
    if variance == 0:
        return CountTest(statistic, float(mean), 1.0)
    p_value = chi2.sf(statistic * 2 * mean / variance, 2 * mean**2 / variance)
    return CountTest(statistic, float(mean), float(p_value))


def _whole_rows(*counts: np.ndarray) -> list[np.ndarray]:
    """Integers, in two dimensions, and not too many for the generator of random numbers."""
    scale = min(1.0, _MOST_ROWS / max(float(np.sum(c)) for c in counts))
    return [np.rint(np.atleast_2d(c) * scale).astype(np.int64) for c in counts]


def _null(both: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Statistics of random parts of the pooled rows, (n_draws,): a permutation test."""
    total = np.zeros(_N_DRAWS)
    for row, size in zip(both, sizes, strict=True):
        # Drawing with replacement from the pooled rows would leave more cells empty than there are.
        draws = rng.multivariate_hypergeometric(row, size, _N_DRAWS, method="marginals")
        total += _chi_squared((row - draws)[:, None], draws[:, None])
    return total


def _chi_squared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two-sample statistic within the last axis, summed over the one before."""
    n_a, n_b = a.sum(axis=-1, keepdims=True), b.sum(axis=-1, keepdims=True)
    both = a + b
    square = (a / n_a - b / n_b) ** 2 * n_a * n_b
    return np.divide(square, both, out=np.zeros(both.shape), where=both > 0).sum(axis=(-2, -1))
