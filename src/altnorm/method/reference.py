"""Which rows serve as reference, how much each counts, and the class prior."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from altnorm._base.errors import InputError
from altnorm._base.validation import check_choice, check_prior

REFERENCES = ("confident", "all")
PRIORS = ("counted", "uniform", "shrunk")
_OTHER_DATA = 1e-3  # p-value below which a prior is taken to be one for other data


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
    check_choice(reference, "reference", REFERENCES)
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
    >>> from altnorm.method.reference import merge_rows
    >>> merge_rows(np.array([0.2, 0.9, 0.2]))
    (array([0.2, 0.9]), array([2., 1.]))
    """
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    if distinct.shape[0] == rows.shape[0]:
        return rows, weight  # in their own order, so that sums round as before
    merged = np.bincount(inverse.reshape(-1), weights=weight, minlength=distinct.shape[0])
    return distinct, merged.astype(np.float64)


def class_prior(
    codes: np.ndarray | None,
    n_classes: int,
    prior: Any = None,
    *,
    sample_weight: np.ndarray | None = None,
    name: str = "prior",
) -> np.ndarray:
    """Return the class prior that a setting stands for: the one place that says what it means.

    Parameters
    ----------
    codes : ndarray of int of shape (n,) or None
        Class of each row, as a column number; None where there are no labels.
    n_classes : int
        Number of classes.
    prior : None, "counted", "uniform", "shrunk" or array of shape (n_classes,), default=None
        "counted": the class frequencies of the labels, an error where there are none. "uniform":
        every class alike. "shrunk": the class frequencies, shrunk towards uniform as far as
        counting noise explains them (:func:`shrink_frequencies`); uniform without labels. None:
        counted if there are labels, else uniform. An array is divided by its sum.
    sample_weight : ndarray of shape (n,), optional
        Weight of each row.
    name : str, default="prior"
        What the setting is called, for messages.

    Returns
    -------
    ndarray of shape (n_classes,)
        The prior; it sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.method.reference import class_prior
    >>> codes = np.repeat([0, 1], [600, 400])
    >>> class_prior(codes, 2)
    array([0.6, 0.4])
    >>> class_prior(codes, 2, "shrunk").round(3)
    array([0.598, 0.402])
    >>> class_prior(None, 2)
    array([0.5, 0.5])
    """
    kind = _prior_kind(codes, prior, name)
    if kind == "given":
        return check_prior(prior, np.empty((0, n_classes)), name)
    if codes is None or kind == "uniform":
        return np.full(n_classes, 1.0 / n_classes)
    frequencies = class_frequencies(codes, n_classes, sample_weight)
    if kind == "counted":
        return frequencies
    return shrink_frequencies(frequencies, _total(codes, sample_weight))


def label_prior(
    labels: np.ndarray | None,
    n_labels: int,
    prior: Any = None,
    *,
    sample_weight: np.ndarray | None = None,
) -> np.ndarray:
    """Return the prior probability of each of several labels, each on its own.

    Parameters
    ----------
    labels : ndarray of bool of shape (n, n_labels) or None
        Which labels each row has; None where that is not known.
    n_labels : int
        Number of labels.
    prior : None, "counted", "uniform", "shrunk" or array of shape (n_labels,), default=None
        As for :func:`class_prior`. "uniform" is 0.5; "shrunk" counts one more row, of the average
        label, so that no label is impossible; an array holds probabilities.
    sample_weight : ndarray of shape (n,), optional
        Weight of each row.

    Returns
    -------
    ndarray of shape (n_labels,)
        The probability of each label.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.method.reference import label_prior
    >>> label_prior(np.array([[1, 0], [1, 0], [1, 0]], dtype=bool), 2, "shrunk")
    array([0.875, 0.125])
    """
    kind = _prior_kind(labels, prior, "prior")
    if kind == "given":
        return _check_label_prior(np.asarray(prior, dtype=np.float64), n_labels)
    if labels is None or kind == "uniform":
        return np.full(n_labels, 0.5)
    frequencies = np.average(labels, axis=0, weights=sample_weight)
    if kind == "counted":
        return frequencies
    n_rows = _total(labels, sample_weight)
    return (n_rows * frequencies + frequencies.mean()) / (n_rows + 1)


