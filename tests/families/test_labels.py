"""Several labels per row: thresholds against brute force, slopes against another optimiser."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, logit
from sklearn.metrics import f1_score, log_loss

from altnorm.families import LabelwiseScaling
from altnorm.families.crossfit import STRENGTHS
from altnorm.families.labelwise import fit_odds_tempering, odds_limit
from altnorm.peers import LabelThresholds
from tests.problems import bold_labels, planted_labels


def draw(n=60):
    """With equal probabilities, and some of 0."""
    proba, y = planted_labels(n, 5)
    return proba.round(2), y


def micro_f1(y, decided):
    return f1_score(y, decided, average="micro", zero_division=0)


@settings(max_examples=20)
@given(
    proba=arrays(np.float64, (6, 2), elements=st.sampled_from([0, 1e-310, 0.2, 0.5, 0.7, 1.0])),
    y=arrays(np.int64, (6, 2), elements=st.integers(0, 1)),
)
def test_ties_zeros_and_ones(proba, y):
    proba = np.where(proba < 1e-300, 0, proba)
    threshold = LabelThresholds().fit(proba, y).global_threshold_
    best = max(micro_f1(y, proba > t) for t in np.append(np.unique(proba), 0))
    assert micro_f1(y, proba > threshold) == pytest.approx(best, abs=1e-12)
    assert 0 < threshold < 1


def test_threshold_lies_midway_and_of_equal_ones_near_a_half():
    proba, y = np.array([[0.05, 0.1, 0.6, 0.9]]), np.array([[0, 0, 1, 1]])
    assert LabelThresholds().fit(proba, y).global_threshold_ == pytest.approx(0.35)
    # One right of one decided, or two right of four: 2 * 1 / (1 + 2) = 2 * 2 / (4 + 2).
    proba, y = np.array([[0.45, 0.5, 0.6, 0.99]]), np.array([[1, 0, 0, 1]])
    assert LabelThresholds().fit(proba, y).global_threshold_ == pytest.approx(0.225)


def test_label_thresholds_are_the_best_and_shrink_in_log_odds_by_the_number_of_positive_rows():
    proba, y = draw()
    y[:, 2] = 0
    unshrunk, fitted = (LabelThresholds(shrinkage=size).fit(proba, y) for size in (0, 7))
    for j, predicted in enumerate(unshrunk.predict(proba).T):
        thresholds = np.unique(proba[:, j])[:-1]
        best = max(f1_score(y[:, j], proba[:, j] > t, zero_division=0) for t in thresholds)
        assert f1_score(y[:, j], predicted, zero_division=0) == pytest.approx(best, abs=1e-12)
    common = fitted.global_threshold_
    trust = y.sum(axis=0) / (y.sum(axis=0) + 7)
    expected = expit(trust * logit(unshrunk.thresholds_) + (1 - trust) * logit(common))
    np.testing.assert_allclose(fitted.thresholds_, expected, atol=1e-12)
    assert common == fitted.thresholds_[2] == unshrunk.thresholds_[2]
    # Nothing to find leaves a half.
    np.testing.assert_array_equal(LabelThresholds().fit(proba, 0 * y).thresholds_, 0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_shifts_log_odds_and_keeps_every_decision(dtype):
    proba, y = draw(2000)
    proba = proba.astype(dtype)
    fitted = LabelThresholds().fit(proba, y)
    adjusted = fitted.transform(proba)
    np.testing.assert_array_equal(adjusted > 0.5, fitted.predict(proba))
    for before, after in zip(proba.T, adjusted.T, strict=True):
        assert (np.diff(after[np.argsort(before)]) >= 0).all()
    proba = np.clip(proba, 0.01, 0.99)
    shift = logit(proba) - logit(fitted.transform(proba))
    assert np.ptp(shift, axis=0).max() < 1e-4


def test_decisions_stay_right_next_to_the_threshold():
    """Neighbouring floats on both sides of it, and a threshold that only doubles can hold."""
    low = np.float32(0.3)
    high = np.nextafter(low, np.float32(1))
    proba = np.array([[low], [high], [0], [1]], dtype=np.float32)
    fitted = LabelThresholds(0).fit(proba, [[0], [1], [0], [1]])
    np.testing.assert_array_equal(fitted.predict(proba)[:, 0], [0, 1, 0, 1])
    np.testing.assert_array_equal(fitted.transform(proba)[:, 0] > 0.5, [0, 1, 0, 1])


@pytest.mark.parametrize("threshold", [1e-300, 1 - 1e-12])
def test_double_threshold_on_single_data(threshold):
    fitted = LabelThresholds().fit([[0.2], [0.7]], [[0], [1]])
    fitted.thresholds_ = np.array([threshold])
    proba = np.array([[0], [0.5], [1]], dtype=np.float32)
    adjusted = fitted.transform(proba)
    assert adjusted.dtype == np.float32
    assert adjusted[0, 0] == 0
    assert adjusted[2, 0] == 1
    np.testing.assert_array_equal(adjusted > 0.5, fitted.predict(proba))


def test_a_temperature_of_few_labels_is_shrunk_towards_1():
    """Every label is as predicted, so that no slope is steep enough; the penalty is as few rows."""
    logits = np.tile([[-1.0, 0.5], [2.0, -0.3]], (3, 1))

    def objective(log_slope):
        return -log_expit(np.exp(log_slope) * np.abs(logits)).sum() + 2 * log_slope**2

    slope = fit_odds_tempering(logits, (logits > 0).astype(int), np.ones(6)).slope
    assert slope == pytest.approx(np.exp(minimize_scalar(objective).x), rel=1e-4)


# LabelwiseScaling: its optimum, its limits, and labels that are hard to fit.


FITTED = 1e-4  # a fitted number against that of another optimiser


def standardised(logits, weight):
    center = np.average(logits.mean(axis=1), weights=weight)
    scale = np.sqrt(np.average(((logits - center) ** 2).mean(axis=1), weights=weight))
    return (logits - center) / scale, center, scale


def oracle(logits, y, weight, strength, quantiles):
    """Probabilities by BFGS from the objective as the docstring has it, and where lines bend."""
    z, center, scale = standardised(logits, weight)
    edges, proba = np.quantile(z, quantiles, axis=0), np.empty_like(z)

    def loss(scores, labels):
        return -(weight @ log_expit(np.where(labels, scores, -scores))).sum()

    def together(theta):
        return loss(theta[0] * z + theta[1], y) + 0.5 * ((theta - [scale, center]) ** 2).sum()

    common = minimize(together, [scale, center], options={"gtol": 1e-8}).x
    target = np.append(common, np.zeros(len(quantiles)))
    for j, column in enumerate(z.T):
        bends = [np.maximum(column - edge, 0) for edge in edges[:, j]]
        features = np.column_stack([column, np.ones(len(z)), *bends])

        def alone(theta, features=features, labels=y[:, j]):
            return loss(features @ theta, labels) + 0.5 * strength * ((theta - target) ** 2).sum()

        proba[:, j] = expit(features @ minimize(alone, target, options={"gtol": 1e-8}).x)
    return proba, center + scale * edges


@pytest.mark.parametrize("strength", [64.0, 4.0, 0.25])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bends", [False, True])
def test_the_fit_is_the_penalised_optimum(strength, weighted, bends):
    logits, y = bold_labels()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    fitted = LabelwiseScaling(strength, bends=bends, input="logits")
    fitted.fit(logits, y, sample_weight=weight)
    quantiles = (0.25, 0.5, 0.75) if bends else ()
    proba, edges = oracle(logits, y, weight / weight.mean(), strength, quantiles)
    np.testing.assert_allclose(fitted.transform(logits), proba, atol=FITTED)
    np.testing.assert_allclose(fitted.edges_, edges)


def test_probabilities_of_0_and_1_and_labels_never_or_always_there():
    logits, y = bold_labels(200, 5)
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


def test_where_log_odds_are_cut_off():
    assert odds_limit(logit(np.array([[0.0, 0.01, 0.5, 1.0]]))) == pytest.approx(
        np.log(99) + np.log(2)
    )
    assert odds_limit(np.array([[900.0]])) == pytest.approx(-np.log(np.finfo(float).eps))
    assert odds_limit(np.array([[900.0]], dtype=np.float32)) == pytest.approx(15.94, abs=0.01)
    assert odds_limit(np.array([[np.inf]])) == pytest.approx(-np.log(np.finfo(float).eps))
