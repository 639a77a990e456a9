"""Which rows serve as reference, how much each counts, and the class prior."""

from __future__ import annotations

import numpy as np

from altnorm._validation import InputError

__all__ = ["class_frequencies", "merge_rows", "reference_mask", "shrink_frequencies"]

REFERENCES = ("confident", "all")


def reference_mask(ambiguity: np.ndarray, threshold: float, reference: str) -> np.ndarray:
    """Say which validation rows serve as reference.

    Parameters
    ----------
    ambiguity : ndarray
        Ambiguity of the validation rows (of the entries, for multi-label problems).
    threshold : float
        Rows with an ambiguity above it are in doubt.
    reference : {"confident", "all"}
        "confident" takes the rows that are not in doubt, as in the paper.

    Returns
    -------
    ndarray of bool, shaped like `ambiguity`
        True where the row serves.
    """
    if reference not in REFERENCES:
        raise InputError(
            f"`reference` must be one of {REFERENCES}",
            f"it is {reference!r}",
            "Pass 'confident' for the paper's choice.",
            value=reference,
            code="parameter",
        )
    if reference == "all":
        return np.ones(ambiguity.shape, dtype=bool)
    confident = ambiguity <= threshold
    if not confident.any():
        raise InputError(
            "The reference must have at least one row",
            f"none of {ambiguity.size} has an ambiguity of at most `threshold` {threshold:g}, "
            f"the lowest is {ambiguity.min():.3g}",
            "Raise `threshold`, or pass reference='all'.",
            value=float(ambiguity.min()),
            code="no_reference",
        )
    return confident


def merge_rows(
    rows: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Merge identical rows into one that carries their total weight.

    The adjustment does not change: weights multiply a row's share in every column sum.

    Parameters
    ----------
    rows : ndarray of shape (n,) or (n, m)
        Reference rows.
    weight : ndarray of shape (n,), optional
        Their weights; None counts each once.

    Returns
    -------
    rows : ndarray
        The distinct rows, sorted; the input itself where all are distinct.
    weight : ndarray or None
        Their total weights; None where every row still counts once.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.reference import merge_rows
    >>> merge_rows(np.array([0.2, 0.9, 0.2]))
    (array([0.2, 0.9]), array([2., 1.]))
    """
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    if distinct.shape[0] == rows.shape[0]:
        return rows, weight
    merged = np.bincount(inverse.reshape(-1), weights=weight, minlength=distinct.shape[0])
    return distinct, merged.astype(np.float64)


def class_frequencies(
    codes: np.ndarray, n_classes: int, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Share of each class among `codes`, weighted."""
    counts = np.bincount(codes, weights=sample_weight, minlength=n_classes).astype(np.float64)
    return counts / counts.sum()


def shrink_frequencies(frequencies: np.ndarray, n_rows: float) -> np.ndarray:
    r"""Shrink counted class frequencies towards uniform, as far as counting noise explains them.

    The James-Stein estimator of [1]_: with frequencies :math:`f` counted from `n` rows and
    :math:`u = 1/m`,

    .. math:: \hat f = \lambda u + (1 - \lambda) f, \qquad
              \lambda = \min\!\left(1, \frac{1 - \sum_j f_j^2}{(n - 1) \sum_j (u - f_j)^2}\right).

    Frequencies that noise alone could have produced become uniform; well-founded ones stay.

    Parameters
    ----------
    frequencies : ndarray of shape (m,)
        Class frequencies, summing to 1.
    n_rows : float
        Number of rows they were counted from.

    Returns
    -------
    ndarray of shape (m,)
        Shrunk frequencies, summing to 1.

    References
    ----------
    .. [1] Hausser, Strimmer. Entropy inference and the James-Stein estimator. JMLR 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.reference import shrink_frequencies
    >>> shrink_frequencies(np.array([0.6, 0.4]), n_rows=10)
    array([0.5, 0.5])
    >>> shrink_frequencies(np.array([0.6, 0.4]), n_rows=1000).round(3)
    array([0.598, 0.402])
    """
    uniform = 1.0 / frequencies.size
    spread = (n_rows - 1) * float(np.sum((frequencies - uniform) ** 2))
    noise = 1.0 - float(np.sum(frequencies**2))
    share = 1.0 if spread <= noise else noise / spread
    return share * uniform + (1.0 - share) * frequencies
