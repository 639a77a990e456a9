"""Can the class balance be all that changed? An energy test; the new rows need no labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from altnorm.balance.estimate import efficient_scores, simplex_basis

MOST_ROWS = 2048
"""Most rows of either sample that are compared; distances between all of them are held."""

N_DRAWS = 499
_FLOOR = -12.0  # of log-probabilities: a few rows that are surer than that are not to weigh most
# Rows of each class that count for perfect calibration, and that count for the shares as they are,
# where the balance is fitted for the second time.
_PSEUDO, _RIDGE = 20.0, 0.1
_FEWEST = 1.0  # new rows of a class below which its share is not re-estimated


class Rows(NamedTuple):
    """Predictions for some rows, (n, m)."""

    proba: np.ndarray  # as they came: distances are taken between their logarithms
    calibrated: np.ndarray  # they say how probable each class makes a row

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.proba[rows], self.calibrated[rows])


class EnergyTest(NamedTuple):
    """What `energy_test` found."""

    energy: float  # distance of the two samples less what chance gives: about 0 under label shift
    p_value: float  # probability of at least this distance under label shift


def energy_test(
    known: Rows,
    codes: np.ndarray,
    new: Rows,
    before: np.ndarray,
    after: np.ndarray,
    *,
    random_state: int = 0,
) -> EnergyTest:
    r"""Test whether another class balance explains how new predictions differ.

    If it does, the new rows are distributed as validation rows are, each weighted by new share /
    old share of its class. The energy distance [1]_ between the two samples, in centred
    log-probabilities,

    .. math:: 2\, E|X - Z| - E|X - X'| - E|Z - Z'| ,

    is the squared length of a difference of two means in a space of functions. There the balance
    is fitted once more, by the moments of the efficient scores :math:`f_j / (f \cdot \pi)`, which
    both samples must share: so the test holds its level where calibration is not perfect, too.
    What chance gives is drawn with normal multipliers: each row's deviation from the mean of its
    class (or of the new rows) is multiplied by a random number, and the balance fitted to the
    result in the same way.

    `codes` are the classes of the validation rows, `before` and `after` what `estimate_balance`
    was given and what it found. Of both samples at most `MOST_ROWS` are used, at equal steps; of
    the validation rows half in the new balance and half evenly from all classes. With fewer than
    two rows on either side the p-value is 1.

    References
    ----------
    .. [1] Szekely, Rizzo, "Energy statistics: a class of statistics based on distances", Journal
       of Statistical Planning and Inference 143, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.energy import Rows, energy_test
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, share, slope=1.0):
    ...     codes = (rng.random(n) < share).astype(int)
    ...     odds = np.exp(2 * slope * (rng.normal(size=n) + 2 * codes - 1))
    ...     p = np.column_stack([1 / (1 + odds), odds / (1 + odds)])
    ...     return Rows(p, p), codes
    >>> known, codes = draw(500, 0.5)
    >>> before, after = np.array([0.5, 0.5]), np.array([0.2, 0.8])
    >>> energy_test(known, codes, draw(500, 0.8)[0], before, after).p_value > 0.05
    True
    >>> energy_test(known, codes, draw(500, 0.8, 1.5)[0], before, after).p_value
    0.002
    """
    used = spread_rows(codes, after, MOST_ROWS)
    n = min(len(new.proba), MOST_ROWS)
    steps = np.linspace(0, len(new.proba), n, endpoint=False).astype(np.intp)
    known, codes, new = known.take(used), codes[used], new.take(steps)
    if min(codes.size, n) < 2:
        return EnergyTest(0.0, 1.0)
    means = _class_means(codes, after.size)
    fit = _Fit.build(known, new, means, before, after)
    fresh = np.append(np.zeros(codes.size), np.full(n, 1 / n))
    gap = fit.shares @ fit.means - fresh
    observed = fit.distance(gap[None])[0]
    # Halfway: the first estimate is shrunk to the old balance, the second one is noisy.
    shares = fit.shares - fit.correction(gap) / 2
    rng = np.random.default_rng(random_state)
    deviations = _known_deviations(rng, means, codes, shares)
    random = rng.standard_normal((N_DRAWS, n)) / np.sqrt(n * (n - 1))
    chance = fit.distance(np.hstack([deviations, random - random.mean(axis=1, keepdims=True)]))
    p_value = (1 + int((chance >= observed).sum())) / (1 + N_DRAWS)
    return EnergyTest(float(observed - chance.mean()), p_value)


class _Fit(NamedTuple):
    """Distances between all rows, and how a balance is fitted to a difference of samples.

    A difference is a vector of coefficients of the rows, known ones first, that sums to 0.
    """

    kernel: np.ndarray  # (r, r) minus distances
    means: np.ndarray  # (m, r) coefficients of the mean of each class
    shares: np.ndarray  # (m,) the new balance
    scores: np.ndarray  # (r, m)
    inverse: np.ndarray  # (m, m) from moments of the scores to shares

    @classmethod
    def build(
        cls, known: Rows, new: Rows, means: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> _Fit:
        proba, calibrated = (np.concatenate(both) for both in zip(known, new, strict=True))
        counts = (means > 0).sum(axis=1)
        means = np.pad(means, ((0, 0), (0, len(new.proba))))
        shares = np.where(counts > 0, after, 0.0)
        shares /= shares.sum()
        scores = efficient_scores(calibrated / before, after)
        inverse = np.zeros((after.size,) * 2)
        free = np.flatnonzero((counts > 0) & (after * len(new.proba) > _FEWEST))
        moments = _score_moments(means @ scores, counts, scores[len(known.proba) :], after)
        basis, inner = simplex_basis(free.size), np.ix_(free, free)
        # On the plane where shares sum to 0.
        inverse[inner] = basis @ np.linalg.solve(basis.T @ moments[inner] @ basis, basis.T)
        kernel = -euclidean_distances(_centred_log(proba))
        return cls(kernel, means, shares, scores, inverse)

    def correction(self, difference: np.ndarray) -> np.ndarray:
        """Shares of the classes that explain a difference best, (..., m); they sum to 0."""
        return np.asarray(difference @ self.scores @ self.inverse)

    def distance(self, difference: np.ndarray) -> np.ndarray:
        """Energy distance that is left of each difference, (d, r), by the best balance."""
        left = difference - self.correction(difference) @ self.means
        return np.asarray(np.einsum("ij,ij->i", left @ self.kernel, left))


def _score_moments(
    seen: np.ndarray, counts: np.ndarray, new: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Mean scores of the rows of each class, (m, m).

    Those seen are noisy where a class has few rows. If calibration were perfect, they would be
    the mean products of scores over the new rows: these count as `_PSEUDO` rows of each class.
    Classes that can hardly be told apart keep their shares: for these `_RIDGE` rows speak.
    """
    expected = new.T @ new / len(new)
    mixed = (counts[:, None] * seen + _PSEUDO * expected) / (counts[:, None] + _PSEUDO)
    return np.asarray(mixed + np.diag(_RIDGE / (len(new) * np.maximum(shares, 1e-12) ** 2)))


