"""Loose F1 of label sets, the scores of entity typing."""

from __future__ import annotations

import numpy as np

__all__ = ["loose_macro_f1", "loose_micro_f1"]


def loose_macro_f1(labels: np.ndarray, pred: np.ndarray) -> float:
    r"""Loose macro-averaged F1.

    Precision is averaged over the rows with a predicted label, recall over the rows with a true
    one, and the two averages are combined [1]_:

    .. math::
        P = \operatorname{mean}_{i: |\hat Y_i| > 0} \frac{|Y_i \cap \hat Y_i|}{|\hat Y_i|}, \quad
        R = \operatorname{mean}_{i: |Y_i| > 0} \frac{|Y_i \cap \hat Y_i|}{|Y_i|}, \quad
        F = \frac{2 P R}{P + R}

    Parameters
    ----------
    labels, pred : ndarray of shape (n, m)
        True and predicted labels as 0/1 matrices.

    Returns
    -------
    float
        The score; 0 where nothing is predicted or nothing is true.

    References
    ----------
    .. [1] X. Ling, D. S. Weld, "Fine-Grained Entity Recognition", AAAI 2012.
    """
    hits, predicted, true = (v.sum(axis=1, dtype=float) for v in (labels * pred, pred, labels))
    if not hits.any():
        return 0.0
    precision, recall = (np.mean(hits[v > 0] / v[v > 0]) for v in (predicted, true))
    return float(2 * precision * recall / (precision + recall))


def loose_micro_f1(labels: np.ndarray, pred: np.ndarray) -> float:
    """Loose micro-averaged F1: hits, predicted and true labels are summed over all rows."""
    hits, predicted, true = (v.sum(dtype=float) for v in (labels * pred, pred, labels))
    return float(2 * hits / (predicted + true)) if hits else 0.0
