"""LabelwiseScaling against another optimiser, its limits, and labels that are hard to fit."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from altnorm import load
from altnorm._base.errors import InputError
from altnorm.families import LabelwiseScaling
from altnorm.families.crossfit import STRENGTHS, cross_fit
from altnorm.families.labelwise import labelwise_path, odds_limit

FITTED = 1e-4  # a fitted number against that of another optimiser


def draw(n=300, m=4, seed=0):
    """Log-odds that are too bold by a factor, and too low by an amount, for each label."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(-1, 1.5, (n, m))
    bold, low = rng.uniform(0.7, 2, m), rng.uniform(0, 2, m)
    return truth * bold - low, rng.random((n, m)) < expit(truth)


def standardised(logits, weight):
    center = np.average(logits.mean(axis=1), weights=weight)
    scale = np.sqrt(np.average(((logits - center) ** 2).mean(axis=1), weights=weight))
    return (logits - center) / scale, center, scale


def oracle(logits, y, weight, strength):
    """Slopes and intercepts by BFGS from the objective as the docstring has it."""
    z, center, scale = standardised(logits, weight)

    def loss(scores, labels):
        return -(weight @ log_expit(np.where(labels, scores, -scores)))

    def together(theta):
        penalty = 0.5 * ((theta[0] - scale) ** 2 + (theta[1] - center) ** 2)
        return loss(theta[0] * z + theta[1], y).sum() + penalty

    common = minimize(together, [scale, center], options={"gtol": 1e-8}).x
    found = []
    for j in range(y.shape[1]):

        def alone(own, j=j):
            scores = (common[0] + own[0]) * z[:, j] + common[1] + own[1]
            return loss(scores, y[:, j]) + 0.5 * strength * own @ own

        found.append(common + minimize(alone, [0.0, 0.0], options={"gtol": 1e-8}).x)
    slope, bias = np.transpose(found)
    return slope / scale, bias - slope / scale * center


@pytest.mark.parametrize("strength", [64.0, 4.0, 0.25])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_the_penalised_optimum(strength, weighted):
    logits, y = draw()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    fitted = LabelwiseScaling(strength, input="logits")
    fitted.fit(logits, y, sample_weight=weight if weighted else None)
    slope, bias = oracle(logits, y, weight, strength)
    np.testing.assert_allclose(fitted.slope_, slope, atol=FITTED)
    np.testing.assert_allclose(fitted.bias_, bias, atol=FITTED)
    expected = expit(slope * logits + bias)
    np.testing.assert_allclose(fitted.transform(logits), expected, atol=FITTED)


def test_without_a_penalty_it_is_logistic_regression_on_each_label():
    logits, y = draw(1000)
    fitted = LabelwiseScaling(1e-9, input="logits").fit(logits, y)
    for j in range(4):
        alone = LogisticRegression(C=np.inf, tol=1e-8).fit(logits[:, [j]], y[:, j])
        assert fitted.slope_[j] == pytest.approx(alone.coef_[0, 0], rel=FITTED)
        assert fitted.bias_[j] == pytest.approx(alone.intercept_[0], rel=FITTED)


def test_an_endless_penalty_leaves_one_slope_and_one_intercept():
    logits, y = draw()
    fitted = LabelwiseScaling(1e12, input="logits").fit(logits, y)
    np.testing.assert_allclose(fitted.slope_, fitted.slope_[0], rtol=1e-9)
    np.testing.assert_allclose(fitted.bias_, fitted.bias_[0], rtol=1e-9)


def test_every_fit_of_a_path_is_that_of_its_strength_alone():
    logits, y = draw()
    weight = np.ones(len(y))
    for strength, fit in zip(STRENGTHS, labelwise_path(logits, y, weight, STRENGTHS), strict=True):
        (alone,) = labelwise_path(logits, y, weight, [strength])
        np.testing.assert_allclose(fit.slope, alone.slope, atol=FITTED)
        np.testing.assert_allclose(fit.bias, alone.bias, atol=FITTED)


def test_permuting_labels_and_rows_permutes_the_answer():
    logits, y = draw()
    labels, rows = np.array([2, 0, 3, 1]), np.random.default_rng(3).permutation(len(y))
    plain = LabelwiseScaling(4.0, input="logits").fit(logits, y)
    other = LabelwiseScaling(4.0, input="logits")
    other.fit(logits[rows][:, labels], y[rows][:, labels])
    np.testing.assert_allclose(other.slope_, plain.slope_[labels], rtol=1e-9)
    np.testing.assert_allclose(other.bias_, plain.bias_[labels], rtol=1e-9)


