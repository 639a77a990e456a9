r"""Has the class balance changed, by how much, and is it only the balance? No labels needed.

Let :math:`p_{ij}` be calibrated probabilities and :math:`s` the class balance of the validation
data. Under *label shift* new data are the old ones with each class in another proportion, and

.. math:: p'_{ij} \propto p_{ij} \, \pi_j / s_j

are calibrated probabilities under the new balance :math:`\pi`. Three questions, in this order:

1. Do the classes get other probabilities than before, on average (`shift.no_change`)?
2. Which balance explains the new rows best (:func:`take_in`, :func:`estimate_balance`)?
3. Do the old rows, re-weighted by class, look like the new ones (`shift.unexplained`)?

All that is kept of data are a :class:`Profile`, sums over the validation rows and some of these,
and an :class:`Intake`, sums over the new rows, which add up over batches, files and machines.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from sklearn.utils import gen_batches

from altnorm.balance.mixtures import (
    CONCENTRATIONS,
    N_CHANGES,
    candidates,
    held_out,
    log_likelihood,
    mix,
    pseudo_rows,
    share_rows,
)
from altnorm.balance.one_class import N_SHARES, one_class_likelihood
from altnorm.balance.shift_sums import Intake, Profile, find_bins

_FEWEST_BINS, _MOST_BINS = 2, 5  # of confidence
_ROWS_PER_BIN = 5
_LARGEST_PROFILE, _LARGEST_SAMPLE = 2**20, 2**18  # numbers
_BLOCK = 4096  # rows
_INFORMATION_ROWS = 20_000  # enough for standard errors


def profile_rows(
    proba: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    sharper: np.ndarray | None = None,
) -> Profile:
    """Sum calibrated validation rows up.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Calibrated probabilities.
    codes : ndarray of int of shape (n,)
        Label of each row, as a column number.
    weight : ndarray of shape (n,), optional
        Weight of each row.
    sharper : ndarray of shape (n, m), optional
        Better calibrated probabilities of the same rows, which the balance of new rows will be
        estimated with.

    Returns
    -------
    Profile
        The sums. Bins of confidence are quantiles within each predicted class; there are 2 to 5,
        depending on the number of rows, and only 1 where classes are many hundred.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.label_shift import profile_rows
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> profile = profile_rows(proba.repeat(10, axis=0), np.repeat([0, 1, 0, 1], [9, 1, 1, 9]))
    >>> profile.balance, profile.counts.sum(axis=1)
    (array([0.5, 0.5]), array([10., 10.]))
    """
    n, m = proba.shape
    weight = np.ones(n) if weight is None else weight
    weight = weight * (weight.sum() / (weight @ weight))
    n_bins = int(np.clip(n // (_ROWS_PER_BIN * m), _FEWEST_BINS, _MOST_BINS))
    n_bins = max(1, min(n_bins, _LARGEST_PROFILE // m**2))
    edges = _quantiles(proba.argmax(axis=1), proba.max(axis=1), m, n_bins)
    cells = find_bins(proba, edges) * m + codes
    table = np.bincount(cells, weight, minlength=m * n_bins * m).reshape(m, n_bins, m)
    mean = _mean_balance(proba if sharper is None else sharper, weight)
    rows = _some_rows(proba, weight).astype(np.float32)
    return Profile(table, edges, mean, _products(proba, weight / weight.sum()), rows)


def _some_rows(proba: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Rows at equal steps along the weights, as many as these are worth and as may be kept."""
    total = weight.sum()
    k = max(1, min(round(total), _LARGEST_SAMPLE // proba.shape[1]))
    steps = (np.arange(k) + 0.5) * (total / k)
    return np.asarray(proba[np.searchsorted(weight.cumsum(), steps)])


def _mean_balance(proba: np.ndarray, weight: np.ndarray) -> np.ndarray:
    # A class that no row speaks for counts half a row: rare, and not impossible.
    balance = np.maximum(weight @ proba, 0.5)
    return np.asarray(balance / balance.sum())


def _products(proba: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weighted sum over the rows of the products of two classes, (m, m), block by block."""
    total = np.zeros((proba.shape[1],) * 2)
    for block in gen_batches(len(proba), _BLOCK):
        rows = proba[block].astype(np.float64)
        total += (rows * weight[block, None]).T @ rows
    return total


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
    return np.bincount(find_bins(proba, edges), minlength=m * n_bins).reshape(m, n_bins)


def empty_intake(profile: Profile) -> Intake:
    """Return the sums over no rows at all."""
    m, g = profile.balance.size, CONCENTRATIONS.size
    shapes = (m,), (m,), (g, m), (N_SHARES, m), (N_CHANGES,), (m, m)
    counts = np.zeros(profile.counts.shape, dtype=int)
    return Intake(counts, *(np.zeros(shape) for shape in shapes))


def take_in(
    profile: Profile,
    proba: np.ndarray,
    so_far: Intake | None = None,
    *,
    sharper: np.ndarray | None = None,
) -> Intake:
    r"""Add calibrated new rows to the sums, each row shared among the classes.

    The balance under which the rows are most probable is found by EM [1]_ with pseudo-counts:
    :math:`c` rows per class in the proportions of the validation data, and the rows seen so far,

    .. math:: \pi_j = \frac{c m s_j + t_j + \sum_i p'_{ij}}{c m + n_{\text{so far}} + n} ,

    for several :math:`c`, each judged by how probable it makes rows that it has not seen: those of
    another fold, or of the next batch. So is the possibility that one class has changed and the
    others have kept their proportions.

    Parameters
    ----------
    profile : Profile
        Sums over the validation rows.
    proba : ndarray of shape (n, m)
        Calibrated probabilities of new rows.
    so_far : Intake, optional
        Sums over earlier rows, which are not needed again.
    sharper : ndarray of shape (n, m), optional
        Better calibrated probabilities of the same rows, for the estimate. Their mean over the
        validation data must be the profile's `balance`.

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
    >>> from altnorm.balance.label_shift import profile_rows, take_in
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> profile = profile_rows(proba.repeat(10, axis=0), np.repeat([0, 1, 0, 1], [9, 1, 1, 9]))
    >>> intake = take_in(profile, proba.repeat([34, 66], axis=0))
    >>> intake.n_rows, intake.share.round(1)
    (100, array([[30.5, 69.5],
           [30.1, 69.9],
           [30. , 70. ],
           [30. , 70. ]]))
    """
    earlier = empty_intake(profile) if so_far is None else so_far
    if not len(proba):
        return earlier
    proba = proba.astype(np.float64)
    density = (proba if sharper is None else sharper.astype(np.float64)) / profile.balance
    pseudo = pseudo_rows(profile.balance) + earlier.share
    if earlier.n_rows:
        evidence = log_likelihood(density, _candidates(profile, earlier))
    else:
        evidence = held_out(density, profile.balance)
    share = share_rows(density, pseudo)
    now = Intake(
        count_bins(proba, profile.edges),
        proba.sum(axis=0),
        (proba**2).sum(axis=0),
        share,
        one_class_likelihood(density, profile.balance),
        evidence,
        np.zeros(earlier.information.shape),
    )
    total = earlier.plus(now)
    gained = _information(density, estimate_balance(profile, total))
    return total._replace(information=total.information + gained)


def _information(density: np.ndarray, balance: np.ndarray) -> np.ndarray:
    some = density[:: -(-len(density) // _INFORMATION_ROWS)]
    ratio = some / (some @ balance)[:, None]
    return np.asarray(ratio.T @ ratio * (len(density) / len(some)))


def estimate_balance(profile: Profile, intake: Intake) -> np.ndarray:
    r"""Estimate the balance of the new rows.

    The estimates for the several pseudo-counts of :func:`take_in`, that for a change of one class,
    and the old balance are averaged, weighted by the held-out likelihood of each: near the old
    balance where rows are few or the change is small, and far from it where the rows ask for it.

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
    >>> from altnorm.balance.label_shift import estimate_balance, profile_rows, take_in
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> profile = profile_rows(proba.repeat(10, axis=0), np.repeat([0, 1, 0, 1], [9, 1, 1, 9]))
    >>> estimate_balance(profile, take_in(profile, proba.repeat([34, 66], axis=0))).round(2)
    array([0.3, 0.7])
    """
    return mix(profile.balance, _candidates(profile, intake), intake.evidence)[0]


def _candidates(profile: Profile, intake: Intake) -> np.ndarray:
    """Balances after each way to change, (N_CHANGES, m)."""
    if not intake.n_rows:
        return np.tile(profile.balance, (N_CHANGES, 1))
    return candidates(profile.balance, intake.share, intake.one_class)


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
    >>> from altnorm.balance.label_shift import balance_of_counts, profile_rows, take_in
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


def balance_errors(profile: Profile, intake: Intake) -> np.ndarray:
    """Return the standard error of each class's estimated share.

    From the inverse curvature of the log-posterior, on the plane where shares add up to 1. New rows
    are limited, and validation rows too; the second adds in proportion.
    """
    source = profile.balance
    balance, concentration = mix(source, _candidates(profile, intake), intake.evidence)
    m = source.size
    prior = concentration * m * source / balance**2
    basis = np.linalg.qr(np.column_stack([np.ones(m), np.eye(m)[:, 1:]]))[0][:, 1:]
    curvature = basis.T @ (intake.information + np.diag(prior)) @ basis
    covariance = basis @ np.linalg.solve(curvature, basis.T)
    more = 1 + intake.n_rows / profile.reweighted(balance).sum()
    return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0) * more))
