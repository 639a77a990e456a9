"""Another class balance: its estimate, a test whether it is all that changed, and the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.words import html_card, p_words

SIGNIFICANCE = 0.05  # of the energy test
SMALLEST_CHANGE = 0.0005  # of a share, that is worth mentioning

PSEUDO_ROWS = 1.0
"""Rows per class, in the old balance, that are added to the new ones: with none the estimate
follows noise where rows are few; between 0.5 and 2 on simulated and on real classifiers."""

MOST_ROWS = 2048
"""Most rows of either sample that are compared; distances between all of them are held."""

N_DRAWS = 499  # of what chance gives

# Of the estimate.
_MOST_STEPS = 1000
_LAST_STEP = 1e-7  # largest change of a share
_CURVATURE = 1e-4  # of the log-likelihood of a row; 1 or more where classes can be distinguished
_QUANTILE = 1.96  # of the normal distribution, for 95 %

# Of the test.
_FLOOR = -12.0  # of log-probabilities: a few rows that are surer than that are not to weigh most
_PSEUDO = 20.0  # rows of each class that count for perfect calibration
_RIDGE = 0.1  # rows of each class that count for the shares as they are
_FEWEST = 1.0  # new rows of a class below which its share is not re-estimated


@storable
@dataclass(frozen=True)
class Shift:
    """What new predictions would mean if only the class balance had changed.

    Attributes
    ----------
    before, after : tuple of float
        Share of each class in the validation data, and in the new rows if only the balance changed.
    low, high : tuple of float
        95 % interval of each share of `after`.
    distance : float
        Total variation distance between the two balances, from 0 to 1.
    energy : float
        Energy distance between the new rows and the validation rows in the new balance, beyond
        what chance gives: about 0 if only the balance changed.
    p_value : float
        Of the test whether that is more than chance.
    shift_rejected : bool
        Whether the test says that something else has changed, at the level 0.05.
    adapted : bool
        Whether the model that has this record is for the new balance.
    n_rows, n_changed : int
        New rows looked at, and how many of them are decided differently for the new balance.
    names : tuple of str
        Names of the classes.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    distance: float
    energy: float
    p_value: float
    shift_rejected: bool
    adapted: bool
    n_rows: int
    n_changed: int
    names: tuple[str, ...] = ()

    def _check_fitted(self, fields: Fields) -> None:
        for name in ("before", "after", "low", "high"):
            shares = fields.get(name)
            holds = len(shares) == fields.n_classes and all(0 <= share <= 1 for share in shares)
            fields.require(name, holds, "one share per class")
        for name in ("p_value", "distance"):
            fields.number(name, 0, 1)
        for name in ("n_rows", "n_changed"):
            fields.number(name, 0)
        fields.number("energy")

    def __str__(self) -> str:
        changed, test = f"{self.n_changed:,} of {self.n_rows:,} decisions", p_words(self.p_value)
        if self.shift_rejected and not self.adapted:
            return (
                "Not adapted: something other than the class balance has changed "
                f"({test}, {self.n_rows:,} rows). If it were only the balance, {changed} would "
                "change."
            )
        if self.adapted:
            doubt = f", although the predictions contradict that ({test})" * self.shift_rejected
            start = "Adapted to another class balance, assuming that nothing else changed"
            sentence = f"{start}{doubt}: {changed} change"
        elif not self.n_changed:
            sentence = "Not adapted: no decision would change"
        else:
            start = f"Not adapted: if only the class balance changed, {changed} change, and"
            sentence = f"{start} predictions alone cannot tell ({test} for something else)"
        return f"{sentence}. {self._most_changed()}."

    def _most_changed(self) -> str:
        change = np.abs(np.subtract(self.after, self.before))
        j = int(change.argmax())
        if change[j] < SMALLEST_CHANGE:
            return "No share changes"
        return (
            f"The share of class {self.names[j] if self.names else j} changes most: "
            f"{self.before[j]:.3f} before, "
            f"{self.after[j]:.3f} now ({self.low[j]:.3f} to {self.high[j]:.3f})"
        )

    def _repr_html_(self) -> str:
        return html_card(str(self))


class Sample(NamedTuple):
    """Predictions for some rows, (n, m)."""

    proba: np.ndarray  # as they came: distances are taken between their logarithms
    calibrated: np.ndarray  # they say how probable each class makes a row

    def take(self, rows: np.ndarray) -> Sample:
        """Return some of the rows."""
        return Sample(self.proba[rows], self.calibrated[rows])


def look_for_shift(labelled: Sample, codes: np.ndarray, new: Sample, before: np.ndarray) -> Shift:
    """Estimate the balance of new rows, and test whether it can be all that changed.

    `before` is the mean of the calibrated probabilities of all validation rows.
    """
    balance = estimate_balance(labelled.calibrated, codes, new.calibrated, before)
    test = energy_test(labelled, codes, new, before, balance.shares)
    return Shift(
        before=tuple(before.tolist()),
        after=tuple(balance.shares.tolist()),
        low=tuple(balance.low.tolist()),
        high=tuple(balance.high.tolist()),
        distance=float(np.abs(balance.shares - before).sum() / 2),
        energy=test.energy,
        p_value=test.p_value,
        shift_rejected=test.p_value <= SIGNIFICANCE,
        adapted=False,
        n_rows=len(new.proba),
        n_changed=0,
    )


