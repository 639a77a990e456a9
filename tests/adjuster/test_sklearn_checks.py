"""scikit-learn's own checks of estimators of classes; an expected failure has its reason."""

import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from altnorm import (
    AdjustedClassifier,
    Adjuster,
    AlternatingNormalizer,
    AlternatingNormalizerCV,
    peers,
)
from altnorm.peers import BiasCorrectedTemperature, MatrixScaling

GRID = {"alphas": (0.5, 2.0), "depths": (1, 2), "thresholds": (0.5,), "smoothings": (0.0,)}


# The data of scikit-learn's checks are features, which we have to take for logits.
ESTIMATORS = [
    AlternatingNormalizer(input="logits", reference="all"),
    AlternatingNormalizerCV(**GRID, input="logits", cv=3),
    Adjuster(("alternating", "bias"), input="logits", cv=3),
    Adjuster(("bias",), input="logits", cv=3, insist=True, scoring="balanced_accuracy"),
    peers.BatchCalibration(input="logits"),
    BiasCorrectedTemperature(input="logits"),
    peers.Identity(input="logits"),
    MatrixScaling(1.0, input="logits"),
    peers.TemperatureScaling(input="logits"),
    AdjustedClassifier(LogisticRegression(C=0.1), Adjuster(("bias",), cv=3), cv=2),
    AdjustedClassifier(LogisticRegression(C=0.1), scoring="balanced_accuracy", cv=2),
]

THREE_CLASSES_TWO_COLUMNS = (
    "The check draws labels of three classes and features with two columns; a normalizer has one "
    "column per class, so that such labels cannot be told apart from a mistake."
)


FOLDS_ARE_A_NUMBER = "The check passes lists of splits as `cv`, which is a number of folds here."
SPLITS_OF_ROWS = "The check passes lists of splits as `cv` that hold rows of weight 0 as well."
ON_WEIGHTS = {
    BiasCorrectedTemperature: FOLDS_ARE_A_NUMBER,
    MatrixScaling: FOLDS_ARE_A_NUMBER,
    Adjuster: SPLITS_OF_ROWS,
    AlternatingNormalizerCV: SPLITS_OF_ROWS,
}


def expected_failures(estimator):
    if isinstance(estimator, AdjustedClassifier):
        return {}
    names = "estimators_overwrite_params", "estimators_fit_returns_self", "readonly_memmap_input"
    reasons = {f"check_{name}": THREE_CLASSES_TWO_COLUMNS for name in names}
    for kind, reason in ON_WEIGHTS.items():
        if isinstance(estimator, kind):
            reasons["check_sample_weight_equivalence_on_dense_data"] = reason
            by_hand = reason is FOLDS_ARE_A_NUMBER
            if by_hand and parse_version(sklearn.__version__) < parse_version("1.7"):
                reasons["check_sample_weight_equivalence_on_sparse_data"] = reason
    return reasons


@pytest.fixture(autouse=True)
def _array_api(monkeypatch):
    """Without this variable scikit-learn skips its check of array API input."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