def _centred_log(proba: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        log_p = np.maximum(np.log(proba.astype(np.float64)), _FLOOR)
    return np.asarray(log_p - log_p.mean(axis=1, keepdims=True))


def _class_means(codes: np.ndarray, m: int) -> np.ndarray:
    """Coefficients of the mean of each class; a class without rows has none."""
    own = codes == np.arange(m)[:, None]
    return np.asarray(own / np.maximum(own.sum(axis=1, keepdims=True), 1))


def _known_deviations(
    rng: np.random.Generator, means: np.ndarray, codes: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Random differences of the weighted validation mean from what it estimates, (d, k)."""
    counts = np.bincount(codes, minlength=shares.size)
    alone = (counts == 1)[codes]
    scale = shares / np.sqrt(np.maximum(counts * (counts - 1), 1))
    random = rng.standard_normal((N_DRAWS, codes.size)) * scale[codes]
    # From the mean of its class; where a row is alone in it, from the mean of all rows.
    own = (random * ~alone) @ (means > 0).T @ means
    return np.asarray(random - own - random[:, alone].sum(axis=1, keepdims=True) / codes.size)


def spread_rows(codes: np.ndarray, shares: np.ndarray, most: int) -> np.ndarray:
    """Numbers of at most `most` rows: half by `shares`, half evenly over the classes.

    What a class lacks goes to the others. Within a class rows are taken at equal steps.
    """
    if codes.size <= most:
        return np.arange(codes.size)
    counts = np.bincount(codes, minlength=shares.size)
    order, first = np.argsort(codes, kind="stable"), np.cumsum(counts) - counts
    wish = shares / shares.sum() + 1 / shares.size
    rank = np.arange(codes.size) - first[codes[order]]
    # The k-th row of a class comes the sooner, the more rows are wanted of it.
    chosen = np.argsort((rank + 0.5) / wish[codes[order]], kind="stable")[:most]
    taken = np.bincount(codes[order][chosen], minlength=shares.size)
    places = [
        start + np.arange(k) * count // k
        for start, count, k in zip(first, counts, taken, strict=True)
        if k
    ]
    return np.asarray(np.sort(order[np.concatenate(places)]))
