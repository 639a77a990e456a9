"""Batch calibration against hand computation."""

import numpy as np
import pytest

from altnorm.peers import BatchCalibration

EXACT = 1e-12


def normalise(values):
    return values / values.sum(axis=-1, keepdims=True)


@pytest.fixture
def proba():
    return normalise(np.random.default_rng(0).random((40, 3)) ** 2)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_batch_calibration_divides_by_the_mean(proba, gamma):
    other = proba[:7] ** 0.5
    other = normalise(other)
    by_fit = BatchCalibration(gamma=gamma).fit(proba)
    np.testing.assert_allclose(
        by_fit.transform(other), normalise(other / proba.mean(axis=0) ** gamma), atol=EXACT
    )
    by_batch = BatchCalibration("transform", gamma=gamma).fit(proba)
    np.testing.assert_allclose(
        by_batch.transform(other), normalise(other / other.mean(axis=0) ** gamma), atol=EXACT
    )


def test_splitting_the_batch_changes_nothing_where_the_batch_is_the_validation_set(proba):
    fitted = BatchCalibration().fit(proba)
    parts = np.concatenate([fitted.transform(proba[:9]), fitted.transform(proba[9:])])
    np.testing.assert_allclose(parts, fitted.transform(proba), atol=EXACT)


def test_a_class_that_is_never_predicted_counts_half_the_rarest():
    prior = BatchCalibration().fit([[0.8, 0.2, 0.0]]).contextual_prior_
    np.testing.assert_allclose(prior, np.array([8, 2, 1]) / 11, atol=EXACT)
