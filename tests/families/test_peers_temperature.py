"""Temperature and biases against other optimisers, and against logistic regression."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from altnorm._base.errors import InputError
from altnorm.families.bias import bias_path
from altnorm.families.crossfit import STRENGTHS, cross_fit
from altnorm.families.likelihood import Likelihood, stratified_folds
from altnorm.peers import BiasCorrectedTemperature, Identity, TemperatureScaling

FITTED = 1e-5  # a fitted number against that of another optimiser


def draw(n, m, *, temperature=1.0, bias=None, spread=2.0, seed=0):
    """Logits whose true posterior is softmax(logits / temperature + bias), and labels from it."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, spread, (n, m))
    truth = softmax(logits / temperature + (0 if bias is None else bias), axis=1)
    return logits, np.array([rng.choice(m, p=row) for row in truth])


def naive_loss(proba, y, slope, bias, weight=None):
    adjusted = proba**slope * np.exp(bias)
    adjusted /= adjusted.sum(axis=1, keepdims=True)
    return -np.average(np.log(adjusted[np.arange(len(y)), y]), weights=weight)


def test_identity_returns_the_input_bit_for_bit():
    proba = softmax(np.random.default_rng(0).normal(size=(7, 3)), axis=1)
    np.testing.assert_array_equal(Identity().fit(proba).transform(proba), proba)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_true_temperature_is_found(temperature):
    logits, y = draw(8000, 5, temperature=temperature)
    found = TemperatureScaling(input="logits").fit(logits, y).temperature_
    assert found == pytest.approx(temperature, rel=0.05)


def test_temperature_agrees_with_a_scalar_search():
    logits, y = draw(300, 4, temperature=2.0)
    weight = np.random.default_rng(1).random(300)
    proba = softmax(logits, axis=1)
    oracle = minimize_scalar(
        lambda t: naive_loss(proba, y, 1 / t, 0, weight), bounds=(0.1, 10), options={"xatol": 1e-9}
    )
    fitted = TemperatureScaling().fit(proba, y, sample_weight=weight)
    assert fitted.temperature_ == pytest.approx(oracle.x, rel=FITTED)


def test_temperature_is_logistic_regression_without_intercept():
    logits, y = draw(400, 2, temperature=1.7)
    z = logits[:, [1]] - logits[:, [0]]
    oracle = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(z, y)
    found = TemperatureScaling(input="logits").fit(logits, y).temperature_
    assert 1 / found == pytest.approx(oracle.coef_[0, 0], rel=FITTED)


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


def test_other_zeros_do_not_count_in_the_loss():
    logits, y = draw(200, 3)
    proba = np.column_stack([softmax(logits, axis=1), np.zeros(200)])
    with_zeros = TemperatureScaling().fit(proba, y).temperature_
    assert with_zeros == pytest.approx(TemperatureScaling().fit(proba[:, :3], y).temperature_)


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


@pytest.mark.parametrize("strength", [0.0, 0.3, 20.0])
def test_bcts_agrees_with_a_derivative_free_start_to_end_search(strength):
    logits, y = draw(300, 3, temperature=1.6, bias=np.array([0.8, -0.5, 0.0]))
    weight = np.random.default_rng(1).uniform(0.5, 2, 300)
    proba = softmax(logits, axis=1)

    def objective(theta):
        bias = np.array([theta[1], theta[2], -theta[1] - theta[2]])
        loss = weight.sum() * naive_loss(proba, y, theta[0], bias, weight)
        return loss + 0.5 * strength * bias @ bias

    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000}
    oracle = minimize(objective, [1.0, 0, 0], method="Nelder-Mead", options=options).x
    fitted = BiasCorrectedTemperature(strength).fit(proba, y, sample_weight=weight)
    assert 1 / fitted.temperature_ == pytest.approx(oracle[0], abs=FITTED)
    np.testing.assert_allclose(fitted.bias_[:2], oracle[1:], atol=FITTED)
    assert fitted.bias_.sum() == pytest.approx(0, abs=1e-12)


def test_bcts_without_penalty_is_logistic_regression():
    logits, y = draw(500, 2, temperature=1.4, bias=np.array([1.0, 0]))
    z = logits[:, [1]] - logits[:, [0]]
    oracle = LogisticRegression(C=np.inf, tol=1e-10).fit(z, y)
    fitted = BiasCorrectedTemperature(0, input="logits").fit(logits, y)
    np.testing.assert_allclose(fitted.transform(logits), oracle.predict_proba(z), atol=FITTED)


