"""Drift: silent where nothing changed, heard where something did."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer


@pytest.mark.parametrize(("m", "n"), [(2, 200), (2, 5000), (10, 1000), (150, 200)])
def test_no_alarm_when_nothing_changed(m, n):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        weights = rng.uniform(0.5, 1.5, m) * (3 / m)
        normalizer = AlternatingNormalizer(reference="all").fit(rng.dirichlet(weights, 3000))
        assert not normalizer.drift(rng.dirichlet(weights, n)).drifted


def test_a_changed_class_balance_and_more_doubt_are_heard():
    rng = np.random.default_rng(0)
    normalizer = AlternatingNormalizer().fit(rng.dirichlet([0.2, 0.2, 0.2], 2000))
    drift = normalizer.drift(rng.dirichlet([0.4, 0.1, 0.1], 500))
    assert drift
    assert drift.class_distance > 0.2
    assert "no longer look like those at fit" in str(drift)
    assert f"classes has changed a lot ({drift.class_distance:.0%})" in str(drift)
    drift = normalizer.drift(rng.dirichlet([2.0, 2.0, 2.0], 500))
    assert drift
    assert drift.doubt_now > drift.doubt_before + 0.3


def test_shares_are_counted_by_hand():
    sure, doubt = np.array([[0.99, 0.01], [0.01, 0.99]]), np.full((10, 2), 0.5)
    proba = np.concatenate([sure.repeat([60, 30], axis=0), doubt])
    drift = AlternatingNormalizer().fit(proba).drift(np.tile(proba, (100, 1)))
    assert (drift.doubt_before, drift.doubt_now, bool(drift)) == (0.1, 0.1, False)
    assert drift.class_distance == pytest.approx(0, abs=0.01)
    assert str(drift) == (
        "These predictions look like those at fit: 10.0% are in doubt (10.0% at fit), and the mix "
        "of predicted classes is about the same."
    )
    # Nothing is confident.
    assert not AlternatingNormalizer(reference="all").fit(doubt).drift(doubt).drifted


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
def test_multilabel(mode):
    rng = np.random.default_rng(0)
    proba = rng.beta(0.3, 0.9, size=(800, 5))
    normalizer = AlternatingNormalizer(multilabel=mode).fit(proba)
    assert not normalizer.drift(rng.beta(0.3, 0.9, size=(400, 5))).drifted
    assert normalizer.drift(rng.beta([3, 0.3, 0.3, 0.3, 0.3], 0.3, size=(400, 5))).drifted
