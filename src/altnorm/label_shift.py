r"""Has the class balance changed, by how much, and is it only the balance? No labels needed.

Let :math:`p_{ij}` be calibrated probabilities and :math:`s` the class balance of the validation
data. Under *label shift* new data are the old ones with each class in another proportion, and

.. math:: p'_{ij} \propto p_{ij} \, \pi_j / s_j

are calibrated probabilities under the new balance :math:`\pi`. Three questions, in this order:

1. Are classes predicted in other proportions than before (`compare_counts`)?
2. Which balance explains the new rows best (:func:`take_in`, :func:`shrink_balance`)?
3. Do the old rows, re-weighted by class, look like the new ones (:func:`unexplained`)?

All that is kept of data are sums: a :class:`Profile` of the validation rows and an
:class:`Intake` of the new ones, which adds up over batches, files and machines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from altnorm._count_tests import CountTest, compare_counts

__all__ = [
    "Intake",
    "Profile",
    "balance_errors",
    "balance_of_counts",
    "count_bins",
    "empty_intake",
    "estimate_balance",
    "profile_rows",
    "shrink_balance",
    "take_in",
    "unexplained",
]

_N_BINS = 5  # of confidence
_ROWS_PER_BIN = 5
_LARGEST_PROFILE = 2**20  # numbers
_TOLERANCE = 1e-6
_MAX_ITER = 1000
_INFORMATION_ROWS = 20_000  # enough for standard errors


class Profile(NamedTuple):
    """Sums over calibrated validation rows.

    Attributes
    ----------
    table : ndarray of shape (m, b, m)
        Rows by predicted class, confidence bin and label; of weighted rows, as many as they are
        worth.
    edges : ndarray of shape (m, b - 1)
        Confidences between the bins of each predicted class.
    balance : ndarray of shape (m,)
        Class balance, as the calibrated probabilities have it.
    """

    table: np.ndarray
    edges: np.ndarray
    balance: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Rows of each predicted class and confidence bin, (m, b)."""
        return np.asarray(self.table.sum(axis=2))

    @property
    def n_rows(self) -> float:
        """Number of rows, or what weighted ones are worth."""
        return float(self.table.sum())

    def reweighted(self, balance: np.ndarray) -> np.ndarray:
        """Rows of each bin, (m, b), if the classes had another balance.

        Re-weighted rows count less than as many independent ones: they are scaled to the number
        that these are worth.
        """
        weight = balance / self.balance
        sums = self.table @ weight
        return np.asarray(sums * (sums.sum() / (self.table @ weight**2).sum()))


class Intake(NamedTuple):
    """Sums over calibrated new rows; those of two batches add up.

    Attributes
    ----------
    counts : ndarray of shape (m, b)
        Rows of each predicted class and confidence bin.
    share : ndarray of shape (m,)
        Sum of the probabilities under the balance of the batch.
    information : ndarray of shape (m, m)
        Fisher information about the balance.
    """

    counts: np.ndarray
    share: np.ndarray
    information: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    def plus(self, other: Intake) -> Intake:
        """Return the sums over both batches."""
        return Intake(*(a + b for a, b in zip(self, other, strict=True)))


