r"""One class has become more or less common, and the others have kept their proportions.

With class :math:`k` at a share :math:`t` and the others as they were among themselves, the
proportions are

.. math:: \pi_k = t, \qquad \pi_j = (1 - t) \frac{s_j}{1 - s_k} .

A Dirichlet prior, under which all classes move, needs many rows per class to find such a change;
here there are only two unknowns. The likelihood is kept for several :math:`t` and every
:math:`k`: sums over rows, which add up over batches.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

N_SHARES = 33
_FINER = 8
_MOST_TERMS = 2**26  # logarithms; where rows or classes are very many, some of the rows speak
_BLOCK = 2**20  # numbers

# Equally spaced in arcsin(sqrt(t)), where estimates of a share have the same error everywhere. The
# ends are left out: a certain row makes them impossible.
_ANGLES = np.linspace(0.01, np.pi / 2 - 0.01, N_SHARES)
_FINE = np.linspace(_ANGLES[0], _ANGLES[-1], _FINER * (N_SHARES - 1) + 1)


def one_class_likelihood(density: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Log-likelihood of each share of each class, while the others keep their proportions.

    Parameters
    ----------
    density : ndarray of shape (n, m)
        Density of each row under each class, scaled so that ``density @ source`` is 1.
    source : ndarray of shape (m,)
        The old proportions.

    Returns
    -------
    ndarray of shape (k, m)
        A sum over the rows, less that of the old proportions.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.one_class import one_class_balance, one_class_likelihood
    >>> density, source = 3 * np.eye(3).repeat([80, 10, 10], axis=0), np.full(3, 1 / 3)
    >>> table = one_class_likelihood(density, source)
    >>> one_class_balance(source, table).round(2)
    array([0.8, 0.1, 0.1])
    """
    n, m = density.shape
    density = density[:: -(-n * m * N_SHARES // _MOST_TERMS) or 1]
    total = np.zeros((N_SHARES, m))
    for rows in np.array_split(density, -(-density.size // _BLOCK) or 1):
        others = np.maximum(1 - source * rows, 0.0) / (1 - source)
        for k, share in enumerate(np.sin(_ANGLES) ** 2):
            total[k] += np.log(share * rows + (1 - share) * others).sum(axis=0)
    return total


def one_class_balance(source: np.ndarray, log_likelihood: np.ndarray) -> np.ndarray:
    """Mean of the proportions, weighted by their likelihood.

    Parameters
    ----------
    source : ndarray of shape (m,)
        The old proportions.
    log_likelihood : ndarray of shape (k, m)
        What `one_class_likelihood` returned, or a sum of such.

    Returns
    -------
    ndarray of shape (m,)
        The proportions. Every class may be the one that has changed, and its share is as probable
        as Jeffreys' prior says.
    """
    fine = CubicSpline(_ANGLES, log_likelihood)(_FINE)
    weight = np.exp(fine - fine.max())
    weight /= weight.sum()
    shares, changed = np.sin(_FINE) ** 2 @ weight, weight.sum(axis=0)  # the first: P(k) E(t | k)
    others = (changed - shares) / (1 - source)
    return np.asarray(shares + source * (others.sum() - others))
