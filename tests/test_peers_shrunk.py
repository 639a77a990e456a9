"""ShrunkBias and MatrixScaling: the penalised optimum, its limits, and what they can repair."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss

from altnorm._base.errors import InputError
from altnorm.families.likelihood import stratified_folds
from altnorm.families.matrix import cauchy_penalty, log_floor
from altnorm.families.shrunk import RIDGE_PATH
from altnorm.peers import (
    BiasCorrectedTemperature,
    MatrixScaling,
    ShrunkBias,
    TemperatureScaling,
)
from tests.problems import planted

NEAR = 1e-4  # of the penalised loss per row: optimisers stop


def draw(n=300, m=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    z = rng.normal(size=(n, m)) + 1.5 * np.eye(m)[y] + np.linspace(0, 1, m)
    return softmax(z, axis=1), y


def few_confusions(ridge):
    return MatrixScaling(ridge, penalty="cauchy")


def matrix_loss(theta, proba, y, weight, ridge, penalty):
    """The penalised loss as the docstring has it, from scratch."""
    m = proba.shape[1]
    x = np.log(proba)
    centred = x - np.average(x, axis=0, weights=weight)
    centred /= np.sqrt(np.average((centred**2).mean(axis=1), weights=weight))
    slope, bias, matrix = theta[0], theta[1 : m + 1], theta[m + 1 :].reshape(m, m)
    log_p = log_softmax(slope * x + centred @ matrix.T + bias, axis=1)
    loss = -weight @ log_p[np.arange(len(y)), y]
    loss += 0.5 * ridge * bias @ bias
    if penalty == "ridge":
        return loss + 0.5 * ridge * (matrix**2).sum()
    penalised = np.append(matrix[~np.eye(m, dtype=bool)], matrix.sum(axis=1))
    return loss + np.log(1 + 0.5 * ridge * penalised**2).sum()


@pytest.mark.parametrize("ridge", [64.0, 4.0, 0.25])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["ridge", "cauchy"])
def test_the_matrix_is_the_penalised_optimum(ridge, weighted, penalty):
    proba, y = draw()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    start = np.concatenate([[1.0], np.zeros(3 + 9)])
    best = minimize(matrix_loss, start, (proba, y, weight, ridge, penalty), method="BFGS")
    fitted = MatrixScaling(ridge, penalty=penalty)
    fitted.fit(proba, y, sample_weight=weight if weighted else None)
    slope, bias, matrix = best.x[0], best.x[1:4], best.x[4:].reshape(3, 3)
    x = np.log(proba)
    centred = x - np.average(x, axis=0, weights=weight)
    centred /= np.sqrt(np.average((centred**2).mean(axis=1), weights=weight))
    expected = softmax(slope * x + centred @ matrix.T + bias, axis=1)
    np.testing.assert_allclose(fitted.transform(proba), expected, atol=2e-2)
    losses = [log_loss(y, p, sample_weight=weight) for p in (expected, fitted.transform(proba))]
    assert losses[1] == pytest.approx(losses[0], abs=10 * NEAR)


def test_a_strong_penalty_leaves_the_temperature():
    proba, y = draw()
    temperature = TemperatureScaling().fit(proba, y)
    matrices = (MatrixScaling(1e9, penalty=penalty) for penalty in ("ridge", "cauchy"))
    for strong in (*matrices, ShrunkBias("labels", np.inf)):
        np.testing.assert_allclose(
            strong.fit(proba, y).transform(proba), temperature.transform(proba), atol=1e-3
        )


def test_shrunk_towards_zero_is_bcts():
    proba, y = planted(500)
    ours = ShrunkBias("labels", 4.0).fit(proba, y)
    bcts = BiasCorrectedTemperature(ridge=4.0).fit(proba, y)
    assert ours.temperature_ == pytest.approx(bcts.temperature_, rel=1e-2)
    np.testing.assert_allclose(ours.bias_, bcts.bias_, atol=2e-2)


def test_shrunk_towards_the_prior_needs_no_labels_in_the_limit():
    """With an infinite penalty the weights are prior over mean prediction, then a temperature."""
    proba, y = planted(500)
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    ours = ShrunkBias("prior", np.inf, prior=prior).fit(proba, y)
    weights = proba * prior / proba.mean(axis=0)
    weights /= weights.sum(axis=1, keepdims=True)
    expected = TemperatureScaling().fit(weights, y).transform(weights)
    np.testing.assert_allclose(ours.transform(proba), expected, atol=1e-6)


def test_a_class_without_labels_is_not_favoured():
    proba, y = draw(m=4)
    seen = y < 3
    fitted = ShrunkBias("prior", np.inf, prior="uniform").fit(proba[seen], y[seen])
    weights = fitted.bias_ * fitted.temperature_  # of one alternating normalization
    own = np.log(0.25 / proba[seen].mean(axis=0))
    assert weights[3] - weights[:3].mean() < own[3] - own[:3].mean()


@pytest.mark.parametrize("kind", [ShrunkBias, MatrixScaling, few_confusions])
def test_classes_in_another_order(kind):
    proba, y = draw(m=4)
    order = np.array([2, 0, 3, 1])
    plain = kind(ridge=4.0).fit(proba, y).transform(proba)
    swapped = kind(ridge=4.0).fit(proba[:, order], np.argsort(order)[y]).transform(proba[:, order])
    np.testing.assert_allclose(swapped, plain[:, order], atol=2e-3)


@pytest.mark.parametrize("kind", [ShrunkBias, MatrixScaling])
def test_a_weight_of_two_is_a_row_twice(kind):
    proba, y = draw(100)
    weight = np.random.default_rng(2).integers(0, 3, 100)
    once = kind(ridge=4.0, **({"prior": "uniform"} if kind is ShrunkBias else {}))
    weighted = once.fit(proba, y, sample_weight=weight).transform(proba)
    repeated = once.fit(proba.repeat(weight, axis=0), y.repeat(weight)).transform(proba)
    np.testing.assert_allclose(weighted, repeated, atol=2e-3)


def test_a_matrix_repairs_what_no_factor_can():
    """Two classes are told apart by the probability of a third."""
    rng = np.random.default_rng(0)
    y = rng.integers(1, 3, size=800)
    other = np.where(y == 1, 0.4, 0.1) + 0.02 * rng.normal(size=800)
    proba = np.stack([other, 0.55 * (1 - other), 0.45 * (1 - other)], axis=1)
    assert (MatrixScaling(4.0).fit(proba, y).predict(proba) == y).mean() > 0.95
    assert (BiasCorrectedTemperature().fit(proba, y).predict(proba) == y).mean() < 0.6


def leaking(n, m=10, share=0.6, seed=0):
    """Labels, fair log-odds, and reports in which every second class leaks into the one before."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    z = 2 * rng.normal(size=(n, m)) + 3 * np.eye(m)[y]
    reported = z.copy()
    first = np.arange(0, m, 2)
    reported[:, first] += share * (z[:, first + 1] - z[:, first])
    return y, z, softmax(reported, axis=1)


