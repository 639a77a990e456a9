"""Top-k entropy: which rows a classifier is in doubt about."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq

from altnorm._base import arrays
from altnorm._base.arrays import Array, GivenArray, array_namespace
from altnorm._base.validation import check_integer, check_proba


def topk_entropy(proba: GivenArray, k: int) -> GivenArray:
    r"""Entropy of the `k` largest probabilities of each row, between 0 and 1.

    They are renormalised to sum to 1, and the logarithm has base `k`:

    .. math:: H_k(p) = -\sum_{j=1}^{k} \hat p_j \log_k \hat p_j,
              \qquad \hat p_j = p_{(j)} / \textstyle\sum_{i \le k} p_{(i)} .

    The equation in the paper does not renormalise and takes base `m`, the number of classes; the
    page on the mathematics says why that cannot be what was run.

    Parameters
    ----------
    proba : array of shape (n, m)
        Class probabilities, each row summing to 1.
    k : int
        How many of the largest probabilities to keep, from 2 to `m`.

    Returns
    -------
    array of shape (n,)
        Entropies in [0, 1], in the library, device and dtype of `proba`.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import topk_entropy
    >>> topk_entropy(np.array([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]]), k=2).round(3)
    array([1.   , 0.918])
    """
    rows = check_proba(proba)
    k = check_integer(k, "k", low=2, high=rows.shape[1])
    return _map_rows(rows, k, k)


def ambiguity(proba: GivenArray, *, k_max: int = 10) -> GivenArray:
    r"""Ambiguity of each row: its largest top-k entropy over k from 2 to ``min(k_max, m)``.

    A row is in doubt when its ambiguity exceeds a threshold; see :func:`topk_entropy`.

    Parameters
    ----------
    proba : array of shape (n, m)
        Class probabilities, each row summing to 1.
    k_max : int, default=10
        Largest number of classes to look at.

    Returns
    -------
    array of shape (n,)
        Ambiguities in [0, 1], in the library, device and dtype of `proba`.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import ambiguity
    >>> ambiguity(np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.5, 0.25, 0.25]])).round(3)
    array([0.469, 1.   , 0.946])
    """
    return row_ambiguity(check_proba(proba), k_max=check_integer(k_max, "k_max", low=2))


def row_ambiguity(proba: Array, *, k_max: int) -> Array:
    """Ambiguity of rows that are known to be probabilities."""
    return _map_rows(proba, 2, min(k_max, proba.shape[1]))


def in_doubt(proba: Array, threshold: float, *, k_max: int) -> np.ndarray:
    """Say which rows have an ambiguity above `threshold`: none that is surer than a bound."""
    xp = array_namespace(proba)
    k_max = min(k_max, proba.shape[1])
    bound = _largest_doubtful(threshold, k_max)
    rows = np.flatnonzero(arrays.to_numpy(xp.max(proba, axis=1) <= bound))
    doubt = np.zeros(proba.shape[0], dtype=bool)
    for block in arrays.block_slices(rows.size, 24 * proba.shape[1], proba, cached=True):
        unsure = rows[block]
        entropy = _largest_entropy(arrays.take_rows(proba, unsure), 2, k_max)
        doubt[unsure] = arrays.to_numpy(entropy) > threshold
    return doubt


@cache
def _largest_doubtful(threshold: float, k_max: int) -> float:
    """Largest top probability that a row with an ambiguity of `threshold` can have."""

    # The entropy of k classes is largest when the others share alike, and falls as p grows.
    def excess(p: float, k: int) -> float:
        row = np.array([[p] + [(1 - p) / (k - 1)] * (k - 1)])
        return float(top_entropy(row, k, log_sizes(k, k))[0, 0]) - threshold

    if not 0 < threshold < 1:
        return 1.0 if threshold <= 0 else 0.0
    # The margin is far above rounding, which may put equal shares below a threshold of almost 1.
    return 1e-5 + max(
        brentq(excess, 1 / k, 1, args=(k,)) if excess(1 / k, k) > 0 else 1 / k
        for k in range(2, k_max + 1)
    )


def _map_rows(proba: Array, k_min: int, k_max: int) -> Array:
    blocks = arrays.block_slices(proba.shape[0], 16 * proba.shape[1], proba, cached=True)
    return arrays.concat_blocks(
        (_largest_entropy(proba[rows, :], k_min, k_max) for rows in blocks), proba[:, 0]
    )


def _largest_entropy(proba: Array, k_min: int, k_max: int) -> Array:
    """Largest of the top-k entropies for ``k_min <= k <= k_max``, from running sums over k."""
    kernels = arrays.fused(proba)
    if kernels is not None and k_max <= kernels.FEW:
        return kernels.largest_entropy(proba, k_min, k_max)
    sizes = arrays.as_array(log_sizes(k_min, k_max), proba)
    with arrays.quiet(array_namespace(proba)):
        return top_entropy(arrays.top_k(proba, k_max), k_min, sizes)[:, 0]


def top_entropy(top: Array, k_min: int, log_k: Array) -> Array:
    """Largest top-k entropy, (n, 1), of the largest probabilities, (n, k_max), largest first."""
    xp = array_namespace(top)
    mass = arrays.running_sums(top)[:, k_min - 1 :]
    # -sum(p/Z log(p/Z)) = log Z - sum(p log p) / Z
    nats = xp.log(mass) - arrays.running_sums(_p_log_p(top))[:, k_min - 1 :] / mass
    largest = xp.max(nats / log_k, axis=1, keepdims=True)
    # Rounding may leave the unit interval by some units in the last place.
    return xp.minimum(xp.maximum(largest, xp.zeros_like(largest)), xp.ones_like(largest))


def binary_ambiguity(p: Array) -> Array:
    """Ambiguity of probabilities of yes, each beside its no: their entropy in bits."""
    nats = _p_log_p(p) + _p_log_p(1 - p)
    return array_namespace(p).abs(nats) / math.log(2)


def _p_log_p(p: Array) -> Array:
    """``p log p``, 0 where p is 0."""
    xp = array_namespace(p)
    return p * xp.log(xp.where(p > 0, p, xp.ones_like(p)))


@cache
def log_sizes(k_min: int, k_max: int) -> np.ndarray:
    """Log k, from `k_min` to `k_max`."""
    return np.array([math.log(k) for k in range(k_min, k_max + 1)])
