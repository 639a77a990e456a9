"""Methods of the studies: prior ratios by hand, EM against direct maximisation, one threshold."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score

from experiments._methods import GlobalThreshold, LabelShiftEM, reweigh

EXACT = 1e-12
SOURCE = np.array([0.5, 0.3, 0.2])


def normalise(values):
    return values / values.sum(axis=-1, keepdims=True)


def shifted_batch(n, prior, seed=0):
    """Posteriors under `SOURCE` of Gaussian classes, for rows drawn under `prior`."""
    rng = np.random.default_rng(seed)
    means = 2.0 * np.arange(len(prior))
    x = rng.normal(means[rng.choice(len(prior), n, p=prior)], 1.0)
    return softmax(-0.5 * (x[:, None] - means) ** 2 + np.log(SOURCE), axis=1)


def test_reweighting_is_bayes_rule():
    """A discrete world: the posterior under the new prior, straight from the likelihoods."""
    likelihood = normalise(np.random.default_rng(1).random((3, 8)))  # p(x | class)
    new = np.array([0.2, 0.2, 0.6])
    found = reweigh(normalise(likelihood.T * SOURCE), new, SOURCE)
    np.testing.assert_allclose(found, normalise(likelihood.T * new), atol=EXACT)


def test_em_agrees_with_direct_maximum_likelihood():
    batch = shifted_batch(400, [0.2, 0.2, 0.6])
    fitted = LabelShiftEM(SOURCE, tol=1e-11, max_iter=10_000).fit(batch)

    def negative_log_likelihood(theta):
        return -np.log(batch / SOURCE @ softmax(np.append(theta, 0))).mean()

    oracle = minimize(negative_log_likelihood, [0.0, 0], options={"gtol": 1e-10}, method="BFGS")
    prior = fitted.estimate_prior(batch)
    np.testing.assert_allclose(prior, softmax(np.append(oracle.x, 0)), atol=1e-6)
    # It ends where the mean posterior is the prior.
    np.testing.assert_allclose(fitted.transform(batch).mean(axis=0), prior, atol=1e-9)


def test_em_finds_the_prior_of_the_batch():
    prior = np.array([0.1, 0.3, 0.6])
    fitted = LabelShiftEM(SOURCE).fit(shifted_batch(10, prior))
    found = fitted.estimate_prior(shifted_batch(20_000, prior, seed=1))
    np.testing.assert_allclose(found, prior, atol=0.02)


def test_em_takes_its_source_from_labels_or_predictions():
    proba = shifted_batch(40, [0.2, 0.2, 0.6])
    unseen = LabelShiftEM().fit(proba, np.repeat([0, 1], [30, 10])).source_
    np.testing.assert_allclose(unseen, np.array([30, 10, 5]) / 45, atol=EXACT)
    by_mean = LabelShiftEM("predictions").fit(proba).source_
    np.testing.assert_allclose(by_mean, proba.mean(axis=0), atol=EXACT)


def test_em_says_when_it_has_not_settled():
    proba = shifted_batch(40, [0.2, 0.2, 0.6])
    with pytest.warns(ConvergenceWarning, match="EM has not settled after 2 iterations"):
        LabelShiftEM(SOURCE, max_iter=2).fit(proba).transform(proba)


def test_one_threshold_is_the_best_there_is():
    rng = np.random.default_rng(0)
    z = rng.normal(-1.5, 1.5, (60, 5))
    proba, y = expit(z - 1).round(2), (rng.random(z.shape) < expit(z)).astype(int)
    fitted = GlobalThreshold().fit(proba, y)
    adjusted = fitted.transform(proba)
    np.testing.assert_array_equal(adjusted > 0.5, proba > fitted.threshold_)
    best = max(f1_score(y, proba > t, average="micro") for t in np.unique(proba)[:-1])
    assert f1_score(y, adjusted > 0.5, average="micro") == pytest.approx(best, abs=EXACT)
    inside = (proba > 0) & (proba < 1)
    shift = logit(proba[inside]) - logit(adjusted[inside])
    np.testing.assert_allclose(shift, logit(fitted.threshold_), atol=1e-9)
