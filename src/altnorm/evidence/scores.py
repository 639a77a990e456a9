"""Scores, and what a paired test needs to know of them.

A score is an average over rows, or a function of counts that add up over rows, or neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import f1_score, fbeta_score, get_scorer, get_scorer_names

from altnorm._base.errors import InputError
from altnorm.estimator.kinds import kind_of_labels


class FBeta(NamedTuple):
    """Which F-score: how much more recall counts than precision, and over what it is taken."""

    beta: float
    average: str  # "macro", "micro", "weighted", or "binary" for one class
    positive: int = 1  # the class of "binary"


@dataclass(frozen=True)
class Score:
    """A score, larger is better, and how it is put together from the rows.

    Exactly one of `per_row`, `counts` (with `of_counts`) and `function` is set.
    """

    name: str
    needs: Literal["labels", "proba"]  # decisions (class codes, or a 0/1 matrix), or probabilities
    # Of (y_true, pred), shape (n,): the score is the (weighted) average of these.
    per_row: Callable[[Any, Any], np.ndarray] | None = None
    # Of (y_true, pred, n_classes), shape (n, k), dense or sparse: the score depends on their
    # (weighted) sum over the rows only. Without a number of classes, those that occur are counted.
    counts: Callable[..., Any] | None = None
    of_counts: Callable[[np.ndarray], np.ndarray] | None = None  # of these sums, (..., k) to (...)
    function: Callable[[Any, Any, Any], float] | None = None  # of (y_true, pred, sample_weight)
    in_points: bool = True  # whether differences are told in points (hundredths)
    f_beta: FBeta | None = None  # which F-score it is, if it is one

    def __call__(self, y_true: Any, pred: Any, sample_weight: Any = None) -> float:
        """Return the score of `pred`, given as `needs` says, against `y_true`."""
        if self.per_row is not None:
            return float(np.average(self.per_row(y_true, pred), weights=sample_weight))
        if self.counts is not None and self.of_counts is not None:
            counts = self.counts(y_true, pred)
            weight = np.ones(counts.shape[0]) if sample_weight is None else sample_weight
            return float(self.of_counts(np.asarray(weight, dtype=float) @ counts))
        assert self.function is not None
        return float(self.function(y_true, pred, sample_weight))


def ratio(part: Any, total: Any) -> np.ndarray:
    """``part / total``, and 0 where `total` is 0."""
    return np.divide(part, total, out=np.zeros(np.shape(total)), where=np.asarray(total) != 0)


# Scores of single rows: labels are class codes (n,) or a 0/1 matrix (n, m).


def _correct(y: np.ndarray, pred: np.ndarray) -> np.ndarray:
    same = y == pred
    return (same if y.ndim == 1 else same.all(axis=1)).astype(float)


def _in_top_k(y: np.ndarray, proba: np.ndarray, k: int = 2) -> np.ndarray:
    """Whether the true class is among the `k` largest; ties go to the last, as in scikit-learn."""
    of_true = proba[np.arange(y.size), y][:, None]
    tied_ahead = (proba == of_true) & (np.arange(proba.shape[1]) > y[:, None])
    return (((proba > of_true) | tied_ahead).sum(axis=1) < k).astype(float)


def _log_proba(y: np.ndarray, proba: np.ndarray) -> np.ndarray:
    several = y.ndim == 2
    of_true = np.where(y, proba, 1 - proba) if several else proba[np.arange(len(y)), y][:, None]
    # As in scikit-learn: one zero must not decide the mean over all rows.
    return np.log(np.clip(of_true, np.finfo(proba.dtype).eps, 1)).mean(axis=1, dtype=float)


def _neg_brier(y: np.ndarray, proba: np.ndarray) -> np.ndarray:
    n, m = proba.shape
    if y.ndim == 2:
        return -((proba - y) ** 2).mean(axis=1, dtype=float)
    distance = (proba**2).sum(axis=1, dtype=float) - 2 * proba[np.arange(n), y] + 1
    return -distance / (2 if m == 2 else 1)  # scikit-learn's scaling


def _row_f1(y: Any, pred: Any) -> np.ndarray:
    return _f_of_sums(_row_counts(y, pred), f_beta=FBeta(1.0, "micro"), multilabel=True)


# Counts that add up over rows, and scores of their sums.


def _row_counts(y: Any, pred: Any, n_classes: int | None = None) -> np.ndarray:
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


def _f_of_sums(sums: np.ndarray, *, f_beta: FBeta, multilabel: bool) -> np.ndarray:
    """An F-score as a function of sums, as in scikit-learn."""
    hits, predicted, true = np.split(sums, 3, axis=-1)
    square, average = f_beta.beta**2, f_beta.average
    f = ratio((1 + square) * hits, square * true + predicted)
    if average in ("binary", "micro"):
        return np.asarray(f[..., f_beta.positive if average == "binary" else 0])
    if average == "weighted":
        return ratio((true * f).sum(axis=-1), true.sum(axis=-1))
    if multilabel:
        return np.asarray(f.mean(axis=-1))
    # Over the classes that occur among true or predicted ones.
    return ratio(f.sum(axis=-1), (predicted + true > 0).sum(axis=-1))


def f_score(name: str, f_beta: FBeta, *, multilabel: bool) -> Score | None:
    """Return an F-score, or None where that average is not for this kind of labels."""
    if not multilabel and f_beta.average == "micro":
        return Score(name, "labels", per_row=_correct)  # with one label per row it is accuracy
    if f_beta.average not in ("macro", "weighted", "micro" if multilabel else "binary"):
        return None
    counts: Callable[..., Any] = _row_counts if f_beta.average == "micro" else _class_counts
    formula = partial(_f_of_sums, f_beta=f_beta, multilabel=multilabel)
    return Score(name, "labels", counts=counts, of_counts=formula, f_beta=f_beta)


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
    covariance = hits.sum(axis=-1) * total - (predicted * true).sum(axis=-1)
    spread = [total**2 - (v**2).sum(axis=-1) for v in (predicted, true)]
    scale = np.sqrt(np.maximum(spread[0] * spread[1], 0))
    return np.clip(ratio(covariance, scale), -1, 1)


NEG_LOG_LOSS = Score("neg_log_loss", "proba", per_row=_log_proba, in_points=False)
_ANY = [
    Score("accuracy", "labels", per_row=_correct),
    NEG_LOG_LOSS,
    Score("neg_brier_score", "proba", per_row=_neg_brier, in_points=False),
]


def _by_name(multilabel: bool, *special: Score) -> dict[str, Score]:
    averages = ("micro", "macro", "weighted")
    f1 = [f_score(f"f1_{a}", FBeta(1.0, a), multilabel=multilabel) for a in averages]
    return {score.name: score for score in (*_ANY, *f1, *special) if score is not None}


SINGLE_LABEL = _by_name(
    False,
    Score("top_k_accuracy", "proba", per_row=_in_top_k),
    Score("balanced_accuracy", "labels", counts=_class_counts, of_counts=_balanced_accuracy),
    Score("matthews_corrcoef", "labels", counts=_class_counts, of_counts=_matthews),
)
MULTI_LABEL = _by_name(
    True,
    Score("subset_accuracy", "labels", per_row=_correct),
    Score("f1_samples", "labels", per_row=_row_f1),
)
SCORES = {False: SINGLE_LABEL, True: MULTI_LABEL}  # by name, for each kind of labels
# Scores of scikit-learn that are shares: differences are told in points.
_SHARES = ("f1", "precision", "recall", "jaccard", "roc_auc", "average_precision")


def resolve_scoring(
    scoring: Any, multilabel: bool = False, *, classes: np.ndarray | None = None
) -> Score:
    """Return the `Score` that a name or a scikit-learn scorer stands for.

    That is one of `SCORES`, any other that scikit-learn knows, or a scorer
    ``scorer(estimator, X, y)``, which sees `classes` in place of the class codes. None is
    "accuracy", or "f1_micro" with several labels, where "accuracy" would count only the rows with
    every label right.
    """
    if isinstance(scoring, Score):
        return scoring
    if scoring is None:
        scoring = kind_of_labels(multilabel).scores[0]
    if isinstance(scoring, str) and scoring in SCORES[multilabel]:
        return SCORES[multilabel][scoring]
    f_beta = _read_f_score(scoring, multilabel, classes)
    if f_beta is not None:
        return f_beta
    if not callable(scoring):
        _check_name(str(scoring), multilabel)
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))
    scorer = get_scorer(scoring)
    _check_classification(scorer, name)
    settings = {"scorer": scorer, "name": name, "multilabel": multilabel, "classes": classes}
    function = partial(_score_with, **settings)
    return Score(name, "proba", function=function, in_points=name.startswith(_SHARES))


_F_NAME = re.compile(r"fbeta=(\d+\.?\d*|\.\d+)(?:_(macro|micro|weighted))?")


def _read_f_score(scoring: Any, multilabel: bool, classes: np.ndarray | None) -> Score | None:
    """Return the F-score that a name, or a scorer of scikit-learn, stands for; else None."""
    options: dict[str, Any] = {}
    if scoring == "f1":
        f_beta, name = FBeta(1.0, "binary"), "f1"
    elif isinstance(scoring, str) and (named := _F_NAME.fullmatch(scoring)):
        f_beta, name = FBeta(float(named[1]), named[2] or "binary"), scoring
    elif (parts := _f_scorer_options(scoring)) is not None:
        name, options = parts
        f_beta = FBeta(float(options.get("beta", 1.0)), options.get("average", "binary"))
        if f_beta.average not in ("binary", None):
            name = f"{name}_{f_beta.average}"
    else:
        return None
    if f_beta.average == "binary" and not multilabel and classes is not None:
        positive = _positive_class(classes, options.get("pos_label"), name)
        if positive is None:
            return None  # scikit-learn says what is wrong
        f_beta = f_beta._replace(positive=positive)
    return f_score(name, f_beta, multilabel=multilabel)


def _f_scorer_options(scorer: Any) -> tuple[str, dict[str, Any]] | None:
    """Name and settings of a scorer of scikit-learn that is an F-score and nothing else."""
    # scikit-learn has no public way to ask a scorer what it scores.
    function, sign = getattr(scorer, "_score_func", None), getattr(scorer, "_sign", 1)
    options: dict[str, Any] = dict(getattr(scorer, "_kwargs", {}))
    # Such as `labels`, the classes that count, and `zero_division`.
    unknown = options.keys() - {"beta", "average", "pos_label"}
    if function not in (f1_score, fbeta_score) or sign != 1 or unknown:
        return None
    return "f1" if function is f1_score else f"fbeta={options.get('beta', 1.0):g}", options


def _positive_class(classes: np.ndarray, asked: Any, name: str) -> int | None:
    """Column of the class that a binary score is about; None if it is not one of them.

    As in scikit-learn it is the class 1, or the second one where no class is called so.
    """
    if classes.size != 2:
        rule = f"The score {name!r} is about one of two classes"
        raise _unsuitable(rule, f"there are {classes.size}", name, f"{name}_macro")
    names = classes.tolist()
    if asked is not None:
        return names.index(asked) if asked in names else None
    return names.index(1) if 1 in names else 1


def _check_name(scoring: str, multilabel: bool) -> None:
    """Raise unless scikit-learn has a score of this name."""
    # It knows some of our names for the other kind, and would score it differently.
    if scoring in SCORES[not multilabel] or scoring not in get_scorer_names():
        names, problem = sorted(SCORES[multilabel]), kind_of_labels(multilabel).words.problem
        near = get_close_matches(scoring, names, 1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        rule = f"`scoring` must be a score for {problem} predictions"
        others = "fbeta=BETA_macro, or another score of scikit-learn"
        remedy = f"{meant}Pass {', '.join(names)}, {others}."
        raise InputError(rule, f"it is {scoring!r}", remedy, value=scoring, code="parameter")


def _check_classification(scorer: Any, name: str) -> None:
    """Raise if scikit-learn's score is for regression or clustering; it may give a number here."""
    module = getattr(getattr(scorer, "_score_func", None), "__module__", "") or ""
    if "regression" in module or "cluster" in module:
        rule = "`scoring` must be a score for classification"
        raise _unsuitable(rule, f"{name!r} is not", name, "accuracy")


