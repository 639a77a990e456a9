"""What a score is made of: averages over rows, or functions of counts that add up over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from altnorm._base.errors import InputError


class FBeta(NamedTuple):
    """Which F-score: how much more recall counts than precision, and over what it is taken."""

    beta: float
    average: str  # "macro", "micro", "weighted", or "binary" for one class
    positive: int = 1  # the class of "binary"


@dataclass(frozen=True)
class Score:
    """A score, larger is better, and how it is put together from the rows.

    Exactly one of `per_row`, `counts` (with `of_counts`) and `function` is set.

    Attributes
    ----------
    name : str
        Name of the score.
    needs : {"labels", "proba"}
        Whether predictions are decisions (class codes, or a 0/1 matrix) or probabilities.
    per_row : callable or None
        ``per_row(y_true, pred)``, shape (n,): the score is the (weighted) average of these.
    counts : callable or None
        ``counts(y_true, pred, n_classes)``, shape (n, k), dense or sparse: the score depends on
        their (weighted) sum over the rows only. Without a number of classes, those that occur
        are counted.
    of_counts : callable or None
        The score as a function of these sums, shape (..., k) to shape (...).
    function : callable or None
        ``function(y_true, pred, sample_weight)``: any other score.
    in_points : bool
        Whether differences are told in points (hundredths).
    f_beta : FBeta or None
        Which F-score it is, if it is one.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.evidence.metrics import resolve_scoring
    >>> accuracy = resolve_scoring("accuracy")
    >>> accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]), sample_weight=[1, 1, 2])
    0.5
    """

    name: str
    needs: Literal["labels", "proba"]
    per_row: Callable[[Any, Any], np.ndarray] | None = None
    counts: Callable[..., Any] | None = None
    of_counts: Callable[[np.ndarray], np.ndarray] | None = None
    function: Callable[[Any, Any, Any], float] | None = None
    in_points: bool = True
    f_beta: FBeta | None = None

    def __call__(self, y_true: Any, pred: Any, sample_weight: Any = None) -> float:
        """Return the score of `pred`, given as `needs` says, against `y_true`."""
        if self.per_row is not None:
            return float(np.average(self.per_row(y_true, pred), weights=sample_weight))
        if self.counts is not None and self.of_counts is not None:
            counts = self.counts(y_true, pred)
            weight = np.ones(counts.shape[0]) if sample_weight is None else sample_weight
            return float(self.of_counts(np.asarray(weight, dtype=float) @ counts))
        if self.function is None:
            raise InputError(
                f"The score {self.name!r} has no formula",
                remedy="Set `function`.",
                code="parameter",
            )
        return float(self.function(y_true, pred, sample_weight))


def ratio(part: Any, whole: Any) -> np.ndarray:
    """``part / whole``, and 0 where `whole` is 0."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) != 0)


# Scores of single rows: labels are class codes (n,) or a 0/1 matrix (n, m).


def _correct(y: np.ndarray, pred: np.ndarray) -> np.ndarray:
    same = y == pred
    return (same if y.ndim == 1 else same.all(axis=1)).astype(float)


def _in_top_k(y: np.ndarray, proba: np.ndarray, k: int = 2) -> np.ndarray:
    """Whether the true class is among the `k` largest; ties go to the last, as in scikit-learn."""
    own = proba[np.arange(y.size), y][:, None]
    tied_ahead = (proba == own) & (np.arange(proba.shape[1]) > y[:, None])
    return (((proba > own) | tied_ahead).sum(axis=1) < k).astype(float)


def _log_proba(y: np.ndarray, proba: np.ndarray) -> np.ndarray:
    own = proba[np.arange(len(y)), y][:, None] if y.ndim == 1 else np.where(y, proba, 1 - proba)
    # As in scikit-learn: one zero must not decide the mean over all rows.
    return np.log(np.clip(own, np.finfo(proba.dtype).eps, 1)).mean(axis=1, dtype=float)


def _neg_brier(y: np.ndarray, proba: np.ndarray) -> np.ndarray:
    n, m = proba.shape
    if y.ndim == 2:
        return -((proba - y) ** 2).mean(axis=1, dtype=float)
    distance = (proba**2).sum(axis=1, dtype=float) - 2 * proba[np.arange(n), y] + 1
    return -distance / (2 if m == 2 else 1)  # scikit-learn's scaling


def _row_f1(y: Any, pred: Any) -> np.ndarray:
    return micro_f1(row_counts(y, pred))


# Counts that add up over rows, and scores of their sums.


def row_counts(y: Any, pred: Any, n_classes: int | None = None) -> np.ndarray:
    """Hits, predicted and true labels of each row, shape (n, 3)."""
    return np.stack([np.asarray(v.sum(axis=1)) for v in (y * pred, pred, y)], axis=1).astype(float)


def _class_counts(y: np.ndarray, pred: np.ndarray, n_classes: int | None = None) -> csr_array:
    """Hit, predicted and true class of each row as 0/1 columns, shape (n, 3 m)."""
    if y.ndim == 1:
        # A binary score asks about the second class also where no row has it.
        m = 1 + max(1, y.max(), pred.max()) if n_classes is None else n_classes
        # Sparse: three entries per row, where a dense matrix would hold 3 m.
        y, pred = (
            csr_array((np.ones(v.size), (np.arange(v.size), v)), (v.size, m)) for v in (y, pred)
        )
    y, pred = csr_array(y, dtype=float), csr_array(pred, dtype=float)
    return csr_array(hstack([y * pred, pred, y], format="csr"))