def profile_rows(proba: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None) -> Profile:
    """Sum calibrated validation rows up.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Calibrated probabilities.
    codes : ndarray of int of shape (n,)
        Label of each row, as a column number.
    weight : ndarray of shape (n,), optional
        Weight of each row.

    Returns
    -------
    Profile
        The sums. Bins of confidence are quantiles within each predicted class; there are at most
        5, and fewer where rows are few or classes many.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.label_shift import profile_rows
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> profile = profile_rows(proba.repeat(10, axis=0), np.repeat([0, 1, 0, 1], [9, 1, 1, 9]))
    >>> profile.balance, profile.counts.sum(axis=1)
    (array([0.5, 0.5]), array([10., 10.]))
    """
    n, m = proba.shape
    weight = np.ones(n) if weight is None else weight
    weight = weight * (weight.sum() / (weight @ weight))
    n_bins = max(1, min(_N_BINS, n // (_ROWS_PER_BIN * m), _LARGEST_PROFILE // m**2))
    edges = _quantiles(proba.argmax(axis=1), proba.max(axis=1), m, n_bins)
    cells = _bins(proba, edges) * m + codes
    table = np.bincount(cells, weight, minlength=m * n_bins * m).reshape(m, n_bins, m)
    # A class that no row speaks for counts half a row: rare, and not impossible.
    balance = np.maximum(weight @ proba, 0.5)
    return Profile(table, edges, balance / balance.sum())


def _quantiles(decided: np.ndarray, confidence: np.ndarray, m: int, n_bins: int) -> np.ndarray:
    """Confidences between equally filled bins of each predicted class, (m, n_bins - 1)."""
    levels = np.arange(1, n_bins) / n_bins
    edges = np.tile(np.quantile(confidence, levels), (m, 1))
    for j in range(m):
        own = confidence[decided == j]
        if own.size >= n_bins:
            edges[j] = np.quantile(own, levels)
    return edges


def count_bins(proba: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Count calibrated rows by predicted class and bin of confidence, (m, b)."""
    m, n_bins = edges.shape[0], edges.shape[1] + 1
    return np.bincount(_bins(proba, edges), minlength=m * n_bins).reshape(m, n_bins)


def _bins(proba: np.ndarray, edges: np.ndarray) -> np.ndarray:
    decided = proba.argmax(axis=1)
    above = proba.max(axis=1)[:, None] > edges[decided]
    return np.asarray(decided * (edges.shape[1] + 1) + above.sum(axis=1))


def empty_intake(profile: Profile) -> Intake:
    """Return the sums over no rows at all."""
    m = profile.balance.size
    return Intake(np.zeros(profile.counts.shape, dtype=int), np.zeros(m), np.zeros((m, m)))


def take_in(profile: Profile, proba: np.ndarray, so_far: Intake | None = None) -> Intake:
    r"""Add calibrated new rows to the sums, each row shared among the classes.

    The balance under which the rows are most probable is found by EM [1]_ with pseudo-counts: one
    row for each class, in the proportions of the validation data, and the rows seen so far,

    .. math:: \pi_j = \frac{m s_j + t_j + \sum_i p'_{ij}}{m + n_{\text{so far}} + n} .

    Parameters
    ----------
    profile : Profile
        Sums over the validation rows.
    proba : ndarray of shape (n, m)
        Calibrated probabilities of new rows.
    so_far : Intake, optional
        Sums over earlier rows, which are not needed again.

    Returns
    -------
    Intake
        Sums over all of them.

    References
    ----------
    .. [1] Saerens, Latinne, Decaestecker, "Adjusting the outputs of a classifier to new a priori
       probabilities: a simple procedure", Neural Computation 14, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.label_shift import profile_rows, take_in
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> profile = profile_rows(proba.repeat(10, axis=0), np.repeat([0, 1, 0, 1], [9, 1, 1, 9]))
    >>> intake = take_in(profile, proba.repeat([34, 66], axis=0))
    >>> intake.n_rows, intake.share.round(1)
    (100, array([30.3, 69.7]))
    """
    earlier = empty_intake(profile) if so_far is None else so_far
    if not len(proba):
        return earlier
    source = profile.balance
    density = proba.astype(np.float64) / source
    balance, share = _settle(density, source.size * source + earlier.share)
    step = -(-len(proba) // _INFORMATION_ROWS)
    ratio = density[::step] / (density[::step] @ balance)[:, None]
    information = ratio.T @ ratio * (len(proba) / len(ratio))
    return earlier.plus(Intake(count_bins(proba, profile.edges), share, information))


def _settle(density: np.ndarray, pseudo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """EM until the balance settles; return it and each class's share of the rows."""
    balance = pseudo / pseudo.sum()
    for _ in range(_MAX_ITER):
        share = balance * ((1 / (density @ balance)) @ density)
        previous, balance = balance, share + pseudo
        balance = balance / balance.sum()
        if np.abs(balance - previous).sum() <= _TOLERANCE:
            break
    return balance, share


def estimate_balance(profile: Profile, intake: Intake) -> np.ndarray:
    """Return the balance of the new rows, with one pseudo-count for each class."""
    pseudo = profile.balance.size * profile.balance
    return np.asarray((pseudo + intake.share) / (pseudo + intake.share).sum())


def shrink_balance(profile: Profile, intake: Intake) -> np.ndarray:
    r"""Shrink the estimated balance towards the old one as far as noise explains the difference.

    With the old balance :math:`s`, the estimate :math:`\hat\pi` and its standard errors
    :math:`e`,

    .. math:: \pi = \lambda s + (1 - \lambda) \hat\pi, \qquad
              \lambda = \min\!\left(1, \frac{\sum_j e_j^2 / s_j}
              {\sum_j (\hat\pi_j - s_j)^2 / s_j}\right):

    little where rows are many and classes few, more where it is the other way round.

    Parameters
    ----------
    profile : Profile
        Sums over the validation rows.
    intake : Intake
        Sums over the new rows.

    Returns
    -------
    ndarray of shape (m,)
        The balance of the new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.label_shift import profile_rows, shrink_balance, take_in
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> profile = profile_rows(proba.repeat(10, axis=0), np.repeat([0, 1, 0, 1], [9, 1, 1, 9]))
    >>> shrink_balance(profile, take_in(profile, proba.repeat([34, 66], axis=0))).round(2)
    array([0.32, 0.68])
    """
    source, found = profile.balance, estimate_balance(profile, intake)
    noise = float((_variances(profile, intake, found) / source).sum())
    distance = float(((found - source) ** 2 / source).sum())
    share = 1.0 if distance <= noise else noise / distance
    return np.asarray(share * source + (1 - share) * found)


def balance_of_counts(profile: Profile, counts: np.ndarray, *, ridge: float = 0.0) -> np.ndarray:
    r"""Estimate the balance from predicted classes alone, for comparison.

    Solves :math:`\sum_j C_{cj} w_j = k_c` for the class weights :math:`w \ge 0`, with :math:`C` the
    shares of predicted class and class on the validation data, and :math:`k` the shares of the
    predicted classes now: BBSE [1]_; with a penalty :math:`\lambda \sum_j (w_j - 1)^2`, RLLS [2]_.

    Parameters
    ----------
    profile : Profile
        Sums over the validation rows.
    counts : ndarray of shape (m, b)
        New rows of each predicted class and confidence bin.
    ridge : float, default=0.0
        Strength of the penalty.

    Returns
    -------
    ndarray of shape (m,)
        The balance; classes may have none.

    References
    ----------
    .. [1] Lipton, Wang, Smola, "Detecting and correcting for label shift with black box
       predictors", ICML 2018.
    .. [2] Azizzadenesheli, Liu, Yang, Anandkumar, "Regularized learning for domain adaptation
       under label shifts", ICLR 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.label_shift import balance_of_counts, profile_rows, take_in
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> profile = profile_rows(proba.repeat(10, axis=0), np.repeat([0, 1, 0, 1], [9, 1, 1, 9]))
    >>> intake = take_in(profile, proba.repeat([34, 66], axis=0))
    >>> balance_of_counts(profile, intake.counts).round(2)
    array([0.3, 0.7])
    """
    confusion = profile.table.sum(axis=1) / profile.n_rows
    target = counts.sum(axis=1) / counts.sum()
    m = target.size
    penalty = np.sqrt(ridge)
    weight, _ = nnls(
        np.concatenate([confusion, penalty * np.eye(m)]),
        np.concatenate([target, penalty * np.ones(m)]),
        maxiter=30 * m,
    )
    balance = weight * profile.balance
    return np.asarray(balance / balance.sum())


def balance_errors(profile: Profile, intake: Intake, balance: np.ndarray) -> np.ndarray:
    """Return the standard error of each class's share.

    New rows are limited, and validation rows too; the second adds in proportion.
    """
    more = 1 + intake.n_rows / profile.reweighted(balance).sum()
    return np.asarray(np.sqrt(_variances(profile, intake, balance) * more))


def _variances(profile: Profile, intake: Intake, balance: np.ndarray) -> np.ndarray:
    """Inverse curvature of the log-posterior, on the plane where shares add up to 1."""
    m = balance.size
    prior = m * profile.balance / balance**2
    basis = np.linalg.qr(np.column_stack([np.ones(m), np.eye(m)[:, 1:]]))[0][:, 1:]
    curvature = basis.T @ (intake.information + np.diag(prior)) @ basis
    covariance = basis @ np.linalg.solve(curvature, basis.T)
    return np.asarray(np.maximum(np.diag(covariance), 0.0))


def unexplained(
    profile: Profile, counts: np.ndarray, balance: np.ndarray, before: np.ndarray | None = None
) -> tuple[float, float]:
    """Say how badly re-weighted validation rows fit the new ones.

    Parameters
    ----------
    profile : Profile
        Sums over the validation rows.
    counts : ndarray of shape (m, b)
        New rows of each predicted class and confidence bin.
    balance : ndarray of shape (m,)
        Balance of the new rows.
    before : ndarray of shape (m, b), optional
        Rows of each bin that the new ones differ from; None is those of the profile.

    Returns
    -------
    p_value : float
        Of the hypothesis that within each predicted class confidences are distributed as in the
        re-weighted validation rows.
    share : float
        Which part of the difference between old and new rows the new balance leaves.
    """
    left, after = _distance(profile.reweighted(balance), counts)
    difference, _ = _distance(profile.counts if before is None else before, counts)
    return after.p_value, min(1.0, left / difference) if difference else 0.0


def _distance(before: np.ndarray, now: np.ndarray) -> tuple[float, CountTest]:
    """Squared distance beyond chance, and the test of the confidences within classes."""
    within = compare_counts(before, now)
    between = compare_counts(before.sum(axis=1), now.sum(axis=1))
    return (within.excess + between.excess) * (1 / before.sum() + 1 / now.sum()), within
