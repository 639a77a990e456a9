r"""The paired test: whether a gain is more than noise, and how large it may be.

Rows add to a gain (:mod:`altnorm.evidence.attribution`). Where rows are independent, its standard
error is that of a sum; where they come in groups, or neighbours are alike, that of the sums over
groups, or over pieces of the file. The larger one counts. Test and interval use the same standard
error and the same distribution, so they never contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t

CONFIDENCE = 0.95
"""Level of the intervals."""


class Paired(NamedTuple):
    """A gain and what is known about it."""

    gain: float
    std_error: float
    p_value: float  # two-sided
    ci_low: float
    ci_high: float
    df: int

    @property
    def one_sided(self) -> float:
        """p-value against the alternative that there is a gain."""
        return self.p_value / 2 if self.gain > 0 else 1 - self.p_value / 2

    @property
    def errors(self) -> float:
        """The gain in standard errors."""
        return self.gain / self.std_error if self.std_error else 0.0


def paired_test(
    rows: np.ndarray,
    weight: np.ndarray,
    clusters: Sequence[np.ndarray] = (),
    *,
    confidence: float = CONFIDENCE,
) -> Paired:
    r"""Test a gain that is a sum over rows.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        What each row adds to the gain.
    weight : ndarray of shape (n,)
        Row weights; a row of weight 0 is no evidence.
    clusters : sequence of ndarray of shape (n,)
        Numbers of groups, or pieces, whose rows may not be independent.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    Paired
        The test.

    Notes
    -----
    With few changed rows the plain standard error is too small, and 0 if all rows change alike.
    As in the adjusted Wald interval for paired proportions [1]_, one more changed row of the
    usual size is added to the variance.

    References
    ----------
    .. [1] A. Agresti, Y. Min, "Simple improved confidence intervals for comparing matched
       proportions", Statistics in Medicine 24, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.evidence.paired import paired_test
    >>> fixed_and_broken = np.repeat([1, -1, 0], [14, 5, 81]) / 100
    >>> found = paired_test(fixed_and_broken, np.ones(100))
    >>> print(f"{found.ci_low:.3f} to {found.ci_high:.3f}, p = {found.p_value:.3f}")
    0.003 to 0.177, p = 0.043
    """
    used = weight > 0
    gain, n = float(rows.sum()), int(used.sum())
    changed = int(np.count_nonzero(rows))
    if not changed or n < 2:
        return Paired(gain, 0.0, 1.0, min(gain, 0.0), max(gain, 0.0), max(n - 1, 1))
    squares = float(rows @ rows)
    variance = squares * (1 + 1 / changed) - gain**2 / (n + 2)
    std_error, df = math.sqrt(max(variance, 0.0)), n - 1
    # What a row would add if all gained alike: groups of many rows add more without being noise.
    expected = gain * weight / weight.sum()
    for numbers in clusters:
        sums = np.bincount(numbers[used], (rows - expected)[used])
        size = np.unique(numbers[used]).size
        if size < 2:
            continue
        clustered = math.sqrt(float(sums @ sums) * size / (size - 1))
        if clustered > std_error:
            std_error, df = clustered, size - 1
    half = float(t.isf((1 - confidence) / 2, df)) * std_error
    p_value = float(2 * t.sf(abs(gain) / std_error, df)) if std_error else 1.0
    return Paired(gain, std_error, p_value, gain - half, gain + half, df)
