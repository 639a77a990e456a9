"""From multi-label probabilities to labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from altnorm._base.errors import InputError
from altnorm._base.labels import check_label_proba, check_pair
from altnorm._base.validation import check_positive

RULES = ("threshold", "argmax_or_threshold", "none_below")


def decide(
    proba: Any,
    *,
    decision: str = "threshold",
    threshold: float = 0.5,
    none_threshold: float | None = None,
) -> np.ndarray:
    """Turn multi-label probabilities into 0/1 decisions.

    Parameters
    ----------
    proba : array-like of shape (n_samples, n_labels)
        The probability of each label, in [0, 1]; rows need not sum to 1.
    decision : {"threshold", "argmax_or_threshold", "none_below"}, default="threshold"
        "threshold": the labels above `threshold`. "argmax_or_threshold": these and the most
        probable label, so that no row stays empty (ultra-fine entity typing). "none_below": the
        labels above `threshold`; where there are none, the most probable label if it exceeds
        `none_threshold`, else no label (DialogRE).
    threshold : float, default=0.5
        A label is chosen if its probability is greater than this.
    none_threshold : float, optional
        The second threshold, often called T2; see `tune_none_threshold`.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), dtype int8
        1 for the labels chosen. Among equal probabilities the first counts as the largest.

    Examples
    --------
    >>> from altnorm.evidence.metrics import decide
    >>> proba = [[0.7, 0.6, 0.1], [0.4, 0.2, 0.1], [0.1, 0.2, 0.1]]
    >>> decide(proba).tolist()
    [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    >>> decide(proba, decision="argmax_or_threshold").tolist()
    [[1, 1, 0], [1, 0, 0], [0, 1, 0]]
    >>> decide(proba, decision="none_below", none_threshold=0.3).tolist()
    [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    values = check_label_proba(proba)
    if decision not in RULES:
        raise InputError(
            f"`decision` must be one of {RULES}",
            f"it is {decision!r}",
            "Pass decision='threshold'.",
            value=decision,
            code="parameter",
        )
    chosen = values > check_positive(threshold, "threshold", zero=True)
    if decision == "threshold":
        return chosen.astype(np.int8)
    rows, top = np.arange(values.shape[0]), values.argmax(axis=1)
    if decision == "argmax_or_threshold":
        chosen[rows, top] = True
    else:
        if none_threshold is None:
            raise InputError(
                "decision='none_below' needs `none_threshold`, the probability that the best label "
                "must exceed",
                "it is None",
                "Find one with `tune_none_threshold(proba, y)`.",
                code="parameter",
            )
        limit = check_positive(none_threshold, "none_threshold", zero=True)
        chosen[rows, top] |= ~chosen.any(axis=1) & (values[rows, top] > limit)
    return chosen.astype(np.int8)


def tune_none_threshold(proba: Any, y: Any, *, threshold: float = 0.5) -> float:
    """Find the second threshold of the rule "none_below" that maximises micro-F1, exactly.

    The rows without a label above `threshold` are sorted by their largest probability; micro-F1
    is computed for every possible cut, so no grid is involved.

    Parameters
    ----------
    proba : array-like of shape (n_samples, n_labels)
        The probability of each label.
    y : array-like or sparse matrix of shape (n_samples, n_labels)
        True labels as a 0/1 matrix.
    threshold : float, default=0.5
        The first threshold, as in `decide`.

    Returns
    -------
    float
        The threshold, midway between two probabilities. Where cuts tie, the one that adds the
        fewest labels wins; if none is worth adding, the result is `threshold` itself.

    Examples
    --------
    >>> from altnorm.evidence.metrics import tune_none_threshold
    >>> tune_none_threshold([[0.4, 0.1], [0.1, 0.3], [0.2, 0.1]], [[1, 0], [0, 1], [0, 0]])
    0.25
    """
    values = check_label_proba(proba)
    base = decide(values, threshold=threshold)
    gold, base = check_pair(y.toarray() if issparse(y) else y, base, names=("y", "proba"))
    counts = (np.asarray(v.sum()) for v in (gold * base, base, gold))
    hits, predicted, true = (float(v) for v in counts)
    best = values.max(axis=1)
    rows = np.flatnonzero((best <= threshold) & (best > 0))
    rows = rows[np.argsort(-best[rows], kind="stable")]
    level = best[rows]
    hit = gold[rows, values[rows].argmax(axis=1)].astype(float)
    # Entry c is the score with the first c rows given their best label.
    added = np.arange(rows.size + 1)
    total = np.maximum(predicted + added + true, 1)  # neither labels nor decisions: F1 is 0
    f1 = 2 * (hits + np.append(0, np.cumsum(hit))) / total
    whole = np.append(True, np.append(level[1:] < level[:-1], True)[: rows.size])
    cut = int(np.argmax(np.where(whole, f1, -1.0)))
    if cut == 0:
        return float(threshold)
    below = level[cut] if cut < rows.size else level.dtype.type(0)
    middle = below + (level[cut - 1] - below) / 2
    return float(middle if middle < level[cut - 1] else below)
