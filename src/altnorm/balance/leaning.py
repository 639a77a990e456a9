r"""Another class balance, or a classifier that leans to some classes: which explains new rows.

Both make some classes more probable, by the same amount if one likes. Under another balance there
are more rows like those that a class had before. A classifier that leans multiplies the
probabilities of every row, :math:`p'_{ij} \propto p_{ij} e^{b_j}`: rows that were in doubt go over,
and those that were sure hardly change. How many rows of each predicted class are how sure tells the
two apart, the better the surer the classifier is and the more rows there are.
"""

from __future__ import annotations

import numpy as np

from altnorm.balance.count_tests import compare_counts
from altnorm.balance.shift_sums import Intake, Profile, find_bins

_PSEUDO_ROWS = 0.5  # per class, in the old balance: what a few rows say about rare classes is noise
_MOST_STEPS, _TOLERANCE = 200, 1e-6


def shift_over_leaning(profile: Profile, intake: Intake, balance: np.ndarray) -> float:
    """Say how much better another balance explains the new rows than a leaning does.

    Parameters
    ----------
    profile : Profile
        Sums over the validation rows, and some of these.
    intake : Intake
        Sums over the new rows.
    balance : ndarray of shape (m,)
        Balance of the new rows.

    Returns
    -------
    float
        Difference of the chi-squared statistics beyond chance, leaning less balance, in standard
        deviations of one of them. Above 1 the balance is clearly better; near 0 the rows cannot
        tell.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.leaning import shift_over_leaning
    >>> from altnorm.balance.label_shift import profile_rows, take_in
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=2000)
    >>> score = rng.normal(4.5 * y - 2.25, 1.5)  # calibrated: the slope of its logit is 2
    >>> proba = 1 / (1 + np.exp(np.outer(2 * score, [1, -1])))
    >>> profile = profile_rows(proba, y)
    >>> more = np.concatenate([proba[y == 1], proba[:200]])  # another balance
    >>> leans = proba * [1, 9] / (proba @ [1, 9])[:, None]
    >>> shift_over_leaning(profile, take_in(profile, more), np.array([0.1, 0.9])) > 2
    True
    >>> shift_over_leaning(profile, take_in(profile, leans), np.array([0.3, 0.7])) < -2
    True
    """
    rows = profile.rows.astype(np.float64)
    pseudo = _PSEUDO_ROWS * profile.balance.size * profile.balance
    target = intake.mass + pseudo
    leaning = rows * _lean(rows, target / target.sum())
    leaning /= leaning.sum(axis=1, keepdims=True)
    leans = compare_counts(_count(leaning, profile, np.ones(len(rows))), intake.counts.ravel())
    # A row counts as much as its calibrated probabilities say that its class does.
    weight = rows @ (balance / profile.balance)
    shifts = compare_counts(_count(rows, profile, weight), intake.counts.ravel())
    if not shifts.expected:
        return 0.0
    better = (leans.statistic - leans.expected) - (shifts.statistic - shifts.expected)
    return float(better / np.sqrt(2 * shifts.expected))


def _lean(rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Factors of the classes that give the rows these mean probabilities.

    The alternating normalization of rows and columns, to its limit. Where a classifier is so sure
    that leaning cannot explain the new means, it ends early.
    """
    factor = np.ones(target.size)
    for _ in range(_MOST_STEPS):
        mean = factor * ((1 / (rows @ factor)) @ rows) / len(rows)
        factor *= np.divide(target, mean, out=np.ones(mean.size), where=mean > 0)
        factor /= factor.max()
        if np.abs(mean - target).sum() <= _TOLERANCE:
            break
    return factor


def _count(rows: np.ndarray, profile: Profile, weight: np.ndarray) -> np.ndarray:
    """Count weighted rows by predicted class and confidence, as many as they are worth."""
    cells = find_bins(rows, profile.edges)
    sums = np.bincount(cells, weight, minlength=profile.table[..., 0].size)
    return np.asarray(sums * (weight.sum() / (weight @ weight)))
