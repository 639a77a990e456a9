"""What the figures show, as numbers: computed here once, drawn by the displays and the report.

Decisions are class codes (n,), the number of classes for a row that is left to a person; or 0/1
matrices (n, m) in multi-label problems.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from altnorm.decisions.decision import decision_of
from altnorm.estimator.base import chosen_model
from altnorm.estimator.kinds import FittedModel, kind_of


class ClassChanges(NamedTuple):
    """Changed decisions by true class, or by label, each of shape (m,)."""

    fixed: np.ndarray  # decisions that became right
    broken: np.ndarray  # and wrong


class Reliability(NamedTuple):
    """Mean confidence against the share that is right, in bins of equally many predictions."""

    confidence: np.ndarray
    right: np.ndarray
    n_rows: np.ndarray
    error: float  # expected calibration error: mean distance of the two, weighted by the counts


def class_changes(old: np.ndarray, new: np.ndarray, m: int, truth: np.ndarray) -> ClassChanges:
    """Count the decisions that became right and wrong."""
    if old.ndim == 2:
        return ClassChanges(*(((old != new) & (side == truth)).sum(axis=0) for side in (new, old)))
    moved = (old != new) & (new < m)  # a row that is left to a person is neither right nor wrong
    sides = (truth[moved & (side == truth)] for side in (new, old))
    return ClassChanges(*(np.bincount(codes, minlength=m) for codes in sides))


def gained_and_lost(old: np.ndarray, new: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Count by class, each (m,), the rows that came to it and that left it."""
    away = m if old.ndim == 1 else 0  # a decision that is not counted
    gained, lost = (count_classes(np.where(old != new, side, away), m) for side in (new, old))
    return gained, lost


def ends(more: np.ndarray, less: np.ndarray, n: int) -> np.ndarray:
    """Classes with changes, the best first; of more than `n`, those at both ends."""
    order = np.lexsort([-more, less - more])
    order = order[(more + less)[order] > 0]
    n_worst = min(n // 2, int((more < less)[order].sum()))
    kept = np.arange(order.size)
    return order[(kept < n - n_worst) | (kept >= max(n, order.size) - n_worst)]


def count_pairs(
    first: np.ndarray, second: np.ndarray, where: np.ndarray
) -> Counter[tuple[int, int]]:
    """Count the rows, among some, that have each two codes."""
    return Counter(zip(first[where].tolist(), second[where].tolist(), strict=True))


def reliability(proba: np.ndarray, truth: np.ndarray, *, n_bins: int = 12) -> Reliability:
    """Compare confidence with the share that is right; every label counts if there are several."""
    confidence = proba.reshape(-1) if truth.ndim == 2 else proba.max(axis=1)
    right = truth.reshape(-1) if truth.ndim == 2 else proba.argmax(axis=1) == truth
    order = np.argsort(confidence, kind="stable")
    # Bins of equal width would leave some nearly empty, and their shares to chance.
    parts = [part for part in np.array_split(order, n_bins) if part.size]
    mean = np.array([confidence[part].mean() for part in parts])
    share = np.array([right[part].mean() for part in parts])
    count = np.array([part.size for part in parts])
    return Reliability(mean, share, count, float(np.average(np.abs(mean - share), weights=count)))


def favoured(model: FittedModel) -> np.ndarray | None:
    """Factor by which a fitted transformer favours each class, 1 on average; None if it has none.

    It is that of a bias and of a decision's weights (of odds and thresholds, with several labels).
    What other methods do to a class depends on the row, and a matrix favours pairs of classes.
    """
    chosen, mixture = chosen_model(model), getattr(model, "mixture_", None)
    log_f = np.zeros(len(model.classes_))
    is_corrected = mixture is None or mixture.needs_correction
    if is_corrected and hasattr(chosen, "bias_") and not hasattr(chosen, "matrix_"):
        log_f = log_f + chosen.bias_
    decision = decision_of(model)
    if decision.kind == "weights":
        log_f = log_f + np.log(decision.values)
    elif decision.kind == "thresholds":
        log_f = log_f + np.log1p(-decision.values) - np.log(decision.values)
    log_f -= 0.0 if kind_of(model).is_multilabel else log_f.mean()
    return None if np.allclose(log_f, 0, atol=1e-6) else np.exp(log_f)


def count_classes(codes: np.ndarray, m: int) -> np.ndarray:
    """Rows of each class, or with each label; one that is left to a person is of none."""
    return codes.sum(axis=0) if codes.ndim == 2 else np.bincount(codes, minlength=m + 1)[:m]


def recalls(truth: np.ndarray, decided: np.ndarray, m: int) -> np.ndarray:
    """Share of the rows of each class that is recognised, (m,); NaN without rows."""
    one_class = truth.ndim == 1
    hits = count_classes(truth[decided == truth] if one_class else decided * truth, m)
    n = count_classes(truth, m)
    return np.divide(hits, n, out=np.full(m, np.nan), where=n > 0)
