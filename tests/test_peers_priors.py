"""Prior ratios against hand computation, and EM against direct maximisation."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from altnorm.peers import (
    BatchCalibration,
    BiasCorrectedTemperature,
    LabelShiftEM,
    PriorReweighting,
)

EXACT = 1e-12


def normalise(values):
    return values / values.sum(axis=-1, keepdims=True)


@pytest.fixture
def proba():
    return normalise(np.random.default_rng(0).random((40, 3)) ** 2)


def test_reweighting_multiplies_by_the_ratio(proba):
    y = np.repeat([0, 1, 2], [20, 15, 5])
    fitted = PriorReweighting().fit(proba, y)
    np.testing.assert_allclose(fitted.prior_, [0.5, 0.375, 0.125], atol=EXACT)
    np.testing.assert_allclose(fitted.source_prior_, proba.mean(axis=0), atol=EXACT)
    expected = normalise(proba * [0.5, 0.375, 0.125] / proba.mean(axis=0))
    np.testing.assert_allclose(fitted.transform(proba), expected, atol=EXACT)


def test_reweighting_is_bayes_rule():
    """A discrete world: the posterior under the new prior, straight from the likelihoods."""
    likelihood = normalise(np.random.default_rng(1).random((3, 8)))  # p(x | class)
    old, new = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.2, 0.6])
    posterior = normalise(likelihood.T * old)
    fitted = PriorReweighting(new, source_prior=old).fit(posterior)
    np.testing.assert_allclose(
        fitted.transform(posterior), normalise(likelihood.T * new), atol=EXACT
    )


def test_there_and_back_again(proba):
    old, new = [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]
    there = PriorReweighting(new, source_prior=old).fit(proba).transform(proba)
    back = PriorReweighting(old, source_prior=new).fit(there).transform(there)
    np.testing.assert_allclose(back, proba, atol=EXACT)


def test_uniform_is_also_what_no_labels_give(proba):
    by_default = PriorReweighting().fit(proba).transform(proba)
    np.testing.assert_array_equal(
        PriorReweighting("uniform").fit(proba).transform(proba), by_default
    )


def test_an_unseen_class_is_rare_and_not_impossible(proba):
    y = np.repeat([0, 1], [30, 10])
    np.testing.assert_allclose(
        PriorReweighting().fit(proba, y).prior_, np.array([30, 10, 5]) / 45, atol=EXACT
    )
    assert LabelShiftEM(calibrate=False).fit(proba, y).source_prior_[2] == pytest.approx(5 / 45)


def test_a_prior_of_zero_removes_a_class_but_never_the_last(proba):
    fitted = PriorReweighting([0.5, 0.5, 0]).fit(proba)
    np.testing.assert_array_equal(fitted.transform(proba)[:, 2], 0)
    with pytest.warns(
        UserWarning, match="1 of 2 rows give probability only to classes whose prior"
    ):
        adjusted = fitted.transform([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(adjusted, [[1, 0, 0], [0, 0, 1]])


def shifted_batch(n, prior, source, seed=0):
    """Posteriors under `source` of Gaussian classes, for rows drawn under `prior`."""
    rng = np.random.default_rng(seed)
    means = 2.0 * np.arange(len(prior))
    x = rng.normal(means[rng.choice(len(prior), n, p=prior)], 1.0)
    return softmax(-0.5 * (x[:, None] - means) ** 2 + np.log(source), axis=1)


def test_em_agrees_with_direct_maximum_likelihood():
    source = np.array([0.5, 0.3, 0.2])
    batch = shifted_batch(400, [0.2, 0.2, 0.6], source)
    fitted = LabelShiftEM(source, calibrate=False, tol=1e-11, max_iter=10_000).fit(batch)

    def negative_log_likelihood(theta):
        return -np.log(batch / source @ softmax(np.append(theta, 0))).mean()

    oracle = minimize(negative_log_likelihood, [0.0, 0], options={"gtol": 1e-10}, method="BFGS")
    np.testing.assert_allclose(
        fitted.estimate_prior(batch), softmax(np.append(oracle.x, 0)), atol=1e-6
    )


def test_em_finds_the_prior_of_the_batch():
    source, prior = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    fitted = LabelShiftEM(source, calibrate=False).fit(shifted_batch(10, prior, source))
    found = fitted.estimate_prior(shifted_batch(20_000, prior, source, seed=1))
    np.testing.assert_allclose(found, prior, atol=0.02)


def test_em_ends_where_the_mean_posterior_is_the_prior():
    source = np.array([0.5, 0.3, 0.2])
    batch = shifted_batch(300, [0.3, 0.4, 0.3], source)
    fitted = LabelShiftEM(source, calibrate=False, tol=1e-12, max_iter=10_000).fit(batch)
    prior, adjusted = fitted.estimate_prior(batch), fitted.transform(batch)
    np.testing.assert_allclose(adjusted.mean(axis=0), prior, atol=1e-10)
    np.testing.assert_allclose(adjusted, normalise(batch * prior / source), atol=EXACT)


def test_em_source_prior_from_labels_and_predictions(proba):
    y = np.repeat([0, 1, 2], [20, 15, 5])
    weight = np.linspace(1, 2, 40)
    by_labels = LabelShiftEM("counted").fit(proba, y, sample_weight=weight).source_prior_
    np.testing.assert_allclose(by_labels, np.bincount(y, weight) / weight.sum(), atol=EXACT)
    by_mean = (
        LabelShiftEM("predictions", calibrate=False).fit(proba, sample_weight=weight).source_prior_
    )
    np.testing.assert_allclose(by_mean, weight @ proba / weight.sum(), atol=EXACT)


def test_em_depends_on_the_batch_and_says_when_it_has_not_settled(proba):
    fitted = LabelShiftEM([0.5, 0.3, 0.2], calibrate=False).fit(proba)
    assert not np.allclose(fitted.transform(proba)[:10], fitted.transform(proba[:10]))
    with pytest.warns(ConvergenceWarning, match="EM has not settled after 2 iterations"):
        LabelShiftEM([0.5, 0.3, 0.2], calibrate=False, max_iter=2).fit(proba).transform(proba)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_batch_calibration_divides_by_the_mean(proba, gamma):
    other = proba[:7] ** 0.5
    other = normalise(other)
    by_fit = BatchCalibration(gamma=gamma).fit(proba)
    np.testing.assert_allclose(
        by_fit.transform(other), normalise(other / proba.mean(axis=0) ** gamma), atol=EXACT
    )
    by_batch = BatchCalibration("transform", gamma=gamma).fit(proba)
    np.testing.assert_allclose(
        by_batch.transform(other), normalise(other / other.mean(axis=0) ** gamma), atol=EXACT
    )


def test_batch_calibration_on_its_fit_batch_is_uniform_reweighting(proba):
    np.testing.assert_allclose(
        BatchCalibration().fit_transform(proba),
        PriorReweighting("uniform").fit_transform(proba),
        atol=EXACT,
    )


def test_splitting_the_batch_changes_nothing_where_the_batch_is_the_validation_set(proba):
    for peer in (PriorReweighting(), BatchCalibration()):
        fitted = peer.fit(proba)
        parts = np.concatenate([fitted.transform(proba[:9]), fitted.transform(proba[9:])])
        np.testing.assert_allclose(parts, fitted.transform(proba), atol=EXACT)


def test_em_is_calibrated_first_unless_bare():
    """Twice as confident as it should be: the bare method believes it, the default does not."""
    rng = np.random.default_rng(0)

    def draw(n, prior):
        y = rng.choice(3, n, p=prior)
        return softmax(2 * 2.25 * (rng.normal(size=(n, 3)) / 1.5 + np.eye(3)[y]), axis=1), y

    proba, y = draw(3000, [1 / 3, 1 / 3, 1 / 3])
    new, truth = draw(3000, [0.1, 0.2, 0.7])
    careful, bare = (LabelShiftEM(calibrate=c).fit(proba, y) for c in (True, False))
    bcts = BiasCorrectedTemperature().fit(proba, y)
    by_hand = LabelShiftEM("predictions", calibrate=False).fit(bcts.transform(proba))
    np.testing.assert_allclose(
        careful.transform(new), by_hand.transform(bcts.transform(new)), atol=1e-6
    )
    wanted = np.bincount(truth) / truth.size
    error = [np.abs(one.estimate_prior(new) - wanted).sum() for one in (careful, bare)]
    assert error[0] < 0.05 < error[1]
