"""MatrixScaling: the penalised optimum, its limits, and what it can repair."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss

from altnorm.families.crossfit import STRENGTHS
from altnorm.families.matrix import log_floor
from altnorm.peers import BiasCorrectedTemperature, MatrixScaling, TemperatureScaling
from tests.problems import favouring

NEAR = 1e-4  # of the penalised loss per row: optimisers stop


def draw():
    logits, y = favouring(300, 3)
    return softmax(logits, axis=1), y


def adjusted_log_p(theta, proba, weight):
    """Slope, biases and matrix, applied as the docstring has it, from scratch."""
    m, x = proba.shape[1], np.log(proba)
    centred = x - np.average(x, axis=0, weights=weight)
    centred /= np.sqrt(np.average((centred**2).mean(axis=1), weights=weight))
    matrix = theta[m + 1 :].reshape(m, m)
    return log_softmax(theta[0] * x + centred @ matrix.T + theta[1 : m + 1], axis=1)


def matrix_loss(theta, proba, y, weight, strength, penalty):
    m = proba.shape[1]
    bias, matrix = theta[1 : m + 1], theta[m + 1 :].reshape(m, m)
    loss = -weight @ adjusted_log_p(theta, proba, weight)[np.arange(len(y)), y]
    loss += 0.5 * strength * bias @ bias
    if penalty == "ridge":
        return loss + 0.5 * strength * (matrix**2).sum()
    penalised = np.append(matrix[~np.eye(m, dtype=bool)], matrix.sum(axis=1))
    return loss + np.log(1 + 0.5 * strength * penalised**2).sum()


@pytest.mark.parametrize("strength", [64.0, 4.0, 0.25])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", ["ridge", "cauchy"])
def test_the_matrix_is_the_penalised_optimum(strength, weighted, penalty):
    proba, y = draw()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    weight /= weight.mean()
    start = np.concatenate([[1.0], np.zeros(3 + 9)])
    best = minimize(matrix_loss, start, (proba, y, weight, strength, penalty), method="BFGS")
    fitted = MatrixScaling(strength, penalty=penalty)
    fitted.fit(proba, y, sample_weight=weight if weighted else None)
    expected = np.exp(adjusted_log_p(best.x, proba, weight))
    np.testing.assert_allclose(fitted.transform(proba), expected, atol=2e-2)
    losses = [log_loss(y, p, sample_weight=weight) for p in (expected, fitted.transform(proba))]
    assert losses[1] == pytest.approx(losses[0], abs=10 * NEAR)


def test_a_strong_penalty_leaves_the_temperature():
    proba, y = draw()
    temperature = TemperatureScaling().fit(proba, y)
    matrices = (MatrixScaling(1e9, penalty=penalty) for penalty in ("ridge", "cauchy"))
    for strong in matrices:
        np.testing.assert_allclose(
            strong.fit(proba, y).transform(proba), temperature.transform(proba), atol=1e-3
        )


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


def test_confused_pairs_are_repaired_with_few_labels():
    y, _, proba = leaking(300)
    few = MatrixScaling(64.0, penalty="cauchy").fit(proba, y)
    ridges = [MatrixScaling(strength).fit(proba, y) for strength in STRENGTHS]
    y, z, proba = leaking(5000, seed=1)
    reported, fair, repaired = (
        (p.argmax(axis=1) == y).mean() for p in (proba, z, few.transform(proba))
    )
    assert repaired - reported > 0.7 * (fair - reported)
    by_ridge = max((ridge.predict(proba) == y).mean() for ridge in ridges)
    assert by_ridge - reported < 0.6 * (fair - reported)


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
