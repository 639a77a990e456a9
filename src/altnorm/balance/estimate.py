"""The class balance of new predictions, from calibrated probabilities alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PSEUDO_ROWS = 1.0
"""Rows per class, in the old balance, that are added to the new ones.

Between 0.5 and 2 on simulated and on real classifiers: with none the estimate follows noise where
rows per class are few, and rows that were held out choose too few where calibration is not perfect.
"""

_MOST_STEPS = 1000
_LAST_STEP = 1e-7  # largest change of a share
_CURVATURE = 1e-4  # of the log-likelihood of a row; 1 or more where classes are told apart
_QUANTILE = 1.96  # of the normal distribution, for 95 %


class Balance(NamedTuple):
    """A class balance, estimated."""

    shares: np.ndarray  # (m,) positive, of sum 1
    low: np.ndarray  # (m,) 95 % interval of each share
    high: np.ndarray
    n_rows: int  # it was estimated from


def estimate_balance(
    proba: np.ndarray,
    shares: np.ndarray,
    *,
    known: np.ndarray | None = None,
    codes: np.ndarray | None = None,
) -> Balance:
    r"""Estimate the class balance of new rows if nothing but the balance has changed.

    Under label shift the density of a row is :math:`\sum_j \pi_j f_j`, with :math:`f_j = p_j / s_j`
    up to a factor, from calibrated probabilities :math:`p` and the old shares :math:`s`. EM [1]_
    finds the balance :math:`\pi` that makes the rows most probable, with :math:`m` pseudo-rows in
    the old balance, one per class on average,

    .. math:: \pi_j \leftarrow \frac{m s_j + \sum_i \pi_j f_{ij} / (f_i \cdot \pi)}{m + n} .

    With the calibrated probabilities `known` of validation rows and their classes `codes`, the
    intervals include that the classes are known from finitely many rows.

    References
    ----------
    .. [1] Saerens, Latinne, Decaestecker, "Adjusting the outputs of a classifier to new a priori
       probabilities: a simple procedure", Neural Computation 14, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.estimate import estimate_balance
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> found = estimate_balance(proba.repeat([170, 330], axis=0), np.array([0.5, 0.5]))
    >>> found.shares.round(2), found.low.round(2), found.high.round(2)
    (array([0.3, 0.7]), array([0.25, 0.65]), array([0.35, 0.75]))
    """
    density = np.asarray(proba, dtype=np.float64) / shares
    after = fit_shares(density, PSEUDO_ROWS * shares.size * shares, start=shares)
    seen = None if known is None or codes is None else (known / shares, codes)
    margin = _QUANTILE * _standard_errors(density, after, seen)
    low, high = np.maximum(after - margin, 0.0), np.minimum(after + margin, 1.0)
    return Balance(after, low, high, len(density))


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
    density: np.ndarray, shares: np.ndarray, known: tuple[np.ndarray, np.ndarray] | None
) -> np.ndarray:
    """Standard errors of the shares: a sandwich of curvature and noise on the simplex."""
    n, m = density.shape
    # One row more for each class: a share of 0 is uncertain, too.
    inside = (n * shares + 1) / (n + m)
    scores, basis = efficient_scores(density, inside), simplex_basis(m)
    # A little more than the rows say, for directions about which they say nothing.
    curvature = scores.T @ scores / n + _CURVATURE * np.eye(m)
    noise = curvature / n
    if known is not None:
        noise = noise + _known_noise(efficient_scores(known[0], inside), known[1], inside)
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
