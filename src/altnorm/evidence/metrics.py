"""Any score in a form that one can resample.

What scikit-learn has is used from there. A `Score` adds what a paired test needs to know: whether
a score is an average over rows, or a function of counts that add up over rows, or neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import f1_score, fbeta_score, get_scorer, get_scorer_names

from altnorm._base.errors import InputError
from altnorm.evidence.scores import SCORES, FBeta, Score, f_score
from altnorm.method.kinds import kind_of_labels

# Scores of scikit-learn that are shares: differences are told in points.
_SHARES = ("f1", "precision", "recall", "jaccard", "roc_auc", "average_precision")


def resolve_scoring(
    scoring: Any, multilabel: bool = False, *, classes: np.ndarray | None = None
) -> Score:
    """Return the `Score` that a name or a scikit-learn scorer stands for.

    Parameters
    ----------
    scoring : str, callable, Score or None
        A name, such as "accuracy", "f1_macro" or "neg_log_loss"; any other
        name scikit-learn knows; or a scorer ``scorer(estimator, X, y)``. None is the natural
        score: "accuracy", or "f1_micro" for multi-label problems, where "accuracy" would count
        only the rows with every label right.
    multilabel : bool, default=False
        Whether labels are 0/1 matrices; otherwise they are class codes 0 .. m-1. Log-loss and
        Brier score of a multi-label row are averages over its labels.
    classes : ndarray of shape (n_classes,), optional
        What a scikit-learn scorer is to see in place of the class codes.

    Returns
    -------
    Score
        The score. F-scores are recognised, also among scikit-learn's scorers; its other scorers
        need probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import fbeta_score, make_scorer
    >>> from altnorm.evidence.metrics import resolve_scoring
    >>> f2 = resolve_scoring(make_scorer(fbeta_score, beta=2))
    >>> round(f2(np.array([0, 1, 1]), np.array([0, 1, 0])), 4)
    0.5556
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
    known = isinstance(scoring, str) and scoring in get_scorer_names()
    _check_scoring(scoring, multilabel, known=known)
    name = scoring if known else getattr(scoring, "__name__", repr(scoring))
    scorer = get_scorer(scoring)
    _check_classification(scorer, name)
    given = _give_labels if multilabel else partial(_give_classes, classes=classes)
    function = partial(_score_with, scorer=scorer, name=name, given=given)
    return Score(name, "proba", function=function, in_points=name.startswith(_SHARES))


_F_NAME = re.compile(r"fbeta=(\d+\.?\d*|\.\d+)(?:_(macro|micro|weighted))?")


def _read_f_score(scoring: Any, multilabel: bool, classes: np.ndarray | None) -> Score | None:
    """Return the F-score that a name, or a scorer of scikit-learn, stands for; else None."""
    options: dict[str, Any] = {}
    if scoring == "f1":
        found, name = FBeta(1.0, "binary"), "f1"
    elif isinstance(scoring, str) and (named := _F_NAME.fullmatch(scoring)):
        found, name = FBeta(float(named[1]), named[2] or "binary"), scoring
    elif (parts := _f_scorer_options(scoring)) is not None:
        name, options = parts
        found = FBeta(float(options.get("beta", 1.0)), options.get("average", "binary"))
        if found.average not in ("binary", None):
            name = f"{name}_{found.average}"
    else:
        return None
    if found.average == "binary" and not multilabel and classes is not None:
        positive = _positive_class(classes, options.get("pos_label"), name)
        if positive is None:
            return None  # scikit-learn says what is wrong
        found = found._replace(positive=positive)
    return f_score(name, found, multilabel=multilabel)


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
        raise InputError(
            f"The score {name!r} is about one of two classes",
            f"there are {classes.size}",
            f"Pass scoring='{name}_macro'.",
            value=name,
            code="parameter",
        )
    names = classes.tolist()
    if asked is not None:
        return names.index(asked) if asked in names else None
    return names.index(1) if 1 in names else 1