def _unsuitable(rule: str, offender: str, value: Any, example: str) -> InputError:
    about = {"parameter": "scoring", "example": example}
    return InputError(rule, offender, value=value, code="parameter", **about)


class _Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier that answers with the predictions it was given."""

    def __init__(self, classes: np.ndarray, labels: np.ndarray, proba: np.ndarray) -> None:
        self.classes_, self.labels_, self.proba_ = classes, labels, proba

    def predict(self, X: Any) -> np.ndarray:
        return self.labels_

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.proba_


def _score_with(
    y_true: np.ndarray,
    proba: np.ndarray,
    sample_weight: Any,
    *,
    scorer: Any,
    name: str,
    multilabel: bool,
    classes: np.ndarray | None,
) -> float:
    if multilabel:  # a matrix of [0, 1] rows is how scikit-learn recognises it
        names, truth = np.tile([0, 1], (proba.shape[1], 1)), y_true
        decided = kind_of_labels(True).decide(proba)
    else:
        names = np.arange(proba.shape[1]) if classes is None else np.asarray(classes)
        truth, decided = names[y_true], names[proba.argmax(axis=1)]
    classifier = _Given(names, decided, proba)
    # Weights that are all the same change no score, and not every scorer takes some.
    weighted = sample_weight is not None and np.ptp(sample_weight) > 0
    options = {"sample_weight": sample_weight} if weighted else {}
    try:
        return float(scorer(classifier, np.zeros((len(proba), 1)), truth, **options))
    except TypeError as error:
        if "sample_weight" not in str(error):
            raise
        rule = "`scoring` must take weights where rows have them"
        offender = f"{name!r} has no parameter `sample_weight`"
        remedy = "Write it as scorer(estimator, X, y, sample_weight=None), or pass no weights."
        raise InputError(rule, offender, remedy, value=scorer, code="parameter") from error
    except ValueError as error:
        reason = str(error).splitlines()[0].split(". ")[0].rstrip(".")
        rule, offender = "`scoring` must suit the labels", f"{name!r} does not: {reason}"
        raise _unsuitable(rule, offender, scorer, "roc_auc_ovr") from error
