"""What decisions are really worth, averaged over the labels instead of drawing them."""

from __future__ import annotations

import numpy as np

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "best_balanced",
    "best_f",
    "best_factor",
    "best_macro_f1",
    "f_score",
    "label_log_loss",
    "label_macro_f1",
    "log_loss",
    "macro_f1",
    "mean_cost",
]

ROUNDS = 50


def accuracy(truth: np.ndarray, decided: np.ndarray) -> float:
    """Expected share of right decisions."""
    return float(np.take_along_axis(truth, decided[:, None], axis=1).mean())


def log_loss(truth: np.ndarray, proba: np.ndarray) -> float:
    """Expected log loss; of the truth itself it is the lowest there is."""
    return float(-(truth * np.log(np.maximum(proba, np.finfo(float).eps))).sum(axis=1).mean())


def label_log_loss(truth: np.ndarray, proba: np.ndarray) -> float:
    """Expected log loss of a label, where a row has several."""
    return sum(log_loss(p.ravel()[:, None], q.ravel()[:, None])
               for p, q in ((truth, proba), (1 - truth, 1 - proba)))  # fmt: skip


def mean_cost(truth: np.ndarray, decided: np.ndarray, costs: np.ndarray) -> float:
    """Expected cost of decisions; the last column, if there is one more, leaves a row."""
    return float((truth * costs[:, decided].T).sum(axis=1).mean())


def _hits(truth: np.ndarray, decided: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected hits, shares of the classes and of the decisions."""
    said = np.eye(truth.shape[1])[decided]
    return (truth * said).mean(axis=0), truth.mean(axis=0), said.mean(axis=0)


def balanced_accuracy(truth: np.ndarray, decided: np.ndarray) -> float:
    """Mean over the classes of the expected share of its rows that are found."""
    hits, shares, _ = _hits(truth, decided)
    return float((hits / shares).mean())


def macro_f1(truth: np.ndarray, decided: np.ndarray) -> float:
    """Mean F1 over the classes, a ratio of expected counts: its limit on ever more rows."""
    hits, shares, said = _hits(truth, decided)
    return float((2 * hits / (shares + said)).mean())


def best_balanced(truth: np.ndarray) -> np.ndarray:
    """The decisions of largest balanced accuracy: probability over share."""
    return np.asarray((truth / truth.mean(axis=0)).argmax(axis=1))


def best_macro_f1(truth: np.ndarray) -> np.ndarray:
    r"""The decisions of largest macro-F1 that repeated linearisation finds.

    With hits :math:`h_j`, shares :math:`q_j` and decisions :math:`d_j` the score of a row decided
    as class j changes by :math:`2 p_j / (q_j + d_j) - 2 h_j / (q_j + d_j)^2`; the class of largest
    change is decided, and so on.
    """
    decided = best = best_balanced(truth)
    for _ in range(ROUNDS):
        hits, shares, said = _hits(truth, decided)
        total = shares + said
        decided = (truth / total - hits / total**2).argmax(axis=1)
        if macro_f1(truth, decided) > macro_f1(truth, best):
            best = decided
    return best


def f_score(truth: np.ndarray, decided: np.ndarray, beta: float = 1.0) -> float:
    """F-score of all entries together, of probabilities and decisions (0 or 1) of any shape."""
    hits = float((truth * decided).sum())
    return (1 + beta**2) * hits / (beta**2 * float(truth.sum()) + float(decided.sum()))


def label_macro_f1(truth: np.ndarray, decided: np.ndarray) -> float:
    """Mean F1 over labels, where a row has several."""
    return float(np.mean([f_score(p, d) for p, d in zip(truth.T, decided.T, strict=True)]))


def best_f(p: np.ndarray, beta: float = 1.0) -> np.ndarray:
    """The decisions of largest F-score: those above the best score over 1 + beta^2."""
    return (p * best_factor(p, beta) > 1 - p) * 1


def best_factor(p: np.ndarray, beta: float = 1.0) -> float:
    """What odds must be multiplied by, so that deciding at a half has the largest F-score."""
    falling = -np.sort(-p, axis=None)
    said = np.arange(1, falling.size + 1)
    scores = (1 + beta**2) * falling.cumsum() / (beta**2 * falling.sum() + said)
    threshold = scores.max() / (1 + beta**2)
    return float((1 - threshold) / threshold)
