"""One iteration against given column sums, where linear sums underflow and where they do not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn import config_context

from altnorm.method.scaling import step_once
from tests.oracle import draw_rows


def check(proba, log_s, q, alpha):
    with np.errstate(all="ignore"):
        log_b = alpha * np.log(proba)
        expected = np.log(q) + np.where(proba > 0, log_b - np.logaddexp(log_b, log_s), -np.inf)
        expected = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    assert_allclose(step_once(proba, log_s, q, alpha=alpha), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 7.0, 35.0])
@pytest.mark.parametrize("low", [0, -100, -1000, -20000])
def test_small_column_sums(alpha, low):
    """Column sums that underflow make the linear form useless, and it must be noticed."""
    rng = np.random.default_rng(1)
    proba, q = draw_rows(rng, 40, 6), rng.dirichlet(np.ones(6))
    check(proba, rng.uniform(low, 3, 6), q, alpha)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 35.0])
def test_class_without_reference(alpha):
    rng = np.random.default_rng(2)
    log_s = np.array([-np.inf, 0.5, 1.0, -np.inf])
    check(draw_rows(rng, 40, 4), log_s, np.full(4, 0.25), alpha)


def test_row_total_that_underflows():
    check(np.array([[1e-200, 1 - 1e-200, 0]]), np.zeros(3), np.array([0.5, 1e-320, 0.5]), 20.0)


def test_small_blocks_give_the_same():
    rng = np.random.default_rng(4)
    proba, q, log_s = draw_rows(rng, 30, 5), rng.dirichlet(np.ones(5)), rng.normal(size=5)
    whole = step_once(proba, log_s, q, alpha=1.7)
    with config_context(working_memory=1e-6):
        assert_array_equal(step_once(proba, log_s, q, alpha=1.7), whole)