def test_bcts_with_penalty_is_logistic_regression_on_a_constant():
    """With b = (-d/2, d/2) the penalty is strength d^2 / 4; a large unit frees the slope of it."""
    logits, y = draw(500, 2, temperature=1.4, bias=np.array([1.0, 0]))
    unit, strength = 1e4, 50.0
    columns = np.column_stack([unit * (logits[:, 1] - logits[:, 0]), np.ones(500)])
    oracle = LogisticRegression(
        C=2 / strength, fit_intercept=False, solver="newton-cholesky", tol=1e-10
    ).fit(columns, y)
    fitted = BiasCorrectedTemperature(strength, input="logits").fit(logits, y)
    assert fitted.bias_[1] - fitted.bias_[0] == pytest.approx(oracle.coef_[0, 1], abs=FITTED)
    assert 1 / fitted.temperature_ == pytest.approx(unit * oracle.coef_[0, 0], abs=FITTED)


def test_gradient_agrees_with_differences():
    logits, y = draw(40, 4)
    log_p = log_softmax(logits, axis=1)
    log_p[3, (y[3] + 1) % 4] = -np.inf
    loss = Likelihood.build(log_p, y, np.linspace(0.5, 2, 40), 1e-16)
    slope, bias, step = 0.8, np.array([0.1, -0.4, 0.2, 0.5]), 1e-6
    _, by_slope, by_bias = loss.value_and_grad(slope, bias)
    two_sided = [
        (loss.value_and_grad(slope, bias + e)[0] - loss.value_and_grad(slope, bias - e)[0])
        / (2 * step)
        for e in step * np.eye(4)
    ]
    np.testing.assert_allclose(by_bias, two_sided, rtol=1e-6)
    up, down = (loss.value_and_grad(slope + sign * step, bias)[0] for sign in (1, -1))
    assert by_slope == pytest.approx((up - down) / (2 * step), rel=1e-6)


def test_strength_is_chosen_by_held_out_log_loss():
    """Each fold and strength fitted afresh, scored by scikit-learn."""
    logits, y = draw(120, 4, bias=np.array([1.5, 0, 0, -1]))
    proba = softmax(logits, axis=1)
    fitted = BiasCorrectedTemperature(cv=3).fit(proba, y)
    folds = stratified_folds(y, 3)
    expected = np.zeros(len(STRENGTHS))
    for i, strength in enumerate(STRENGTHS):
        for fold in range(3):
            train, test = folds != fold, folds == fold
            model = BiasCorrectedTemperature(strength).fit(proba[train], y[train])
            adjusted = model.transform(proba[test])
            expected[i] += test.mean() * log_loss(y[test], adjusted, labels=range(4))
    found = cross_fit(bias_path, np.log(proba), y, np.ones(120), folds)
    tried = len(found.strengths)
    np.testing.assert_allclose(found.log_loss(np.ones(120)), expected[:tried], rtol=1e-3)
    assert fitted.strength_ == STRENGTHS[np.argmin(expected)]


def test_strength_follows_the_evidence():
    strong = np.array([2.0, 0, 0, -2])
    logits, y = draw(2000, 4, bias=strong)
    assert BiasCorrectedTemperature(input="logits").fit(logits, y).strength_ < 10
    logits, y = draw(2000, 4)
    assert BiasCorrectedTemperature(input="logits").fit(logits, y).strength_ > 100


def test_bcts_finds_the_bias_and_improves_accuracy():
    bias = np.array([1.0, 0.5, -0.5, -1.0])
    logits, y = draw(4000, 4, temperature=2.0, bias=bias)
    fitted = BiasCorrectedTemperature(input="logits").fit(logits[:3000], y[:3000])
    assert fitted.temperature_ == pytest.approx(2.0, rel=0.1)
    np.testing.assert_allclose(fitted.bias_, bias, atol=0.15)
    before = (logits[3000:].argmax(1) == y[3000:]).mean()
    assert (fitted.predict(logits[3000:]) == y[3000:]).mean() > before + 0.02


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
    with pytest.raises(InputError, match="at least 2 rows"):
        BiasCorrectedTemperature(input="logits").fit(logits[:1], y[:1])


def test_folds_are_stratified_whatever_the_classes_are_called():
    y = np.random.default_rng(0).choice(5, 203, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    folds = stratified_folds(y, 5)
    for code in range(5):
        counts = np.bincount(folds[y == code], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert np.ptp(np.bincount(folds)) <= 1
    np.testing.assert_array_equal(folds, stratified_folds(np.array([3, 1, 4, 0, 2])[y], 5))