def _check_scoring(scoring: Any, multilabel: bool, *, known: bool) -> None:
    """Raise unless scikit-learn has a score of this name, or it is a scorer."""
    # scikit-learn knows some of our names for the other kind, and would score it differently.
    if isinstance(scoring, str) and (scoring in SCORES[not multilabel] or not known):
        names, problem = sorted(SCORES[multilabel]), kind_of_labels(multilabel).words.problem
        raise InputError(
            f"`scoring` must be a score for {problem} predictions",
            f"it is {scoring!r}",
            f"{_meant(scoring, names)}Pass {', '.join(names)}, a scikit-learn scorer, or a name "
            "that scikit-learn knows.",
            value=scoring,
            code="parameter",
        )
    if not callable(scoring) and not known:
        raise InputError(
            "`scoring` must be a name or a scorer(estimator, X, y)",
            f"it is {scoring!r}",
            "Pass for example scoring='accuracy'.",
            value=scoring,
            code="parameter",
        )


def _meant(scoring: str, names: list[str]) -> str:
    """Guess which name was meant."""
    if scoring == "fbeta":
        return "Say which beta, such as fbeta=2. "
    near = [name for name in names if scoring and name.startswith(scoring)]
    near = near or get_close_matches(scoring, names, 1)
    return f"Did you mean {near[0]!r}? " if near else ""


def _check_classification(scorer: Any, name: str) -> None:
    """Raise if scikit-learn's score is for regression or clustering; it may give a number here."""
    module = getattr(getattr(scorer, "_score_func", None), "__module__", "") or ""
    if "regression" in module or "cluster" in module:
        raise InputError(
            "`scoring` must be a score for classification",
            f"{name!r} is not",
            "Pass for example scoring='accuracy', 'f1_macro' or 'neg_log_loss'.",
            value=name,
            code="parameter",
        )


class _Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier that answers with the predictions it was given."""

    def __init__(self, classes: np.ndarray, labels: np.ndarray, proba: np.ndarray) -> None:
        self.classes_ = classes
        self.labels_ = labels
        self.proba_ = proba

    def predict(self, X: Any) -> np.ndarray:
        return self.labels_

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.proba_


def _give_labels(y_true: np.ndarray, proba: np.ndarray) -> tuple[_Given, np.ndarray]:
    """A classifier of several labels per row, and the labels as it knows them."""
    # A matrix of [0, 1] rows is how scikit-learn recognises such a classifier.
    decided = kind_of_labels(True).decide(proba)
    return _Given(np.tile([0, 1], (proba.shape[1], 1)), decided, proba), y_true


def _give_classes(
    y_true: np.ndarray, proba: np.ndarray, *, classes: np.ndarray | None
) -> tuple[_Given, np.ndarray]:
    """A classifier of one class per row, and the labels as it knows them."""
    names = np.arange(proba.shape[1]) if classes is None else np.asarray(classes)
    return _Given(names, names[np.argmax(proba, axis=1)], proba), names[y_true]


def _score_with(
    y_true: np.ndarray,
    proba: np.ndarray,
    sample_weight: Any,
    *,
    scorer: Any,
    name: str,
    given: Callable[[np.ndarray, np.ndarray], tuple[_Given, np.ndarray]],
) -> float:
    classifier, truth = given(y_true, proba)
    # Weights that are all the same change no score, and not every scorer takes some.
    weighted = sample_weight is not None and np.ptp(sample_weight) > 0
    options = {"sample_weight": sample_weight} if weighted else {}
    try:
        return float(scorer(classifier, np.zeros((len(proba), 1)), truth, **options))
    except TypeError as error:
        if "sample_weight" not in str(error):
            raise
        raise InputError(
            "`scoring` must take weights where rows have them",
            f"{name!r} has no parameter `sample_weight`",
            "Write it as scorer(estimator, X, y, sample_weight=None), or pass no weights.",
            value=scorer,
            code="parameter",
        ) from error
    except ValueError as error:
        raise InputError(
            "`scoring` must suit the labels",
            f"{name!r} does not: {str(error).splitlines()[0].split('. ')[0].rstrip('.')}",
            "Pass for example scoring='accuracy', 'f1_macro' or 'roc_auc_ovr'.",
            value=scorer,
            code="parameter",
        ) from error
