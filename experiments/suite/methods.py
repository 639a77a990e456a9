"""What is fitted on each classifier: ours, without its parts, and what others would do."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, peers
from altnorm.families import LabelwiseScaling
from experiments._methods import SMALL_MENU
from experiments.benchmark.methods import METHODS, Labelled, Method, floored
from experiments.suite.files import Classifier

__all__ = [
    "ADJUSTER",
    "FEW_LABELS_METHODS",
    "FEW_METHODS",
    "OUTSIDE",
    "PUBLISHED",
    "SEARCH",
    "SMALL",
    "UNGUARDED",
    "make_methods",
    "prior_for",
]

ADJUSTER, PUBLISHED = "Adjuster", "CAN as published"
SEARCH, SMALL = "AlternatingNormalizerCV", "small menu"
UNGUARDED = "Adjuster, no guard"
FEW_METHODS = (ADJUSTER, "BCTS, always")
FEW_LABELS_METHODS = (ADJUSTER, "LabelThresholds")
OUTSIDE = {
    f"{method.package}: {method.name}": method
    for method in METHODS
    if method.name in ("isotonic", "logistic (SMS)")
}
"""What other packages do, as in the open benchmark: one per class, and one for all classes."""
UNIFORM, COUNTED = "uniform", "counted"

# The paper's prior is the class frequency of the training data, which one source gives (it is
# uniform). Otherwise: uniform where the training data are balanced by design (CIFAR, ImageNet,
# UAV-Human, letters, segments), where there are none (language models that were asked), and where
# nothing is known of them (language identification, tissue from another hospital). These few are
# uneven, and their validation rows come from the same source as the training rows: their
# frequencies are counted.
_UNEVEN = (
    *("20news", "iemocap4", "snphotcc3", "transients13"),
    *("calhousing8", "spambase2", "tweet_emotion", "wnut17"),
)

LABELS_PER_CLASS = 5
LARGEST_WORK = 1e9  # rows times classes squared: a matrix takes minutes beyond
LABELS_PER_CURVE, MOST_CURVES = 20, 40  # labels per class and classes, as in `Adjuster`


class AlwaysAlternating(BaseEstimator):
    """The setting that a search finds best, applied whatever its verdict says."""

    def __init__(self, search: AlternatingNormalizerCV) -> None:
        self.search = search

    def fit(self, proba: np.ndarray, y: np.ndarray) -> Self:
        """Search, and fit the best setting."""
        found = clone(self.search).fit(proba, y)
        best = AlternatingNormalizer(**found.best_params_, prior=found.prior)
        self.normalizer_ = best.fit(proba, y)
        return self

    def transform(self, proba: np.ndarray) -> Any:
        """Apply it."""
        return self.normalizer_.transform(proba)


class OtherPackage(BaseEstimator):
    """A method of the open benchmark, which is given validation and test rows at once."""

    def __init__(self, method: Method) -> None:
        self.method = method

    def fit(self, proba: np.ndarray, y: np.ndarray) -> Self:
        """Keep the validation rows."""
        self.known_ = floored(proba), y
        return self

    def transform(self, proba: np.ndarray) -> Any:
        """Fit, and apply."""
        prior = np.bincount(self.known_[1], minlength=proba.shape[1]) / len(self.known_[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.method.adjust(Labelled(*self.known_, floored(proba), prior))


def prior_for(name: str) -> str:
    """The kind of prior that the paper allows for a source."""
    return COUNTED if name.startswith(_UNEVEN) else UNIFORM


def make_methods(classifier: Classifier) -> dict[str, Any]:
    """All methods that can be tried on a classifier, by name."""
    if classifier.multilabel:
        return _for_labels()
    prior = prior_for(classifier.name)
    methods: dict[str, Any] = {
        ADJUSTER: Adjuster(),
        "Adjuster, balanced accuracy": Adjuster(scoring="balanced_accuracy"),
        "Adjuster, macro-F1": Adjuster(scoring="f1_macro"),
        UNGUARDED: Adjuster(insist=True),
        "without curves": Adjuster(("alternating", "bias", "matrix")),
        "without alternating": Adjuster(("bias", "matrix", "curves")),
        SEARCH: AlternatingNormalizerCV(),
        f"{SEARCH}, always": AlwaysAlternating(AlternatingNormalizerCV()),
        SMALL: small_menu(),
        f"{SMALL}, always": AlwaysAlternating(small_menu()),
        PUBLISHED: as_published(prior),
        "the paper's grid, guarded": papers_grid(prior=prior),
        "BCTS, always": peers.BiasCorrectedTemperature(),
        "temperature": peers.TemperatureScaling(),
    }
    n, m = classifier.val_proba.shape
    if n >= LABELS_PER_CLASS * m and n * m * m <= LARGEST_WORK:
        methods["matrix, always"] = peers.MatrixScaling()
        installed = {name: method for name, method in OUTSIDE.items() if method.is_installed}
        methods |= {name: OtherPackage(method) for name, method in installed.items()}
    if n >= LABELS_PER_CURVE * m and m <= MOST_CURVES:
        methods["curves, always"] = peers.CurveScaling()
    return methods


def papers_grid(**options: Any) -> AlternatingNormalizerCV:
    """The paper's exponents, depths, thresholds and references."""
    return AlternatingNormalizerCV(references=("confident",), smoothings=(0.0,), **options)


def as_published(prior: str, **options: Any) -> AlternatingNormalizerCV:
    """The paper's method, references and tuning: the best setting on the rows themselves."""
    return papers_grid(tuning="as-published", prior=prior, **options)


def small_menu() -> AlternatingNormalizerCV:
    """A few settings that did as well as the whole grid on the first 24 classifiers."""
    return AlternatingNormalizerCV(**SMALL_MENU)


def _for_labels() -> dict[str, Any]:
    """With several labels per row a uniform prior would give every label to half of the rows."""
    return {
        ADJUSTER: Adjuster(multilabel="labelwise"),
        "Adjuster, macro-F1": Adjuster(multilabel="labelwise", scoring="f1_macro"),
        "Adjuster, log loss": Adjuster(multilabel="labelwise", scoring="neg_log_loss"),
        "Adjuster, pairs": Adjuster(multilabel="pairs"),
        "LabelwiseScaling, 0.5": LabelwiseScaling(),
        "LabelThresholds": peers.LabelThresholds(),
        PUBLISHED: as_published(COUNTED, multilabel="pairs"),
    }
