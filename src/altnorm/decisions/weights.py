"""Class weights for a score: the decision is the class of largest weight times probability.

For balanced accuracy the weights are known, the inverse of the class shares. For F-scores they are
found on labels: first one number `s`, weights ``share ** -s``, between accuracy (0) and balanced
accuracy (1); then class by class, as far as the class has labels to support a weight of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

OfCounts = Callable[[np.ndarray], np.ndarray]

EXPONENTS = np.linspace(0, 1, 9)
"""Exponents of the class shares to start from."""

SHRINKAGE = 10.0
"""Rows of a class at which its own weight and the common one count equally."""

UNSEEN = 0.5
"""Rows that a class without labels is taken to have: rarer than any that was seen."""

_MOST_CUTS = 64  # weights tried for a class: more are as good as equal
_SWEEPS = 3  # over the classes; the score hardly rises after the second


def class_shares(labels: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the share of each class among the labels, none of them 0."""
    counts = np.bincount(labels, weight, minlength=n_classes)
    # In units of rows, so that weights which only say how rows compare change nothing.
    counts *= labels.size / weight.sum()
    counts = np.where(counts > 0, counts, UNSEEN)
    return counts / counts.sum()


def balancing_weights(labels: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return Bayes' rule for balanced accuracy: the inverse of the class shares."""
    shares = class_shares(labels, weight, n_classes)
    return shares.max() / shares


def fit_weights(
    proba: np.ndarray, labels: np.ndarray, weight: np.ndarray, of_counts: OfCounts
) -> np.ndarray:
    """Find class weights (m,) that maximise a score of counts on labelled rows.

    `proba` are calibrated, by fits that the rows had no part in; `of_counts` takes hits, predicted
    and true rows of each class, (..., 3 m).
    """
    m = proba.shape[1]
    with np.errstate(divide="ignore"):
        log_p = np.log(proba.astype(np.float64, copy=False))
    shares = class_shares(labels, weight, m)
    counted = np.bincount(labels, weight, minlength=m)
    starts = [-s * np.log(shares) for s in EXPONENTS]
    scores = [_score(log_p + start, labels, weight, of_counts) for start in starts]
    start = starts[int(np.argmax(scores))]
    found, best = start.copy(), max(scores)
    for _ in range(_SWEEPS):
        before = best
        for j in np.argsort(-counted):
            found[j], best = _best_weight(j, log_p, found, labels, weight, of_counts, best)
        if best <= before:
            break
    trust = counted / (counted + SHRINKAGE)
    shrunk = trust * found + (1 - trust) * start
    # Halfway to weights that score better the score may still be lower.
    if _score(log_p + shrunk, labels, weight, of_counts) < max(scores):
        shrunk = start
    return np.exp(shrunk)


def _score(
    scores: np.ndarray, labels: np.ndarray, weight: np.ndarray, of_counts: OfCounts
) -> float:
    m, decided = scores.shape[1], scores.argmax(axis=1)
    hit = decided == labels
    parts = [
        np.bincount(labels[hit], weight[hit], minlength=m),
        np.bincount(decided, weight, minlength=m),
        np.bincount(labels, weight, minlength=m),
    ]
    return float(of_counts(np.concatenate(parts)))


def _best_weight(
    j: int,
    log_p: np.ndarray,
    log_w: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    of_counts: OfCounts,
    best: float,
) -> tuple[float, float]:
    """Return the log-weight of class `j` of best score, given the others', and that score."""
    m = log_w.size
    scores = log_p + log_w
    scores[:, j] = -np.inf
    rival = scores.argmax(axis=1)
    with np.errstate(invalid="ignore"):
        # Class j is decided where its log-weight exceeds this.
        needed = scores[np.arange(labels.size), rival] - log_p[:, j]
    own = np.unique(needed[(labels == j) & np.isfinite(needed)])
    if not own.size:
        return float(log_w[j]), best
    # The score can only rise where a row of the class itself goes over.
    cuts = own[np.linspace(0, own.size - 1, min(own.size, _MOST_CUTS)).astype(int)]
    sums = _sums_at(j, cuts, needed, rival, labels, weight, m)
    found = np.asarray(of_counts(sums))
    top = int(found.argmax())
    if found[top] <= best:
        return float(log_w[j]), best
    above = cuts[top + 1] if top + 1 < cuts.size else cuts[top] + 2e-3
    return float(cuts[top] + min(1e-3, (above - cuts[top]) / 2)), float(found[top])


def _sums_at(
    j: int,
    cuts: np.ndarray,
    needed: np.ndarray,
    rival: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    m: int,
) -> np.ndarray:
    """Hits, predicted and true rows of each class with class `j` taken up to each of the cuts."""
    k = cuts.size
    # Rows of bucket b go over to class j at the cuts b, b + 1, ...; those of bucket k never do.
    bucket = np.searchsorted(cuts, np.nan_to_num(needed, nan=np.inf))
    taken = np.bincount(bucket * m + rival, weight, minlength=(k + 1) * m).reshape(k + 1, m)
    hit = rival == labels
    lost = np.bincount((bucket * m + rival)[hit], weight[hit], minlength=(k + 1) * m)
    is_j = labels == j
    own = np.bincount(bucket[is_j], weight[is_j], minlength=k + 1)
    taken_so_far, lost_so_far = taken.cumsum(axis=0), lost.reshape(k + 1, m).cumsum(axis=0)
    predicted = taken_so_far[-1] - taken_so_far[:k]
    hits = lost_so_far[-1] - lost_so_far[:k]
    predicted[:, j] = taken_so_far[:k].sum(axis=1)
    hits[:, j] = own.cumsum()[:k]
    true = np.broadcast_to(np.bincount(labels, weight, minlength=m), (k, m))
    return np.concatenate([hits, predicted, true], axis=1)
