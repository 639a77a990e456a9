"""The loss of a slope and biases: from scratch, in blocks of any size, and its least slope."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn import config_context

from altnorm.families.bias import bias_path
from altnorm.families.crossfit import STRENGTHS, cross_fit
from altnorm.families.likelihood import SLOPES, Likelihood, fit_slope
from tests.libraries import LIBRARIES

EXACT = 1e-12
MEGABYTES = [1024, 1e-6]  # one block, and one row at a time
blocks = pytest.mark.parametrize("megabytes", MEGABYTES)


def draw(n=60, m=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    log_p = log_softmax(2 * rng.normal(size=(n, m)) + np.eye(m)[y], axis=1)
    return log_p, y, rng.uniform(0.2, 3.0, n)


def residuals(log_p, y, slope, bias):
    """Predicted shares and what the labels add to them, row by row."""
    p = np.array([softmax(slope * row + bias) for row in log_p])
    return p, p - np.eye(log_p.shape[1])[y]


@blocks
def test_the_loss_and_its_derivatives(megabytes):
    log_p, y, weight = draw()
    slope, bias = 0.7, np.linspace(-1, 2, 5)
    loss = Likelihood.build(log_p, y, weight, 1e-16)
    with config_context(working_memory=megabytes):
        value, by_slope, by_bias = loss.value_and_grad(slope, bias)
    own = [log_softmax(slope * row + bias)[label] for row, label in zip(log_p, y, strict=True)]
    _, residual = residuals(log_p, y, slope, bias)
    assert value == pytest.approx(-weight @ own, rel=EXACT)
    assert by_slope == pytest.approx(weight @ (residual * log_p).sum(axis=1), rel=EXACT)
    np.testing.assert_allclose(by_bias, weight @ residual, rtol=EXACT, atol=EXACT)


@blocks
def test_second_derivatives(megabytes):
    """The Hessian's diagonal is a variance under the predicted shares."""
    log_p, y, weight = draw()
    slope, bias = 0.7, np.linspace(-1, 2, 5)
    loss = Likelihood.build(log_p, y, weight, 1e-16)
    p, _ = residuals(log_p, y, slope, bias)
    mean = (p * log_p).sum(axis=1, keepdims=True)
    with config_context(working_memory=megabytes):
        by_slope, by_bias = loss.curvature(slope, bias)
        first, second = loss.slope_derivatives(slope)
        assert first == pytest.approx(loss.value_and_grad(slope, 0 * bias)[1], rel=EXACT)
        assert second == pytest.approx(loss.curvature(slope, 0 * bias)[0], rel=EXACT)
    assert by_slope == pytest.approx(weight @ (p * (log_p - mean) ** 2).sum(axis=1), rel=EXACT)
    np.testing.assert_allclose(by_bias, weight @ (p * (1 - p)), rtol=EXACT)


@pytest.mark.parametrize("rough", [False, True])
def test_the_callers_memory_is_left_alone_and_rows_of_weight_zero_are_absent(rough):
    log_p, y, weight = draw()
    log_p[3, y[3]] = -np.inf
    weight[:10:2] = 0
    given = log_p.copy()
    loss = Likelihood.build(log_p, y, weight, 1e-16, rough=rough)
    np.testing.assert_array_equal(log_p, given)
    used = weight > 0
    alone = Likelihood.build(log_p[used], y[used], weight[used], 1e-16)
    assert loss.log_p.dtype == (np.float32 if rough else np.float64)
    np.testing.assert_allclose(loss.log_p, alone.log_p, rtol=1e-6 if rough else 0, atol=1e-6)
    value, by_slope, by_bias = alone.value_and_grad(0.7, np.linspace(-1, 2, 5))
    found = loss.value_and_grad(0.7, np.linspace(-1, 2, 5))
    tolerance = 1e-4 if rough else EXACT
    assert found[:2] == pytest.approx((value, by_slope), rel=tolerance)
    np.testing.assert_allclose(found[2], by_bias, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_stay_in_their_library(library):
    """The same numbers, up to rounding, whatever the library; NumPy's come back."""
    log_p, y, weight = draw()
    log_p[3, y[3]] = log_p[5, (y[5] + 1) % 5] = -np.inf
    slope, bias = 0.7, np.linspace(-1, 2, 5)
    here = Likelihood.build(log_p, y, weight, 1e-16)
    there = Likelihood.build(library.make(log_p), y, weight, 1e-16)
    assert type(there.log_p) is type(library.make(log_p))
    for method in ("value_and_grad", "curvature"):
        pairs = zip(
            getattr(here, method)(slope, bias), getattr(there, method)(slope, bias), strict=True
        )
        for expected, found in pairs:
            assert isinstance(found, (float, np.ndarray))
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert fit_slope(there) == pytest.approx(fit_slope(here), rel=1e-9)
    ours, theirs = (
        list(bias_path(rows, y, weight, STRENGTHS)) for rows in (log_p, library.make(log_p))
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(other.bias, one.bias, atol=1e-5)
    folds = np.arange(len(y)) % 3
    found = cross_fit(bias_path, library.make(log_p), y, weight, folds)
    expected = cross_fit(bias_path, log_p, y, weight, folds)
    np.testing.assert_allclose(found.label_log_p, expected.label_log_p, atol=1e-3)
    assert type(found.proba(0, library.make(log_p))) is type(library.make(log_p))


@pytest.mark.parametrize("shrink", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 4.0, 60.0])
def test_the_slope_of_least_loss(scale, shrink):
    """Against a bounded search without derivatives."""
    log_p, y, weight = draw(seed=2)
    log_p = log_softmax(scale * log_p, axis=1)

    def objective(log_slope):
        own = log_softmax(np.exp(log_slope) * log_p, axis=1)[np.arange(y.size), y]
        return -weight @ own + shrink / 2 * log_slope**2

    best = minimize_scalar(objective, bounds=np.log(SLOPES), options={"xatol": 1e-9})
    found = fit_slope(Likelihood.build(log_p, y, weight, 1e-16), shrink=shrink)
    assert np.log(found) == pytest.approx(best.x, abs=1e-5)


def test_labels_that_are_always_right_or_wrong_end_at_the_limits():
    log_p, _, weight = draw()
    for labels, limit in ((log_p.argmax(axis=1), SLOPES[1]), (log_p.argmin(axis=1), SLOPES[0])):
        assert fit_slope(Likelihood.build(log_p, labels, weight, 1e-16)) == limit


def test_a_single_wrong_label_far_away():
    """The loss is flat at first and steep later, where Newton's method alone would go astray."""
    log_p = np.log(np.array([[0.999999, 1e-6]] * 5 + [[0.6, 0.4]]))
    y = np.array([0, 0, 0, 0, 0, 1])
    loss = Likelihood.build(log_p, y, np.ones(6), 1e-16)
    slope = fit_slope(loss)
    up, down = (loss.value_and_grad(slope * f, np.zeros(2))[0] for f in (1.001, 0.999))
    here = loss.value_and_grad(slope, np.zeros(2))[0]
    assert here <= min(up, down)
