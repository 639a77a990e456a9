"""Temperature and biases against other optimisers; batch calibration by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn import config_context

from altnorm.families.crossfit import STRENGTHS
from altnorm.families.likelihood import SLOPES, Likelihood, fit_slope, stratified_folds
from altnorm.peers import BatchCalibration, BiasCorrectedTemperature, TemperatureScaling

FITTED = 1e-5  # a fitted number against that of another optimiser
EXACT = 1e-12


def draw(n, m, *, temperature=1.0, bias=None, spread=2.0, seed=0):
    """Logits whose true posterior is softmax(logits / temperature + bias), and labels from it."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, spread, (n, m))
    truth = softmax(logits / temperature + (0 if bias is None else bias), axis=1)
    return logits, np.array([rng.choice(m, p=row) for row in truth])


def test_a_label_of_probability_zero_keeps_the_temperature_finite():
    logits, y = draw(200, 3, temperature=1.5)
    proba = softmax(logits, axis=1)
    proba[0] = np.where(np.arange(3) == y[0], 0, 0.5)
    adjusted = TemperatureScaling().fit(proba, y)
    floored = proba.copy()
    floored[0, y[0]] = np.finfo(float).eps
    oracle = TemperatureScaling(input="logits").fit(np.log(floored), y)
    assert adjusted.temperature_ == pytest.approx(oracle.temperature_, rel=1e-9)
    assert adjusted.transform(proba)[0, y[0]] == 0
    more_zeros = np.column_stack([proba, np.zeros(200)])  # which do not count
    again = TemperatureScaling().fit(more_zeros, y).temperature_
    assert again == pytest.approx(adjusted.temperature_)


@pytest.mark.parametrize(("labels", "bound"), [("right", 1e-3), ("wrong", 1e3)])
def test_temperature_stays_in_its_range(labels, bound):
    logits, _ = draw(50, 3)
    y = logits.argmax(1) if labels == "right" else logits.argmin(1)
    fitted = TemperatureScaling(input="logits").fit(logits, y)
    assert fitted.temperature_ == pytest.approx(bound)
    assert np.isfinite(fitted.transform(logits)).all()


def test_temperature_never_changes_a_prediction():
    proba = np.array([[0.3, 0.3 + 1e-7, 0.4 - 1e-7], [0.45, np.nextafter(0.45, 1), 0.1]])
    fitted = TemperatureScaling().fit(np.repeat(proba, 5, axis=0), [0, 1, 2, 0, 1] * 2)
    np.testing.assert_array_equal(fitted.predict(proba), [2, 1])


def test_logits_keep_what_a_softmax_would_round_to_zero():
    logits = np.array([[0.0, -2000.0], [0.0, -2000.0], [-2000.0, 0.0]])
    fitted = TemperatureScaling(input="logits").fit(logits, [0, 1, 1])
    assert fitted.temperature_ == pytest.approx(1000)
    assert fitted.transform(logits)[0, 1] == pytest.approx(1 / (1 + np.exp(2)))


@pytest.mark.parametrize("megabytes", [1024, 1e-6], ids=["one block", "row by row"])
@pytest.mark.parametrize("strength", [0.0, 0.3, 20.0])
def test_bcts_agrees_with_a_derivative_free_start_to_end_search(strength, megabytes):
    logits, y = draw(300, 3, temperature=1.6, bias=np.array([0.8, -0.5, 0.0]))
    weight = np.random.default_rng(1).uniform(0.5, 2, 300)
    weight /= weight.mean()
    proba = softmax(logits, axis=1)

    def objective(theta):
        bias = np.array([theta[1], theta[2], -theta[1] - theta[2]])
        adjusted = log_softmax(theta[0] * np.log(proba) + bias, axis=1)
        return -weight @ adjusted[np.arange(300), y] + 0.5 * strength * bias @ bias

    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000}
    oracle = minimize(objective, [1.0, 0, 0], method="Nelder-Mead", options=options).x
    with config_context(working_memory=megabytes):
        fitted = BiasCorrectedTemperature(strength).fit(proba, y, sample_weight=weight)
    assert 1 / fitted.temperature_ == pytest.approx(oracle[0], abs=FITTED)
    np.testing.assert_allclose(fitted.bias_[:2], oracle[1:], atol=FITTED)
    assert fitted.bias_.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("strength", ["cv", 0.0, 1.0])
