"""Several labels per row: thresholds against brute force, slopes against another optimiser."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.metrics import f1_score, log_loss

from altnorm.families import LabelwiseScaling
from altnorm.families.crossfit import STRENGTHS
from altnorm.families.labelwise import odds_limit
from altnorm.peers import LabelThresholds
from tests.problems import bold_labels


def draw(n=60, m=5, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(-1.5, 1.5, (n, m))
    return expit(z - 1).round(2), (rng.random((n, m)) < expit(z)).astype(int)


def micro_f1(y, decided, weight=None):
    return f1_score(y, decided, average="micro", sample_weight=weight, zero_division=0)


def brute_force(proba, y, weight=None):
    """The best score over all thresholds, one for each distinct probability."""
    return max(micro_f1(y, proba > t, weight) for t in np.append(np.unique(proba), 0))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_common_threshold_is_the_best_there_is(weighted):
    proba, y = draw()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else None
    threshold = LabelThresholds().fit(proba, y, sample_weight=weight).global_threshold_
    found = micro_f1(y, proba > threshold, weight)
    assert found == pytest.approx(brute_force(proba, y, weight), abs=1e-12)


@settings(max_examples=20)
@given(
    proba=arrays(np.float64, (6, 2), elements=st.sampled_from([0, 1e-310, 0.2, 0.5, 0.7, 1.0])),
    y=arrays(np.int64, (6, 2), elements=st.integers(0, 1)),
)
def test_ties_zeros_and_ones(proba, y):
    proba = np.where(proba < 1e-300, 0, proba)
    threshold = LabelThresholds().fit(proba, y).global_threshold_
    assert micro_f1(y, proba > threshold) == pytest.approx(brute_force(proba, y), abs=1e-12)
    assert 0 < threshold < 1


def test_threshold_lies_midway_and_of_equal_ones_near_a_half():
    proba, y = np.array([[0.05, 0.1, 0.6, 0.9]]), np.array([[0, 0, 1, 1]])
    assert LabelThresholds().fit(proba, y).global_threshold_ == pytest.approx(0.35)
    # One right of one decided, or two right of four: 2 * 1 / (1 + 2) = 2 * 2 / (4 + 2).
    proba, y = np.array([[0.45, 0.5, 0.6, 0.99]]), np.array([[1, 0, 0, 1]])
    assert LabelThresholds().fit(proba, y).global_threshold_ == pytest.approx(0.225)


def test_nothing_to_find_leaves_a_half():
    proba, y = draw()
    np.testing.assert_array_equal(LabelThresholds().fit(proba, 0 * y).thresholds_, 0.5)


def test_label_thresholds_are_the_best_there_are():
    proba, y = draw()
    fitted = LabelThresholds(shrinkage=0).fit(proba, y)
    for j, predicted in enumerate(fitted.predict(proba).T):
        expected = max(f1_score(y[:, j], proba[:, j] > t) for t in np.unique(proba[:, j])[:-1])
        assert f1_score(y[:, j], predicted) == pytest.approx(expected, abs=1e-12)


def test_label_thresholds_shrink_in_log_odds_by_the_number_of_positive_rows():
    proba, y = draw()
    y[:, 2] = 0
    own = LabelThresholds(shrinkage=0).fit(proba, y)
    fitted = LabelThresholds(shrinkage=7).fit(proba, y)
    common = fitted.global_threshold_
    trust = y.sum(axis=0) / (y.sum(axis=0) + 7)
    expected = expit(trust * logit(own.thresholds_) + (1 - trust) * logit(common))
    np.testing.assert_allclose(fitted.thresholds_, expected, atol=1e-12)
    assert common == fitted.thresholds_[2] == own.thresholds_[2]


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


# LabelwiseScaling: its optimum, its limits, and labels that are hard to fit.


FITTED = 1e-4  # a fitted number against that of another optimiser


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
    logits, y = bold_labels()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    weight /= weight.mean()
    fitted = LabelwiseScaling(strength, input="logits")
    fitted.fit(logits, y, sample_weight=weight if weighted else None)
    slope, bias = oracle(logits, y, weight, strength)
    np.testing.assert_allclose(fitted.slope_, slope, atol=FITTED)
    np.testing.assert_allclose(fitted.bias_, bias, atol=FITTED)
    expected = expit(slope * logits + bias)
    np.testing.assert_allclose(fitted.transform(logits), expected, atol=FITTED)


def test_bent_lines_are_the_penalised_optimum():
    """From the fit without bends to all labels together, as the straight ones."""
    logits, y = bold_labels()
    weight = np.ones(len(y))
    z, center, scale = standardised(logits, weight)
    common, bias = oracle(logits, y, weight, 1e9)
    target = np.array([common[0] * scale, bias[0] + common[0] * center, 0, 0, 0])
    fitted = LabelwiseScaling(4.0, bends=True, input="logits").fit(logits, y)
    for j in range(y.shape[1]):
        edges = np.quantile(z[:, j], [0.25, 0.5, 0.75])
        bends = np.maximum(z[:, [j]] - edges, 0)
        features = np.column_stack([z[:, j], np.ones(len(z)), bends])

        def loss(theta, features=features, j=j):
            scores = features @ theta
            fit = -log_expit(np.where(y[:, j], scores, -scores)).sum()
            return fit + 2.0 * ((theta - target) ** 2).sum()

        best = minimize(loss, target, options={"gtol": 1e-8})
        expected = expit(features @ best.x)
        np.testing.assert_allclose(fitted.transform(logits)[:, j], expected, atol=FITTED)
        np.testing.assert_allclose(fitted.edges_[:, j], center + scale * edges)


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


def test_no_positives_at_all():
    logits, y = bold_labels(50)
    after = LabelwiseScaling(input="logits").fit(logits, np.zeros_like(y)).transform(logits)
    assert (after < 0.1).all()


def test_where_log_odds_are_cut_off():
    assert odds_limit(logit(np.array([[0.0, 0.01, 0.5, 1.0]]))) == pytest.approx(
        np.log(99) + np.log(2)
    )
    assert odds_limit(np.array([[900.0]])) == pytest.approx(-np.log(np.finfo(float).eps))
    assert odds_limit(np.array([[900.0]], dtype=np.float32)) == pytest.approx(15.94, abs=0.01)
    assert odds_limit(np.array([[np.inf]])) == pytest.approx(-np.log(np.finfo(float).eps))