def micro_f1(sums: np.ndarray) -> np.ndarray:
    """F1 of sums over all decisions."""
    return ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def _f_of_sums(sums: np.ndarray, beta: float) -> tuple[np.ndarray, ...]:
    """F of each class, its predicted and its true rows."""
    hits, predicted, true = np.split(sums, 3, axis=-1)
    return ratio((1 + beta**2) * hits, beta**2 * true + predicted), predicted, true


def _macro_f(sums: np.ndarray, *, beta: float, positive: int) -> np.ndarray:
    """Mean over all labels, as in scikit-learn."""
    return _f_of_sums(sums, beta)[0].mean(axis=-1)


def _macro_f_present(sums: np.ndarray, *, beta: float, positive: int) -> np.ndarray:
    """Mean over the classes that occur among true or predicted ones, as in scikit-learn."""
    f, predicted, true = _f_of_sums(sums, beta)
    return ratio(f.sum(axis=-1), (predicted + true > 0).sum(axis=-1))


def _weighted_f(sums: np.ndarray, *, beta: float, positive: int) -> np.ndarray:
    f, _, true = _f_of_sums(sums, beta)
    return ratio((true * f).sum(axis=-1), true.sum(axis=-1))


def _micro_f(sums: np.ndarray, *, beta: float, positive: int) -> np.ndarray:
    return _f_of_sums(sums, beta)[0][..., 0]


def _one_class_f(sums: np.ndarray, *, beta: float, positive: int) -> np.ndarray:
    return _f_of_sums(sums, beta)[0][..., positive]


_SINGLE_F = {"macro": _macro_f_present, "weighted": _weighted_f, "binary": _one_class_f}
_MULTI_F = {"macro": _macro_f, "weighted": _weighted_f, "micro": _micro_f}


def f_score(name: str, f_beta: FBeta, *, multilabel: bool) -> Score | None:
    """Return an F-score, or None where that average is not for this kind of labels."""
    if not multilabel and f_beta.average == "micro":
        return Score(name, "labels", per_row=_correct)  # with one label per row it is accuracy
    formula = (_MULTI_F if multilabel else _SINGLE_F).get(f_beta.average)
    if formula is None:
        return None
    counts = row_counts if f_beta.average == "micro" else _class_counts
    return Score(name, "labels", counts=counts, of_counts=_OfSums(formula, f_beta), f_beta=f_beta)


@dataclass(frozen=True)
class _OfSums:
    """An F-score as a function of sums; equal to its copy, as a `partial` would not be."""

    formula: Callable[..., np.ndarray]
    f_beta: FBeta

    def __call__(self, sums: np.ndarray) -> np.ndarray:
        return self.formula(sums, beta=self.f_beta.beta, positive=self.f_beta.positive)


def cost_score(costs: np.ndarray) -> Score:
    """Return minus the mean cost of decisions (columns) for true classes (rows)."""
    value = partial(_minus_cost, costs=costs)
    return Score("neg_mean_cost", "labels", per_row=value, in_points=False)


def _minus_cost(y: np.ndarray, pred: np.ndarray, *, costs: np.ndarray) -> np.ndarray:
    return -np.asarray(costs[y, pred])


def _balanced_accuracy(sums: np.ndarray) -> np.ndarray:
    hits, _, true = np.split(sums, 3, axis=-1)
    return ratio(ratio(hits, true).sum(axis=-1), (true > 0).sum(axis=-1))


def _matthews(sums: np.ndarray) -> np.ndarray:
    # Shares: differences of squared counts would lose digits.
    hits, predicted, true = np.split(sums / sums.sum(axis=-1, keepdims=True), 3, axis=-1)
    total = true.sum(axis=-1)
    both = hits.sum(axis=-1) * total - (predicted * true).sum(axis=-1)
    spread = [total**2 - (v**2).sum(axis=-1) for v in (predicted, true)]
    scale = np.sqrt(np.maximum(spread[0] * spread[1], 0))
    return np.clip(ratio(both, scale), -1, 1)


NEG_LOG_LOSS = Score("neg_log_loss", "proba", per_row=_log_proba, in_points=False)

_ANY = [
    Score("accuracy", "labels", per_row=_correct),
    NEG_LOG_LOSS,
    Score("neg_brier_score", "proba", per_row=_neg_brier, in_points=False),
]


def _f1_scores(*averages: str, multilabel: bool) -> list[Score]:
    made = [f_score(f"f1_{a}", FBeta(1.0, a), multilabel=multilabel) for a in averages]
    return [score for score in made if score is not None]


def _by_name(*scores: Score) -> dict[str, Score]:
    return {score.name: score for score in scores}


SINGLE_LABEL = _by_name(
    *_ANY,
    *_f1_scores("micro", "macro", "weighted", multilabel=False),
    Score("top_k_accuracy", "proba", per_row=_in_top_k),
    Score("balanced_accuracy", "labels", counts=_class_counts, of_counts=_balanced_accuracy),
    Score("matthews_corrcoef", "labels", counts=_class_counts, of_counts=_matthews),
)


MULTI_LABEL = _by_name(
    *_ANY,
    *_f1_scores("micro", "macro", "weighted", multilabel=True),
    Score("subset_accuracy", "labels", per_row=_correct),
    Score("f1_samples", "labels", per_row=_row_f1),
)


SCORES = {False: SINGLE_LABEL, True: MULTI_LABEL}
"""Scores by name, for one class per row and for several labels per row."""