def test_few_labels_find_the_pairs_that_are_confused():
    """Of 90 entries off the diagonal 5 are needed; a ridge would spread them over all others."""
    y, _, proba = leaking(300)
    off_diagonal = few_confusions(64.0).fit(proba, y).matrix_ * (1 - np.eye(10))
    first = np.arange(0, 10, 2)
    assert set(np.argsort(off_diagonal, axis=None)[:5]) == set(10 * first + first + 1)
    largest = np.abs(off_diagonal).ravel()
    largest[10 * first + first + 1] = 0
    assert off_diagonal[first, first + 1].max() < -3 * largest.max()


def test_confused_pairs_are_repaired_with_few_labels():
    y, _, proba = leaking(300)
    few = few_confusions(64.0).fit(proba, y)
    ridges = [MatrixScaling(ridge).fit(proba, y) for ridge in RIDGE_PATH]
    y, z, proba = leaking(5000, seed=1)
    reported, fair, repaired = (
        (p.argmax(axis=1) == y).mean() for p in (proba, z, few.transform(proba))
    )
    assert repaired - reported > 0.7 * (fair - reported)
    by_ridge = max((ridge.predict(proba) == y).mean() for ridge in ridges)
    assert by_ridge - reported < 0.6 * (fair - reported)


def test_the_derivative_of_the_penalty():
    matrix = np.random.default_rng(0).normal(size=(4, 4))

    def value(flat):
        return cauchy_penalty(flat.reshape(4, 4), 3.0)[0]

    _, gradient = cauchy_penalty(matrix, 3.0)
    numeric = approx_fprime(matrix.ravel(), value)
    np.testing.assert_allclose(gradient.ravel(), numeric, rtol=1e-5, atol=1e-5)


def test_zeros_are_less_than_the_smallest_share():
    with np.errstate(divide="ignore"):
        assert log_floor(np.log(np.array([[0.01, 0.99], [0.0, 1.0]]))) == pytest.approx(
            np.log(0.005)
        )
        assert log_floor(np.log(np.array([[1e-30, 1.0]]))) == -25
    proba, y = draw()
    proba[:40] = np.eye(3)[y[:40]]
    adjusted = MatrixScaling(4.0).fit(proba, y).transform(proba)
    assert np.isfinite(adjusted).all()
    np.testing.assert_allclose(adjusted.sum(axis=1), 1)


def test_wrong_settings():
    proba, y = draw(30)
    with pytest.raises(InputError, match="`ridge` must be a finite number greater than 0"):
        MatrixScaling(0.0).fit(proba, y)
    with pytest.raises(InputError, match=r"`penalty` must be .* it is 'lasso'"):
        MatrixScaling(1.0, penalty="lasso").fit(proba, y)
    with pytest.raises(InputError, match=r"`member` must be .* it is 'can'"):
        ShrunkBias("can").fit(proba, y)


@pytest.mark.parametrize("penalty", ["ridge", "cauchy"])
def test_the_ridge_is_the_best_by_cross_validation(penalty):
    """Against a loop that fits every penalty on its own."""
    proba, y = draw(200, m=4)
    folds = stratified_folds(y, 3)
    losses = {}
    for ridge in RIDGE_PATH:
        after = np.empty_like(proba)
        for k in range(3):
            known = MatrixScaling(ridge, penalty=penalty).fit(proba[folds != k], y[folds != k])
            after[folds == k] = known.transform(proba[folds == k])
        losses[ridge] = log_loss(y, after)
    found = MatrixScaling(cv=3, penalty=penalty).fit(proba, y).ridge_
    assert losses[found] == pytest.approx(min(losses.values()), abs=1e-3)
    assert max(losses.values()) > min(losses.values()) + 0.01