class Balance(NamedTuple):
    """A class balance, estimated."""

    shares: np.ndarray  # (m,) positive, of sum 1
    low: np.ndarray  # (m,) 95 % interval of each share
    high: np.ndarray


def estimate_balance(
    labelled: np.ndarray, codes: np.ndarray, new: np.ndarray, before: np.ndarray
) -> Balance:
    r"""Estimate the class balance of new rows if nothing but the balance has changed.

    Under label shift the density of a row is :math:`\sum_j \pi_j f_j`, with :math:`f_j = p_j / s_j`
    up to a factor, from calibrated probabilities :math:`p` and the shares :math:`s` before. EM
    (Saerens et al., 2002) finds the balance :math:`\pi` that makes the rows most probable, with
    :math:`m` pseudo-rows in the old balance, one per class on average,

    .. math:: \pi_j \leftarrow \frac{m s_j + \sum_i \pi_j f_{ij} / (f_i \cdot \pi)}{m + n} .

    The intervals include that classes are known from finitely many validation rows, `labelled`.
    """
    density = np.asarray(new, dtype=np.float64) / before
    after = fit_shares(density, PSEUDO_ROWS * before.size * before, start=before)
    margin = _QUANTILE * _standard_errors(labelled / before, codes, density, after)
    return Balance(after, np.maximum(after - margin, 0.0), np.minimum(after + margin, 1.0))


def fit_shares(density: np.ndarray, pseudo: np.ndarray, *, start: np.ndarray) -> np.ndarray:
    """Run EM until the shares hardly change."""
    current = start
    for _ in range(_MOST_STEPS):
        following = _em_step(density, pseudo, current)
        change = np.abs(following - current).max()
        current = following
        if change < _LAST_STEP:
            break
    return current


def _em_step(density: np.ndarray, pseudo: np.ndarray, shares: np.ndarray) -> np.ndarray:
    counts = shares * ((1 / (density @ shares)) @ density) + pseudo
    return np.asarray(counts / counts.sum())


