"""Decision thresholds against brute force over all that can matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from scipy.special import expit, logit
from sklearn.metrics import f1_score

from altnorm._base.errors import InputError
from altnorm.peers import LabelThresholds


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


@settings(max_examples=40)
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


def test_sparse_and_boolean_labels():
    proba, y = draw()
    expected = LabelThresholds().fit(proba, y).thresholds_
    for labels in (csr_array(y), y.astype(bool)):
        np.testing.assert_array_equal(LabelThresholds().fit(proba, labels).thresholds_, expected)


def test_permuting_labels_and_rows():
    proba, y = draw()
    rows, columns = np.random.default_rng(0).permutation(60), np.array([3, 0, 4, 1, 2])
    fitted = LabelThresholds().fit(proba, y)
    permuted = LabelThresholds().fit(proba[rows][:, columns], y[rows][:, columns])
    np.testing.assert_allclose(permuted.thresholds_, fitted.thresholds_[columns], atol=1e-12)


@pytest.mark.parametrize(
    ("proba", "y", "message"),
    [
        ([[0.2, 1.3]], [[0, 1]], r"must lie in \[0, 1\]; 1 of 2 entries do not.*column 1 \(1.3\)"),
        ([[0.2, 0.3]], [[0, 2]], "`y` must hold only 0 and 1; 1 of 2 entries do not"),
        ([[0.2, 0.3]], [[1]], r"`y` must be a 0/1 matrix of the shape of `proba`, \(1, 2\)"),
    ],
)
def test_bad_input_is_told_in_a_sentence(proba, y, message):
    with pytest.raises(InputError, match=message):
        LabelThresholds().fit(proba, y)