def test_probabilities_of_0_and_1_and_labels_never_or_always_there():
    logits, y = draw(200, 5)
    proba = expit(logits)
    y[:, 0], y[:, 1] = False, True
    y[:, 2] = logits[:, 2] > np.median(logits[:, 2])  # which no finite slope separates best
    proba[:20], proba[20:40] = 0, 1  # labels of either sign among them
    for strength in STRENGTHS:
        fitted = LabelwiseScaling(strength).fit(proba, y)
        after = fitted.transform(proba)
        assert np.isfinite(fitted.slope_).all()
        assert ((after > 0) & (after < 1)).all()
        assert log_loss(y.ravel(), after.ravel()) < log_loss(y.ravel(), proba.ravel())


def test_a_label_without_positives_stays_near_the_others_under_a_strong_penalty():
    logits, y = draw(400, 6)
    y[:, 0] = False
    strong, weak = (LabelwiseScaling(s, input="logits").fit(logits, y) for s in (256.0, 0.25))
    assert weak.bias_[0] < strong.bias_[0] < strong.bias_[1:].mean()


def test_no_positives_at_all():
    logits, y = draw(50)
    after = LabelwiseScaling(input="logits").fit(logits, np.zeros_like(y)).transform(logits)
    assert (after < 0.1).all()


def test_where_log_odds_are_cut_off():
    assert odds_limit(logit(np.array([[0.0, 0.01, 0.5, 1.0]]))) == pytest.approx(
        np.log(99) + np.log(2)
    )
    assert odds_limit(np.array([[900.0]])) == pytest.approx(-np.log(np.finfo(float).eps))
    assert odds_limit(np.array([[900.0]], dtype=np.float32)) == pytest.approx(15.94, abs=0.01)
    assert odds_limit(np.array([[np.inf]])) == pytest.approx(-np.log(np.finfo(float).eps))


def test_the_strength_is_the_best_by_cross_validation():
    logits, y = draw(200, seed=5)
    folds = np.arange(200) * 3 // 200
    losses = []
    for strength in STRENGTHS:
        after = np.empty_like(logits)
        for k in range(3):
            known = LabelwiseScaling(strength, input="logits")
            known.fit(logits[folds != k], y[folds != k])
            after[folds == k] = known.transform(logits[folds == k])
        losses.append(log_loss(y.ravel(), after.ravel()))
    fitted = LabelwiseScaling(cv=3, input="logits").fit(logits, y)
    assert fitted.strength_ == STRENGTHS[int(np.argmin(losses))]
    found = cross_fit(labelwise_path, logits, y, np.ones(200), folds)
    tried = len(found.strengths)
    np.testing.assert_allclose(found.log_loss(np.ones(200)) / 4, losses[:tried], rtol=1e-4)
    np.testing.assert_allclose(
        np.log(np.where(y, found.proba(0, logits), 1 - found.proba(0, logits))).sum(axis=1),
        found.label_log_p[0],
        rtol=1e-9,
    )


def test_labels_gain_from_their_own_slopes_and_intercepts():
    logits, y = draw(3000, 8)
    train, test = slice(0, 2000), slice(2000, None)
    fitted = LabelwiseScaling(input="logits").fit(logits[train], y[train])
    common = LabelwiseScaling(1e12, input="logits").fit(logits[train], y[train])
    after, alike, before = (
        log_loss(y[test].ravel(), p.ravel())
        for p in (
            fitted.transform(logits[test]),
            common.transform(logits[test]),
            expit(logits[test]),
        )
    )
    assert after < alike < before


def test_a_saved_model_gives_the_same_answers(tmp_path):
    logits, y = draw()
    fitted = LabelwiseScaling(4.0).fit(expit(logits), y)
    fitted.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.transform(expit(logits)), fitted.transform(expit(logits)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strength": 0.0}, "`strength` must be a finite number greater than 0"),
        ({"strength": "auto"}, "`strength` must be 'cv'; it is 'auto'"),
        ({"cv": 1}, "`cv` must be an integer, 2 or greater"),
    ],
)
def test_bad_settings(settings, message):
    logits, y = draw()
    with pytest.raises(InputError, match=message):
        LabelwiseScaling(input="logits", **settings).fit(logits, y)


def test_one_row_is_too_few_for_cross_validation():
    logits, y = draw(1)
    with pytest.raises(InputError, match="at least 2 rows of positive weight"):
        LabelwiseScaling(input="logits").fit(logits, y)
