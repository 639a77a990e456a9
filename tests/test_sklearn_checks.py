"""scikit-learn's own checks of the three estimators; every expected failure has its reason."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from altnorm import (
    AdjustedClassifier,
    AlternatingNormalizer,
    AlternatingNormalizerCV,
)

GRID = {"alphas": (0.5, 2.0), "depths": (1, 2), "thresholds": (0.5,), "smoothings": (0.0,)}

# The data of scikit-learn's checks are features, which we have to take for logits.
ESTIMATORS = [
    AlternatingNormalizer(input="logits", reference="all"),
    AlternatingNormalizerCV(**GRID, input="logits", cv=3, random_state=0),
    AdjustedClassifier(
        LogisticRegression(C=0.1),
        AlternatingNormalizerCV(**GRID, cv=3, random_state=0),
        cv=2,
    ),
]

THREE_CLASSES_TWO_COLUMNS = (
    "The check draws labels of three classes and features with two columns; a normalizer has one "
    "column per class, so that such labels cannot be told apart from a mistake."
)


def expected_failures(estimator):
    if isinstance(estimator, AdjustedClassifier):
        return {}
    return {
        "check_estimators_overwrite_params": THREE_CLASSES_TWO_COLUMNS,
        "check_estimators_fit_returns_self": THREE_CLASSES_TWO_COLUMNS,
        "check_readonly_memmap_input": THREE_CLASSES_TWO_COLUMNS,
    }


@pytest.fixture(autouse=True)
def _array_api(monkeypatch):
    """Without this variable scikit-learn skips its check of array API input."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
