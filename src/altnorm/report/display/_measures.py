"""What the figures show, as numbers: computed here once, drawn by the displays and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from altnorm.report.display._records import (
    AmbiguityHistogram,
    ClassChanges,
    ClassUse,
    Flows,
    Reliability,
    TuningCurve,
    TuningCurves,
)


def ambiguity_histogram(
    ambiguity: np.ndarray,
    right_before: np.ndarray | None = None,
    right_after: np.ndarray | None = None,
    *,
    threshold: float | None = None,
    bins: int = 40,
) -> AmbiguityHistogram:
    """Count rows by ambiguity and, with labels, how many are right.

    Parameters
    ----------
    ambiguity : ndarray
        Ambiguity of each row, from 0 to 1.
    right_before, right_after : ndarray of bool, shaped like `ambiguity`, optional
        Which rows, or which decisions of multi-label problems, are right.
    threshold : float, optional
        Rows above it are in doubt.
    bins : int, default=40
        Number of bins.

    Returns
    -------
    AmbiguityHistogram
        The counts.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.report.display._measures import ambiguity_histogram
    >>> ambiguity_histogram(np.array([0.1, 0.2, 0.9]), bins=2).count
    array([2, 1])
    """
    at = np.minimum((np.clip(ambiguity, 0, 1).reshape(-1) * bins).astype(int), bins - 1)

    def count(of: np.ndarray | None) -> np.ndarray | None:
        return None if of is None else np.bincount(at[of.reshape(-1)], minlength=bins)

    total = np.bincount(at, minlength=bins)
    edges = np.linspace(0, 1, bins + 1)
    return AmbiguityHistogram(edges, total, count(right_before), count(right_after), threshold)


def class_use(
    reference: np.ndarray,
    prior: np.ndarray,
    classes: np.ndarray,
    weight: np.ndarray | None = None,
) -> ClassUse:
    """Compare the class prior with the mean of the reference rows.

    Parameters
    ----------
    reference : ndarray of shape (n, m)
        Reference rows.
    prior : ndarray of shape (m,)
        Class prior.
    classes : ndarray of shape (m,)
        Names.
    weight : ndarray of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    ClassUse
        Shares expected and used.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.report.display._measures import class_use
    >>> reference = np.array([[0.9, 0.1], [0.8, 0.2]])
    >>> class_use(reference, np.array([0.5, 0.5]), np.array(["a", "b"])).ratio
    array([1.7, 0.3])
    """
    return ClassUse(classes, np.asarray(prior), np.average(reference, axis=0, weights=weight))


def class_factors(before: np.ndarray, after: np.ndarray, *, relative: bool = False) -> np.ndarray:
    r"""Typical factor by which the adjustment multiplied each class.

    The geometric mean of :math:`p'_{ij} / p_{ij}` over the rows, each weighted by
    :math:`p_{ij}`, so that rows count where the class was a candidate.

    Parameters
    ----------
    before, after : ndarray of shape (n, m)
        Probabilities of the adjusted rows.
    relative : bool, default=False
        Whether to divide by the typical factor of all classes. An exponent other than 1 makes all
        large probabilities smaller or larger; what remains says which classes were preferred.

    Returns
    -------
    ndarray of shape (m,)
        The factors; NaN for a class without any probability.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.report.display._measures import class_factors
    >>> class_factors(np.array([[0.5, 0.5]]), np.array([[0.75, 0.25]]))
    array([1.5, 0.5])
    """
    lives = (before > 0) & (after > 0)  # the logarithm of any other factor is infinite
    ratio = np.divide(after, before, out=np.ones_like(after, dtype=np.float64), where=lives)
    weight = np.where(lives, before, 0.0)
    total = weight.sum(axis=0)
    safe = np.where(total > 0, total, 1.0)
    change = (weight * np.log(ratio)).sum(axis=0)
    average = change.sum() / safe.sum() if relative else 0.0
    return np.where(total > 0, np.exp(change / safe - average), np.nan)


def class_changes(
    old: np.ndarray, new: np.ndarray, m: int, codes: np.ndarray | None = None
) -> ClassChanges:
    """Count changed decisions by class.

    Parameters
    ----------
    old, new : ndarray of int, shape (n,) or (n, m)
        Decisions before and after: class codes, or 0/1 matrices for multi-label problems.
    m : int
        Number of classes.
    codes : ndarray of shape (n,) or (n, m), optional
        The truth, like the decisions.

    Returns
    -------
    ClassChanges
        Rows gained, lost, fixed and broken.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.report.display._measures import class_changes
    >>> changes = class_changes(np.array([0, 0, 1]), np.array([1, 0, 0]), 2, np.array([1, 0, 1]))
    >>> changes.fixed, changes.broken
    (array([0, 1]), array([0, 1]))
    """
    if old.ndim == 2:
        return _label_changes(old > 0, new > 0, codes)
    moved = old != new
    gained, lost = (np.bincount(c[moved], minlength=m) for c in (new, old))
    if codes is None:
        return ClassChanges(gained, lost)
    fixed, broken = (np.bincount(codes[moved & (c == codes)], minlength=m) for c in (new, old))
    return ClassChanges(gained, lost, fixed, broken)


def _label_changes(old: np.ndarray, new: np.ndarray, codes: np.ndarray | None) -> ClassChanges:
    gained, lost = (new & ~old).sum(axis=0), (old & ~new).sum(axis=0)
    if codes is None:
        return ClassChanges(gained, lost)
    truth = codes > 0
    fixed, broken = ((old != new) & (side == truth) for side in (new, old))
    return ClassChanges(gained, lost, fixed.sum(axis=0), broken.sum(axis=0))


def flows(old: np.ndarray, new: np.ndarray, codes: np.ndarray | None = None) -> Flows:
    """Count the rows that moved between each two classes.

    Parameters
    ----------
    old, new : ndarray of int, shape (n,)
        Class codes before and after.
    codes : ndarray of int, shape (n,), optional
        True class codes.

    Returns
    -------
    Flows
        One entry for each pair of classes that rows moved between.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.report.display._measures import flows
    >>> found = flows(np.array([0, 0, 1]), np.array([1, 1, 1]), np.array([1, 0, 1]))
    >>> found.count, found.fixed, found.broken
    (array([2]), array([1]), array([1]))
    """
    moved = np.flatnonzero(old != new)
    pairs, inverse = np.unique(np.stack([old[moved], new[moved]]), axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    n = pairs.shape[1]
    count = np.bincount(inverse, minlength=n)
    order = np.argsort(-count, kind="stable")  # equal flows stay put: the same page each time
    source, target = pairs[:, order]
    if codes is None:
        return Flows(source, target, count[order])
    fixed, broken = (
        np.bincount(inverse, weights=side[moved] == codes[moved], minlength=n).astype(int)[order]
        for side in (new, old)
    )
    return Flows(source, target, count[order], fixed, broken)


def tuning_curves(
    cv_results: Mapping[str, Any], best_params: Mapping[str, Any] | None = None
) -> TuningCurves:
    """Best cross-fitted score at each exponent, for each threshold and depth.

    Parameters
    ----------
    cv_results, best_params : mapping
        As in ``cv_results_`` and ``best_params_`` of an `Adjuster` or `AlternatingNormalizerCV`;
        settings of other families than alternating normalization are left out.

    Returns
    -------
    TuningCurves
        The curves and the best setting.
    """
    family = np.asarray(cv_results.get("family", ["alternating"] * len(cv_results["score"])))
    cv_results = {name: np.asarray(v)[family == "alternating"] for name, v in cv_results.items()}
    alpha, depth, threshold, score = (
        cv_results[name] for name in ("alpha", "depth", "threshold", "score")
    )
    curves = []
    for tau, d in sorted(set(zip(threshold.tolist(), depth.tolist(), strict=True))):
        here = (threshold == tau) & (depth == d)
        exponents = np.unique(alpha[here])
        best = [score[here & (alpha == a)].max() for a in exponents]
        curves.append(TuningCurve(int(d), float(tau), exponents, np.array(best)))
    is_best = cv_results["rank"] == cv_results["rank"].min()
    if best_params and "alpha" in best_params:
        same = [cv_results[name] == value for name, value in best_params.items()]
        is_best = np.logical_and.reduce(same)
    top = int(np.argmax(is_best))
    chosen = {
        name: float(column[top])
        for name, column in zip(
            ("alpha", "depth", "threshold", "score"), (alpha, depth, threshold, score), strict=True
        )
    }
    # The untouched score has no line of its own; all gains are counted from it.
    base = float(score[top] - cv_results["gain"][top])
    return TuningCurves(tuple(curves), base, chosen, score.size)


def reliability(proba: np.ndarray, codes: np.ndarray, *, n_bins: int = 12) -> Reliability:
    """Compare confidence with the share that is right.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Probabilities. The largest of each row counts; in multi-label problems every entry does.
    codes : ndarray of shape (n,) or (n, m)
        True class codes, or a 0/1 matrix for multi-label problems.
    n_bins : int, default=12
        Number of bins, of equally many predictions each.

    Returns
    -------
    Reliability
        Confidence and share that is right, bin by bin, and the expected calibration error.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.report.display._measures import reliability
    >>> found = reliability(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]), n_bins=2)
    >>> found.confidence, found.right, round(found.error, 2)
    (array([0.6, 0.9]), array([0., 1.]), 0.35)
    """
    confidence = proba.reshape(-1) if codes.ndim == 2 else proba.max(axis=1)
    right = codes.reshape(-1) if codes.ndim == 2 else proba.argmax(axis=1) == codes
    order = np.argsort(confidence, kind="stable")
    # Bins of equal width would leave some nearly empty, and their shares to chance.
    parts = [part for part in np.array_split(order, n_bins) if part.size]
    mean = np.array([confidence[part].mean() for part in parts])
    share = np.array([right[part].mean() for part in parts])
    count = np.array([part.size for part in parts])
    error = float(np.average(np.abs(mean - share), weights=count))
    histogram, _ = np.histogram(confidence, bins=20, range=(0, 1))
    return Reliability(mean, share, count, error, histogram)
