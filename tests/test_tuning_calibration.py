"""Probabilities are calibrated, and no decision changes."""

import numpy as np
import pytest
from altnorm.adjuster.calibration import (
    FEWEST,
    Temperatures,
    cool,
    fit_temperatures,
    keep_decisions,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn import config_context
from sklearn.metrics import log_loss

from altnorm import Adjuster
from altnorm.peers import BiasCorrectedTemperature, TemperatureScaling
from tests.problems import planted, planted_labels


@given(st.integers(0, 10_000), st.integers(2, 7), st.sampled_from([np.float64, np.float32]))
def test_decisions_are_kept(seed, m, dtype):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(m, 0.7), 20).astype(dtype)
    proba[:3] = 1 / m
    decided = rng.integers(m, size=20)
    kept = keep_decisions(proba, decided)
    assert kept.dtype == dtype
    np.testing.assert_array_equal(kept.argmax(axis=1), decided)
    np.testing.assert_allclose(kept.sum(axis=1), 1, rtol=1e-5)
    assert (kept >= 0).all()
    same = proba.argmax(axis=1) == decided
    np.testing.assert_array_equal(kept[same], proba[same])


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_row_that_keeps_the_decision(seed):
    """Against a general optimiser: the smallest divergence from the row as it was."""
    rng = np.random.default_rng(seed)
    p, decided = rng.dirichlet(np.ones(4)), int(rng.integers(4))

    def divergence(z):
        q = softmax(z)
        below = np.maximum(0, q - q[decided])  # how far others are ahead
        return p @ np.log(p / q) + 1e4 * (below @ below)

    best = min(
        (minimize(divergence, rng.normal(size=4), method="BFGS") for _ in range(5)),
        key=lambda found: found.fun,
    )
    kept = keep_decisions(p[None], np.array([decided]))[0]
    np.testing.assert_allclose(kept, softmax(best.x), atol=2e-3)


def test_temperatures_of_the_two_groups_are_those_of_each():
    proba, y = planted(1200)
    touched = np.arange(1200) < 700
    found = fit_temperatures(proba, touched, y, np.ones(1200))
    for group, temperature in ((touched, found.touched), (~touched, found.others)):
        alone = TemperatureScaling().fit(proba[group], y[group]).temperature_
        assert temperature == pytest.approx(alone, rel=0.01)
    cooled = cool(proba, touched, found)
    expected = softmax(np.log(proba[touched]) / found.touched, axis=1)
    np.testing.assert_allclose(cooled[touched], expected, rtol=1e-9)


def test_rows_of_weight_0_have_no_part_in_the_temperatures():
    proba, y = planted(900)
    touched, weight = np.arange(900) % 3 == 0, np.random.default_rng(0).integers(0, 3, 900)
    used = weight > 0
    found = fit_temperatures(proba, touched, y, weight.astype(float))
    alone = fit_temperatures(proba[used], touched[used], y[used], weight[used].astype(float))
    np.testing.assert_allclose(found, alone, rtol=1e-12)


def test_a_small_group_takes_the_temperature_of_all():
    proba, y = planted(900)
    few = fit_temperatures(proba, np.arange(900) < FEWEST - 1, y, np.ones(900))
    one = fit_temperatures(proba, np.zeros(900, dtype=bool), y, np.ones(900))
    assert few.touched == pytest.approx(one.others, rel=1e-9)
    assert few.others != pytest.approx(one.others, rel=1e-9)


def test_small_blocks_give_the_same():
    proba, y = planted(90)
    touched, temperatures = np.arange(90) % 2 == 0, Temperatures(0.5, 2.0)
    cooled, kept = cool(proba, touched, temperatures), keep_decisions(proba, y)
    with config_context(working_memory=1e-6):  # one row at a time
        np.testing.assert_array_equal(cool(proba, touched, temperatures), cooled)
        np.testing.assert_array_equal(keep_decisions(proba, y), kept)
    assert keep_decisions(proba, y, overwrite=True) is proba
    np.testing.assert_array_equal(proba, kept)


def test_rows_that_are_always_right_get_no_infinite_confidence():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    proba = softmax(np.log(0.8) * (1 - np.eye(3)[y]) * 4, axis=1)
    found = fit_temperatures(proba, np.zeros(200, dtype=bool), y, np.ones(200))
    assert found.others > 0.05
    assert cool(proba, np.zeros(200, dtype=bool), Temperatures(1.0, found.others)).max() < 1


@pytest.mark.parametrize("families", [("alternating",), ("bias",), ("alternating", "matrix")])
def test_calibration_lowers_the_loss_and_changes_no_decision(families):
    proba, y = planted(800)
    plain, calibrated = (Adjuster(families, calibrate=flag).fit(proba, y) for flag in (False, True))
    fresh, truth = planted(4000, seed=1)
    np.testing.assert_array_equal(plain.predict(fresh), calibrated.predict(fresh))
    losses = [log_loss(truth, one.transform(fresh)) for one in (plain, calibrated)]
    assert losses[1] <= losses[0] + 1e-3
    bcts = BiasCorrectedTemperature().fit(proba, y)
    assert losses[1] < 1.05 * log_loss(truth, bcts.transform(fresh))


def test_where_no_family_is_adopted_probabilities_still_are_calibrated():
    """An overconfident classifier whose decisions are the best there are."""
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(2000, 4))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    proba = softmax(3 * z, axis=1)
    fitted = Adjuster().fit(proba[:1000], y[:1000])
    assert fitted.family_ is None
    assert fitted.calibration_.adopted
    assert fitted.calibration_.scoring == "neg_log_loss"
    after = fitted.transform(proba[1000:])
    np.testing.assert_array_equal(after.argmax(axis=1), proba[1000:].argmax(axis=1))
    assert log_loss(y[1000:], after) < log_loss(y[1000:], proba[1000:]) - 0.1


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
def test_several_labels(mode):
    proba, y = planted_labels(600)
    plain, calibrated = (
        Adjuster(multilabel=mode, calibrate=flag).fit(proba, y) for flag in (False, True)
    )
    fresh, truth = planted_labels(2000, seed=1)
    np.testing.assert_array_equal(plain.predict(fresh), calibrated.predict(fresh))
    before, after = (
        -np.log(np.where(truth == 1, p, 1 - p)).mean()
        for p in (plain.transform(fresh), calibrated.transform(fresh))
    )
    assert after <= before + 1e-3
