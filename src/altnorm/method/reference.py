"""Which rows serve as reference, how much each counts, and the class prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from altnorm._base.errors import InputError, shown
from altnorm._base.validation import check_choice, check_prior

Prior = ArrayLike | None  # one of `PRIORS`, or numbers

REFERENCES = ("confident", "all")
PRIORS = ("counted", "uniform", "shrunk")
_OTHER_DATA = 1e-3  # p-value below which a prior is taken to be one for other data


def reference_mask(ambiguity: np.ndarray, threshold: float, reference: str) -> np.ndarray:
    """Say which validation rows, or entries, serve as reference; "confident" is the paper's way."""
    if reference == "all":
        return np.ones(ambiguity.shape, dtype=bool)
    confident = ambiguity <= threshold
    if not confident.any():
        rule, lowest = "The reference must have at least one row", float(ambiguity.min())
        offender = f"none of {ambiguity.size} has an ambiguity of at most `threshold` "
        offender += f"{threshold:g}, the lowest is {lowest:.3g}"
        remedy = "Raise `threshold`, or pass reference='all'."
        raise InputError(rule, offender, remedy, value=lowest, code="no_reference")
    return confident


def merge_entries(p: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Merge equal entries, (n,), into one of their total weight; None where each counts once."""
    distinct, inverse = np.unique(p, return_inverse=True)
    if distinct.size == p.size:
        return p, weight  # in their own order, so that sums round as before
    return distinct, np.bincount(inverse, weights=weight).astype(np.float64)


def class_prior(
    codes: np.ndarray | None, n_classes: int, prior: Prior, weight: np.ndarray | None
) -> np.ndarray:
    """Return the class prior that a setting stands for, given class codes.

    "counted": the class frequencies; None the same, or uniform without labels. "shrunk": these
    shrunk towards uniform; uniform without labels. An array is divided by its sum.
    """
    kind = _prior_kind(codes, prior)
    if kind == "given":
        return check_prior(prior, np.empty((0, n_classes)))
    if codes is None or kind == "uniform":
        return np.full(n_classes, 1.0 / n_classes)
    counts = np.bincount(codes, weights=weight, minlength=n_classes).astype(np.float64)
    total = counts.sum()
    return counts / total if kind == "counted" else shrink_frequencies(counts / total, total)


def label_prior(
    labels: np.ndarray | None, n_labels: int, prior: Prior, weight: np.ndarray | None
) -> np.ndarray:
    """Return the prior probability of each of several labels, each on its own.

    As `class_prior`, but "uniform" is 0.5; "shrunk" counts one more row, of the average label, so
    that no label is impossible; an array holds probabilities.
    """
    kind = _prior_kind(labels, prior)
    if kind == "given":
        return _check_label_prior(np.asarray(prior, dtype=np.float64), n_labels)
    if labels is None or kind == "uniform":
        return np.full(n_labels, 0.5)
    frequencies = np.average(labels, axis=0, weights=weight)
    if kind == "counted":
        return frequencies
    n_rows = len(labels) if weight is None else weight.sum()
    return (n_rows * frequencies + frequencies.mean()) / (n_rows + 1)


def _prior_kind(labels: np.ndarray | None, prior: Prior) -> str:
    """One of `PRIORS`, or "given" for numbers."""
    if prior is None:
        return "uniform" if labels is None else "counted"
    if not isinstance(prior, str):
        return "given"
    check_choice(prior, "prior", (None, *PRIORS))
    if prior == "counted" and labels is None:
        rule = "prior='counted' requires y to be passed, but the target y is None"
        remedy = "Call fit(proba, y), or pass prior='uniform' or one number per class."
        raise InputError(rule, remedy=remedy, code="no_labels")
    return prior


def _check_label_prior(prior: np.ndarray, n_labels: int) -> np.ndarray:
    if prior.shape != (n_labels,) or not ((prior >= 0) & (prior <= 1)).all():
        rule = "For multilabel='labelwise' `prior` must hold one probability of yes per label, "
        rule += f"{n_labels} numbers from 0 to 1"
        offender, remedy = f"it is {shown(prior.tolist())}", "Pass the frequency of each label."
        raise InputError(rule, offender, remedy, value=prior, code="parameter")
    return prior


def shrink_frequencies(frequencies: np.ndarray, n_rows: float) -> np.ndarray:
    """Shrink counted class frequencies towards uniform, as far as counting noise explains them.

    The James-Stein estimator of Hausser and Strimmer (Entropy inference and the James-Stein
    estimator, JMLR 2009): what noise alone could have produced becomes uniform.
    """
    uniform = 1.0 / frequencies.size
    spread = (n_rows - 1) * float(np.sum((frequencies - uniform) ** 2))
    noise = 1.0 - float(np.sum(frequencies**2))
    share = 1.0 if spread <= noise else noise / spread  # uniform counts have no spread at all
    return share * uniform + (1.0 - share) * frequencies


class Strata(NamedTuple):
    """Weights that give every class its share, and the prior."""

    weight: np.ndarray  # (n,) of each row
    absent: np.ndarray  # (m,) of a sure row for each class without labels
    prior: np.ndarray


def post_stratify(codes: np.ndarray, n_classes: int, prior: Prior, weight: np.ndarray) -> Strata:
    """Weight labelled rows so that each class has the share that the prior gives it.

    Otherwise a sample of fixed class counts leaks: a class that is over-represented in some folds
    is rare in the others. A class without rows is represented by a sure row of its own, so that
    its absence is not taken for under-use. Where a chi-squared test of the counts rejects the
    prior, it is one for other data, and the shares are the shrunk class frequencies.
    """
    counts = np.bincount(codes, weight, minlength=n_classes)
    total = counts.sum()
    resolved = share = class_prior(codes, n_classes, prior, weight)
    if not _is_compatible(counts, share):
        share = class_prior(codes, n_classes, "shrunk", weight)
    factor = np.divide(total * share, counts, out=np.zeros(n_classes), where=counts > 0)
    return Strata(weight * factor[codes], np.where(counts > 0, 0.0, total * share), resolved)


def _is_compatible(counts: np.ndarray, share: np.ndarray) -> bool:
    """Whether class counts can have come from these shares."""
    expected = counts.sum() * share
    if (counts[share == 0] > 0).any():
        return False
    used = expected > 0
    distance = ((counts[used] - expected[used]) ** 2 / expected[used]).sum()
    return bool(chi2.sf(distance, max(1, used.sum() - 1)) > _OTHER_DATA)