def _prior_kind(labels: np.ndarray | None, prior: Any, name: str) -> str:
    """One of `PRIORS`, or "given" for numbers."""
    if prior is None:
        return "uniform" if labels is None else "counted"
    if not isinstance(prior, str):
        return "given"
    check_choice(prior, name, (None, *PRIORS))
    if prior == "counted" and labels is None:
        raise InputError(
            f"{name}='counted' requires y to be passed, but the target y is None",
            remedy=f"Call fit(proba, y), or pass {name}='uniform' or one number per class.",
            code="no_labels",
        )
    return prior


def _total(rows: np.ndarray, sample_weight: np.ndarray | None) -> float:
    return float(rows.shape[0] if sample_weight is None else sample_weight.sum())


def _check_label_prior(given: np.ndarray, n_labels: int) -> np.ndarray:
    if given.shape != (n_labels,) or not ((given >= 0) & (given <= 1)).all():
        raise InputError(
            "For multilabel='labelwise' `prior` must hold one probability of yes per label, "
            f"{n_labels} numbers from 0 to 1",
            f"it has shape {given.shape} and spans {np.min(given, initial=np.inf):g} to "
            f"{np.max(given, initial=-np.inf):g}",
            "Pass the frequency of each label.",
            value=given,
            code="parameter",
        )
    return given


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
    >>> from altnorm.method.reference import shrink_frequencies
    >>> shrink_frequencies(np.array([0.6, 0.4]), n_rows=10)
    array([0.5, 0.5])
    >>> shrink_frequencies(np.array([0.6, 0.4]), n_rows=1000).round(3)
    array([0.598, 0.402])
    """
    uniform = 1.0 / frequencies.size
    spread = (n_rows - 1) * float(np.sum((frequencies - uniform) ** 2))
    noise = 1.0 - float(np.sum(frequencies**2))
    share = 1.0 if spread <= noise else noise / spread  # uniform counts have no spread at all
    return share * uniform + (1.0 - share) * frequencies


class Strata(NamedTuple):
    """Weights that give every class its share, whatever the sample's own counts."""

    weight: np.ndarray  # (n,) of each row
    absent: np.ndarray  # (m,) of a sure row for each class without labels


def post_stratify(
    codes: np.ndarray,
    n_classes: int,
    prior: Any,
    *,
    sample_weight: np.ndarray | None = None,
) -> Strata:
    r"""Weight labelled rows so that each class has the share that the prior gives it.

    A row of class c weighs :math:`n \pi_c / n_c`. What is compared with the prior then no longer
    depends on how many rows of a class happen to be in the sample. Without it, a sample of fixed
    class counts leaks: a class that is over-represented in some folds is rare in the others. A
    class without rows is represented by a sure row of its own, so that its absence does not pass
    for under-use.

    The shares :math:`\pi` are the prior's, unless it is one for other data than these (a
    chi-squared test of the counts rejects it): then they are the shrunk class frequencies.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Class of each row.
    n_classes : int
        Number of classes.
    prior : None, "counted", "uniform", "shrunk" or array of shape (n_classes,)
        As for :func:`class_prior`.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows, which the result includes.

    Returns
    -------
    Strata
        Weights of the rows, and of the classes without rows; together they sum to that of `codes`
        where the prior is that of these data.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.method.reference import post_stratify
    >>> strata = post_stratify(np.array([0, 0, 0, 1]), 3, "uniform")
    >>> strata.weight.round(2), strata.absent.round(2)
    (array([0.44, 0.44, 0.44, 1.33]), array([0.  , 0.  , 1.33]))
    """
    weight = np.ones(codes.size) if sample_weight is None else sample_weight
    counts = np.bincount(codes, weight, minlength=n_classes)
    total = counts.sum()
    share = class_prior(codes, n_classes, prior, sample_weight=sample_weight)
    if not _is_compatible(counts, share):
        share = class_prior(codes, n_classes, "shrunk", sample_weight=sample_weight)
    factor = np.divide(total * share, counts, out=np.zeros(n_classes), where=counts > 0)
    return Strata(weight * factor[codes], np.where(counts > 0, 0.0, total * share))


def _is_compatible(counts: np.ndarray, share: np.ndarray) -> bool:
    """Whether class counts can have come from these shares."""
    expected = counts.sum() * share
    if (counts[share == 0] > 0).any():
        return False
    used = expected > 0
    distance = ((counts[used] - expected[used]) ** 2 / expected[used]).sum()
    return bool(chi2.sf(distance, max(1, used.sum() - 1)) > _OTHER_DATA)
