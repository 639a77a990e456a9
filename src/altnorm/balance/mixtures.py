r"""In which proportions are known densities mixed? Several answers, and rows that judge them.

The proportions :math:`\pi` of :math:`\sum_j \pi_j f_j(x_i)` are given a Dirichlet prior around the
old ones :math:`s`, with :math:`c` pseudo-rows per class. How large :math:`c` should be depends on
how far the proportions have moved, and only the rows can tell: each :math:`c` is judged by how
probable it makes rows that its proportions were not fitted on. Knowing from which Dirichlet
distribution the proportions were drawn would not give better ones, in simulations. That only one
class has changed (:mod:`altnorm.balance.one_class`) is judged beside them, in the same way.
"""

from __future__ import annotations

import numpy as np

from altnorm.balance.one_class import one_class_balance, one_class_likelihood

CONCENTRATIONS = np.array([2.0, 0.5, 0.1, 0.02])
"""Pseudo-rows per class: from "hardly moved" to "a few classes are left"."""

N_CHANGES = CONCENTRATIONS.size + 1
"""Ways in which proportions may have changed: one for each strength, and a single class."""

_N_FOLDS = 5
_HELD_OUT_ROWS = 1000  # enough to tell the strengths apart
_ROUGH = 1e-4
_FINE = 1e-5
_MAX_ITER = 500


def pseudo_rows(source: np.ndarray) -> np.ndarray:
    """Pseudo-rows of each class under each strength, (g, m)."""
    return np.asarray(np.outer(CONCENTRATIONS * source.size, source))


def share_rows(density: np.ndarray, pseudo: np.ndarray, *, tol: float = _FINE) -> np.ndarray:
    """Share rows among the classes, by EM.

    Parameters
    ----------
    density : ndarray of shape (n, m)
        Density of each row under each class, up to a factor per row.
    pseudo : ndarray of shape (g, m)
        Rows of each class that count beside these, under each of `g` priors.
    tol : float, default=1e-5
        Stop when no proportions change by more than this, summed over the classes.

    Returns
    -------
    ndarray of shape (g, m)
        Share of each class in the rows, under each prior.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.mixtures import share_rows
    >>> density = np.array([[0.9, 0.1], [0.1, 0.9]]).repeat([34, 66], axis=0)
    >>> share_rows(density, np.array([[1.0, 1.0]])).round(1)
    array([[30.3, 69.7]])
    """
    balance = _proportions(pseudo)
    for _ in range(_MAX_ITER):
        share = _step(density, balance)
        previous, balance = balance, _proportions(share + pseudo)
        if np.abs(balance - previous).sum(axis=1).max() <= tol:
            break
    return share


def _step(density: np.ndarray, balance: np.ndarray) -> np.ndarray:
    return np.asarray(balance * ((1 / (density @ balance.T)).T @ density))


def _proportions(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def candidates(source: np.ndarray, share: np.ndarray, one_class: np.ndarray) -> np.ndarray:
    """Proportions after each way to change, (N_CHANGES, m).

    Parameters
    ----------
    source : ndarray of shape (m,)
        The old proportions.
    share : ndarray of shape (g, m)
        Share of each class in the rows, under each strength.
    one_class : ndarray of shape (k, m)
        Log-likelihood of a change of one class.
    """
    spread = _proportions(share + pseudo_rows(source))
    return np.vstack([spread, one_class_balance(source, one_class)])


def held_out(density: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Say how probable each way to change makes rows it was not fitted on.

    Parameters
    ----------
    density, source
        As for `one_class_likelihood`.

    Returns
    -------
    ndarray of shape (N_CHANGES,)
        Log-likelihood, less that of the old proportions. Where rows are many, of some of them.
    """
    density = density[:: -(-len(density) // _HELD_OUT_ROWS)]
    folds = np.arange(len(density)) % _N_FOLDS
    evidence, pseudo = np.zeros(N_CHANGES), pseudo_rows(source)
    if len(density) < _N_FOLDS:
        return evidence
    for k in range(_N_FOLDS):
        outside = density[folds != k]
        share = share_rows(outside, pseudo, tol=_ROUGH)
        found = candidates(source, share, one_class_likelihood(outside, source))
        evidence += log_likelihood(density[folds == k], found)
    return evidence


def log_likelihood(density: np.ndarray, balances: np.ndarray) -> np.ndarray:
    """Log-likelihood of the rows under each of some proportions."""
    return np.asarray(np.log(density @ balances.T).sum(axis=0))


def mix(source: np.ndarray, found: np.ndarray, evidence: np.ndarray) -> tuple[np.ndarray, float]:
    """Average the proportions over the ways to change, as far as the evidence speaks for each.

    Parameters
    ----------
    source : ndarray of shape (m,)
        The old proportions; that they still hold is one of the possibilities.
    found : ndarray of shape (N_CHANGES, m)
        Proportions after each way to change.
    evidence : ndarray of shape (N_CHANGES,)
        Held-out log-likelihood of each, less that of the old proportions.

    Returns
    -------
    balance : ndarray of shape (m,)
        The proportions.
    concentration : float
        Pseudo-rows per class, averaged in the same way.
    """
    evidence = np.concatenate([[0.0], evidence])
    weight = _proportions(np.exp(evidence - evidence.max()))
    firm = CONCENTRATIONS[:1]  # what does not move all classes counts as hardly moved
    strengths = np.concatenate([firm, CONCENTRATIONS, firm])
    return weight @ np.vstack([source, found]), float(weight @ strengths)
