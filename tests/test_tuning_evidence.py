"""AlternatingNormalizerCV finds what is there, leaves alone what is not, and is judged fairly."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.peers import Identity
from tests.problems import MODES, SMALL, planted


def calibrated(n=300, m=4, seed=0):
    """Labels drawn from the very probabilities: nothing can be gained."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(m, 0.5), n)
    return proba, (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def unrelated(n=300, m=4, seed=0):
    """Predictions with a taste of their own, and labels that know nothing of them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(0.5 * np.linspace(0.5, 2, m), n)
    return proba, rng.integers(m, size=n)


def accuracy(normalizer, proba, y):
    return (normalizer.predict(proba) == y).mean()


# What is there is found.


def test_a_planted_bias_is_found_and_pays_on_fresh_data():
    normalizer = AlternatingNormalizerCV(**SMALL).fit(*planted())
    proba, y = planted(4000, seed=1)
    gain = accuracy(normalizer, proba, y) - (proba.argmax(axis=1) == y).mean()
    verdict = normalizer.verdict_
    assert verdict.adopted
    assert verdict.gain > 0.05
    assert gain > 0.05
    assert verdict.ci_low - 0.03 < gain < verdict.ci_high + 0.03
    assert verdict.n_fixed > verdict.n_broken
    assert "Adopted: accuracy" in str(verdict)


def test_the_best_normalizer_is_the_best_setting_fitted_on_all_rows():
    proba, y = planted()
    tuned = AlternatingNormalizerCV(**SMALL, prior=None).fit(proba, y)
    best = tuned.best_normalizer_
    assert isinstance(best, AlternatingNormalizer)
    assert {name: getattr(best, name) for name in tuned.best_params_} == tuned.best_params_
    by_hand = AlternatingNormalizer(**tuned.best_params_).fit(proba, y)
    fresh, _ = planted(seed=1)
    np.testing.assert_allclose(tuned.transform(fresh), by_hand.transform(fresh), rtol=1e-12)
    np.testing.assert_array_equal(tuned.predict(fresh), by_hand.predict(fresh))


def test_with_the_paper_grid():
    proba, y = planted(400)
    normalizer = AlternatingNormalizerCV(random_state=0).fit(proba, y)
    fresh, truth = planted(2000, seed=1)
    assert normalizer.verdict_.adopted
    assert accuracy(normalizer, fresh, truth) > (fresh.argmax(axis=1) == truth).mean() + 0.05
    assert set(normalizer.cv_results_["depth"]) == {1, 2, 3, 4, 5}
    assert set(normalizer.cv_results_["alpha"]) <= set(normalizer.alphas)


# What is not there is left alone.


def test_calibrated_predictions_are_left_alone():
    """The probabilities are right, so that every adjustment does harm, if any."""
    adopted = 0
    for seed in range(60):
        proba, y = calibrated(200, seed=seed)
        normalizer = AlternatingNormalizerCV(**SMALL).fit(proba, y)
        adopted += normalizer.verdict_.adopted
        if not normalizer.verdict_.adopted:
            assert isinstance(normalizer.best_normalizer_, Identity)
            np.testing.assert_array_equal(normalizer.transform(proba), proba)
            np.testing.assert_array_equal(normalizer.predict(proba), proba.argmax(axis=1))
    assert adopted <= 2


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_labels_unrelated_to_the_predictions_are_no_evidence(n_repeats):
    """Before and after are equally (and hopelessly) good: adopted at most at the level."""
    p_values, gains = [], []
    for seed in range(60):
        normalizer = AlternatingNormalizerCV(**SMALLn_repeats)
        verdict = normalizer.fit(*unrelated(200, seed=seed)).verdict_
        p_values.append(verdict.p_value if verdict.gain > 0 else 1.0)
        gains.append(verdict.gain)
    level = 0.05
    slack = 2.5 * np.sqrt(level * (1 - level) / 60)
    assert np.mean(np.array(p_values) < level) <= level + slack
    # Of several repeats the verdict tells a cautious one.
    assert -0.02 < np.mean(gains) < 0.01


def test_significance_is_the_level():
    """Evidence of middling strength, which one level accepts and a stricter one does not."""
    proba, y = planted(20, seed=2)
    settings = {**SMALL, "n_repeats": 1}
    verdict = AlternatingNormalizerCV(**settings, significance=0.9).fit(proba, y).verdict_
    assert verdict.adopted
    assert 0.01 < verdict.p_value < 0.9
    strict = AlternatingNormalizerCV(**settings, significance=verdict.p_value / 2).fit(proba, y)
    assert not strict.verdict_.adopted
    # What is adopted is reported without the luck of having passed.
    assert strict.verdict_.gain > verdict.gain > 0
    np.testing.assert_array_equal(strict.transform(proba), proba)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mode", [None, *MODES])
def test_without_evidence_predictions_come_back_bit_for_bit(mode, dtype):
    rng = np.random.default_rng(0)
    if mode is None:
        proba, y = unrelated(100)
    else:
        proba, y = rng.random((100, 4)), rng.integers(2, size=(100, 4))
    normalizer = AlternatingNormalizerCV(**SMALL, multilabel=mode, significance=1e-9)
    normalizer.fit(proba.astype(dtype), y)
    assert not normalizer.verdict_.adopted
    fresh = proba[::-1].astype(dtype)
    assert normalizer.transform(fresh).dtype == dtype
    np.testing.assert_array_equal(normalizer.transform(fresh), fresh)


# What is reported is honest.


def test_the_gain_is_not_the_maximum_over_the_grid():
    """On labels that are noise the best setting looks better than it is; the verdict does not."""
    looks, verdicts = [], []
    for seed in range(20):
        normalizer = AlternatingNormalizerCV(**SMALL).fit(*unrelated(150, seed=seed))
        looks.append(normalizer.cv_results_["gain"].max())
        verdicts.append(normalizer.verdict_.gain)
    assert np.mean(looks) > 0.015
    assert np.mean(verdicts) < np.mean(looks) - 0.01