def test_classes_absent_from_y_and_classes_with_two_rows(strength):
    logits, y = draw(90, 6)
    y[:] = np.where(np.isin(y, (2, 5)), 0, y)  # 5 is absent, 2 has two rows
    y[[3, 40]] = 2
    fitted = BiasCorrectedTemperature(strength, input="logits").fit(logits, y)
    assert np.isfinite(fitted.bias_).all()
    assert fitted.bias_[5] == fitted.bias_.min()
    np.testing.assert_allclose(fitted.transform(logits).sum(axis=1), 1)


def test_more_folds_than_rows():
    logits, y = draw(3, 3)
    fitted = BiasCorrectedTemperature(input="logits").fit(logits, y)
    assert fitted.strength_ in STRENGTHS


def test_folds_are_stratified_whatever_the_classes_are_called():
    y = np.random.default_rng(0).choice(5, 203, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    folds = stratified_folds(y, 5)
    for code in range(5):
        counts = np.bincount(folds[y == code], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert np.ptp(np.bincount(folds)) <= 1
    np.testing.assert_array_equal(folds, stratified_folds(np.array([3, 1, 4, 0, 2])[y], 5))


# The slope of least loss.


def draw_weighted(scale):
    """Log-probabilities, labels and weights."""
    if scale == "one wrong":  # the loss is flat at first and steep later: Newton alone goes astray
        log_p = np.log(np.array([[0.999999, 1e-6]] * 5 + [[0.6, 0.4]]))
        return log_p, np.array([0, 0, 0, 0, 0, 1]), np.ones(6)
    rng = np.random.default_rng(2)
    y = rng.integers(5, size=60)
    log_p = log_softmax(2 * rng.normal(size=(60, 5)) + np.eye(5)[y], axis=1)
    return log_softmax(scale * log_p, axis=1), y, rng.uniform(0.2, 3.0, 60)


@pytest.mark.parametrize("shrink", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 4.0, 60.0, "one wrong"])
def test_the_slope_of_least_loss(scale, shrink):
    """Against a bounded search without derivatives."""
    log_p, y, weight = draw_weighted(scale)

    def objective(log_slope):
        tempered = log_softmax(np.exp(log_slope) * log_p, axis=1)
        return -weight @ tempered[np.arange(y.size), y] + shrink / 2 * log_slope**2

    best = minimize_scalar(objective, bounds=np.log(SLOPES), options={"xatol": 1e-9})
    slope = fit_slope(Likelihood.build(log_p, y, weight), shrink=shrink)
    assert np.log(slope) == pytest.approx(best.x, abs=1e-5)


@pytest.mark.parametrize("kind", [TemperatureScaling, BiasCorrectedTemperature])
def test_rows_of_zeros_and_ones_that_are_all_right_say_nothing_of_a_temperature(kind):
    """As trees without a limit are on rows of their training; new rows are less sure."""
    codes = np.arange(60) % 3
    scaling = kind().fit(np.eye(3)[codes], codes)
    assert scaling.temperature_ == 1
    np.testing.assert_allclose(scaling.transform([[0.5, 0.3, 0.2]]), [[0.5, 0.3, 0.2]])


# Batch calibration against hand computation.


def normalise(values):
    return values / values.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_batch_calibration_divides_by_the_mean(gamma):
    proba = normalise(np.random.default_rng(0).random((40, 3)) ** 2)
    new, mean = normalise(proba[:7] ** 0.5), proba.mean(axis=0)
    adjusted = BatchCalibration(gamma=gamma).fit(proba).transform(new)
    np.testing.assert_allclose(adjusted, normalise(new / mean**gamma), atol=EXACT)


def test_a_class_that_is_never_predicted_counts_half_the_rarest():
    prior = BatchCalibration().fit([[0.8, 0.2, 0.0]]).contextual_prior_
    np.testing.assert_allclose(prior, np.array([8, 2, 1]) / 11, atol=EXACT)