def efficient_scores(density: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """What each row says about each share: the derivative of its log-likelihood, (n, m)."""
    return np.asarray(density / (density @ shares)[:, None])


def simplex_basis(m: int) -> np.ndarray:
    """Orthonormal directions in which shares can change, (m, m - 1): their sum stays."""
    return np.linalg.qr(np.column_stack([np.ones(m), np.eye(m)[:, 1:]]))[0][:, 1:]


def _standard_errors(
    labelled: np.ndarray, codes: np.ndarray, density: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Standard errors of the shares: a sandwich of curvature and noise on the simplex."""
    n, m = density.shape
    # One row more for each class: a share of 0 is uncertain, too.
    inside = (n * shares + 1) / (n + m)
    scores, basis = efficient_scores(density, inside), simplex_basis(m)
    # A little added, for directions about which the rows hold no information.
    curvature = scores.T @ scores / n + _CURVATURE * np.eye(m)
    noise = curvature / n + _known_noise(efficient_scores(labelled, inside), codes, inside)
    half = np.linalg.solve(basis.T @ curvature @ basis, basis.T)
    variance = np.einsum("ij,ij->j", half, basis.T @ noise @ basis @ half)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _known_noise(scores: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Covariance of the mean scores that comes from finitely many validation rows."""
    counts = np.bincount(codes, minlength=shares.size)
    sums = np.zeros((shares.size, shares.size))
    np.add.at(sums, codes, scores)
    centred = scores - (sums / np.maximum(counts, 1)[:, None])[codes]
    # A class of n rows: variance divided by n, and by n - 1 for the mean that was subtracted.
    weight = shares / np.sqrt(np.maximum(counts * (counts - 1), 1))
    weighted = centred * weight[codes][:, None]
    return np.asarray(weighted.T @ weighted)


class EnergyTest(NamedTuple):
    """What `energy_test` found."""

    energy: float  # distance of the two samples less what chance gives: about 0 under label shift
    p_value: float  # probability of at least this distance under label shift


def energy_test(
    labelled: Sample,
    codes: np.ndarray,
    new: Sample,
    before: np.ndarray,
    after: np.ndarray,
) -> EnergyTest:
    r"""Test whether another class balance explains how new predictions differ.

    If it does, the new rows are distributed as validation rows are, each weighted by new share /
    old share of its class. The energy distance between the two samples (Szekely and Rizzo, Journal
    of Statistical Planning and Inference 143, 2013), in centred log-probabilities,

    .. math:: 2\, E|X - Z| - E|X - X'| - E|Z - Z'| ,

    is the squared length of a difference of two means in a space of functions. There the balance
    is fitted once more, by the moments of the efficient scores :math:`f_j / (f \cdot \pi)`, which
    both samples must share: so the test holds its level where calibration is not perfect, too.
    What chance gives is drawn with normal multipliers: each row's deviation from the mean of its
    class (or of the new rows) is multiplied by a random number, and the balance fitted to the
    result in the same way.

    `before` and `after` are what `estimate_balance` was given and what it found. Of both samples at
    most `MOST_ROWS` are used, at equal steps; of the validation rows half in the new balance and
    half evenly from all classes. With fewer than two rows on either side the p-value is 1.
    """
    used = spread_rows(codes, after, MOST_ROWS)
    n = min(len(new.proba), MOST_ROWS)
    steps = np.linspace(0, len(new.proba), n, endpoint=False).astype(np.intp)
    labelled, codes, new = labelled.take(used), codes[used], new.take(steps)
    if min(codes.size, n) < 2:
        return EnergyTest(0.0, 1.0)
    means = _class_means(codes, after.size)
    fit = _Fit.build(labelled, new, means, before, after)
    fresh = np.append(np.zeros(codes.size), np.full(n, 1 / n))
    gap = fit.shares @ fit.means - fresh
    observed = fit.distance(gap[None])[0]
    # Halfway: the first estimate is shrunk to the old balance, the second one is noisy.
    shares = fit.shares - fit.correction(gap) / 2
    rng = np.random.default_rng(0)
    deviations = _known_deviations(rng, means, codes, shares)
    random = rng.standard_normal((N_DRAWS, n)) / np.sqrt(n * (n - 1))
    chance = fit.distance(np.hstack([deviations, random - random.mean(axis=1, keepdims=True)]))
    p_value = (1 + int((chance >= observed).sum())) / (1 + N_DRAWS)
    return EnergyTest(float(observed - chance.mean()), p_value)


class _Fit(NamedTuple):
    """Distances between all rows, and how a balance is fitted to a difference of samples.

    A difference is a vector of coefficients of the rows, known ones first, that sums to 0.
    """

    similarity: np.ndarray  # (r, r) negative distances
    means: np.ndarray  # (m, r) coefficients of the mean of each class
    shares: np.ndarray  # (m,) the new balance
    scores: np.ndarray  # (r, m)
    inverse: np.ndarray  # (m, m) from moments of the scores to shares

    @classmethod
    def build(
        cls, labelled: Sample, new: Sample, means: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> _Fit:
        proba, calibrated = (np.concatenate(parts) for parts in zip(labelled, new, strict=True))
        counts = (means > 0).sum(axis=1)
        means = np.pad(means, ((0, 0), (0, len(new.proba))))
        shares = np.where(counts > 0, after, 0.0)
        shares /= shares.sum()
        scores = efficient_scores(calibrated / before, after)
        inverse = np.zeros((after.size,) * 2)
        free = np.flatnonzero((counts > 0) & (after * len(new.proba) > _FEWEST))
        moments = _score_moments(means @ scores, counts, scores[len(labelled.proba) :], after)
        basis, inner = simplex_basis(free.size), np.ix_(free, free)
        # On the plane where shares sum to 0.
        inverse[inner] = basis @ np.linalg.solve(basis.T @ moments[inner] @ basis, basis.T)
        similarity = -euclidean_distances(_centred_log(proba))
        return cls(similarity, means, shares, scores, inverse)

    def correction(self, difference: np.ndarray) -> np.ndarray:
        """Shares of the classes that explain a difference best, (..., m); they sum to 0."""
        return np.asarray(difference @ self.scores @ self.inverse)

    def distance(self, difference: np.ndarray) -> np.ndarray:
        """Energy distance that is left of each difference, (d, r), by the best balance."""
        left = difference - self.correction(difference) @ self.means
        return np.asarray(np.einsum("ij,ij->i", left @ self.similarity, left))


def _score_moments(
    seen: np.ndarray, counts: np.ndarray, new: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Mean scores of the rows of each class, (m, m).

    Those seen are noisy where a class has few rows. If calibration were perfect, they would be
    the mean products of scores over the new rows: these count as `_PSEUDO` rows of each class.
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
    is_member = codes == np.arange(m)[:, None]
    return np.asarray(is_member / np.maximum(is_member.sum(axis=1, keepdims=True), 1))


def _known_deviations(
    rng: np.random.Generator, means: np.ndarray, codes: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Random differences of the weighted validation mean from what it estimates, (d, k)."""
    counts = np.bincount(codes, minlength=shares.size)
    alone = (counts == 1)[codes]
    scale = shares / np.sqrt(np.maximum(counts * (counts - 1), 1))
    random = rng.standard_normal((N_DRAWS, codes.size)) * scale[codes]
    # From the mean of its class; where a row is alone in it, from the mean of all rows.
    class_mean = (random * ~alone) @ (means > 0).T @ means
    overall_mean = random[:, alone].sum(axis=1, keepdims=True) / codes.size
    return np.asarray(random - class_mean - overall_mean)


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
    classes = zip(first, counts, taken, strict=True)
    places = [start + np.arange(k) * count // k for start, count, k in classes if k]
    return np.asarray(np.sort(order[np.concatenate(places)]))
