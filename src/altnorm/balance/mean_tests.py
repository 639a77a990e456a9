"""Do two samples of probabilities have the same mean? From sums alone, for many classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2


class Sums(NamedTuple):
    """Rows of a sample, with mean and variance of the probabilities of each class."""

    n_rows: float
    mean: np.ndarray
    variance: np.ndarray


def compare_means(before: Sums, now: Sums, covariance: np.ndarray) -> float:
    r"""Test whether two samples have the same mean probabilities.

    The statistic is the sum over the classes of the squared difference of the means, in units of
    its variance: not Mahalanobis' distance, which looks as hard in directions in which the
    probabilities hardly differ between rows. Without a change it is a sum of chi-squared variables
    weighted by the eigenvalues of the correlation matrix, and its tail is that of the shifted and
    scaled chi-squared distribution with the same first three moments [1]_.

    Parameters
    ----------
    before, now : Sums
        The samples.
    covariance : ndarray of shape (m, m)
        Covariance of the probabilities of a row, for the correlations between classes.

    Returns
    -------
    float
        The p-value.

    References
    ----------
    .. [1] Imhof, "Computing the distribution of quadratic forms in normal variables", Biometrika
       48, 1961.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.mean_tests import Sums, compare_means
    >>> covariance = np.array([[0.04, -0.04], [-0.04, 0.04]])
    >>> old, same, other = (
    ...     Sums(400, np.array([p, 1 - p]), np.diag(covariance)) for p in (0.5, 0.505, 0.6)
    ... )
    >>> compare_means(old, same, covariance) > 0.5, compare_means(old, other, covariance) < 1e-6
    (True, True)
    """
    n, n_now = before.n_rows, now.n_rows
    pooled = (n * before.variance + n_now * now.variance) / (n + n_now) * (1 / n + 1 / n_now)
    used = pooled > 0
    if not used.any():
        return 1.0
    statistic = float(((now.mean - before.mean)[used] ** 2 / pooled[used]).sum())
    first, second, third = _moments(covariance[np.ix_(used, used)])
    freedom = second**3 / third**2
    quantile = (statistic - first) * np.sqrt(freedom / second) + freedom
    return float(chi2.sf(max(quantile, 0.0), freedom))


def _moments(covariance: np.ndarray) -> tuple[float, float, float]:
    """Sums of the eigenvalues of the correlation matrix, of their squares, and of their cubes."""
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    scale = np.divide(1, spread, out=np.zeros(spread.shape), where=spread > 0)
    correlation = covariance * np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    square = correlation @ correlation
    return float(len(square)), float(np.trace(square)), float((square * correlation).sum())
