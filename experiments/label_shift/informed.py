"""The best that can be known without labels: the balance, given how balances are drawn."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

__all__ = ["informed_balance"]

_SWEEPS, _BURN_IN = 120, 40


def informed_balance(density: np.ndarray, source: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """Return the posterior mean of the balance, for someone who knows what it was drawn from.

    Parameters
    ----------
    density : ndarray of shape (n, m)
        Density of each row under each class, up to a factor per row.
    source : ndarray of shape (m,)
        The old balance, to start from.
    possible : ndarray of shape (m,) or (k, m)
        Parameters of a Dirichlet distribution, or all balances that can be, equally probable.

    Returns
    -------
    ndarray of shape (m,)
        The balance.
    """
    if possible.ndim == 2:
        floor = np.finfo(float).tiny
        log_likelihood = np.log(np.maximum(density @ possible.T, floor)).sum(axis=0)
        return np.asarray(softmax(log_likelihood) @ possible)
    return _sampled(density, source, possible, np.random.default_rng(0))


def _sampled(
    density: np.ndarray, balance: np.ndarray, pseudo: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Gibbs sampling: classes given the balance, and the balance given the classes, in turn."""
    total = np.zeros(balance.size)
    for sweep in range(_SWEEPS):
        cumulated = (density * balance).cumsum(axis=1)
        thrown = rng.random(len(density)) * cumulated[:, -1]
        classes = (cumulated < thrown[:, None]).sum(axis=1)
        rows = pseudo + np.bincount(classes, minlength=balance.size)
        balance = np.maximum(rng.dirichlet(rows), np.finfo(float).tiny)
        if sweep >= _BURN_IN:
            total += rows
    return np.asarray(total / total.sum())
