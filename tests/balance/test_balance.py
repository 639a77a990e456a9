"""Another class balance: the estimate, the test, the record, and an estimator that adapts."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, softmax
from sklearn.base import clone

from altnorm import Adjuster, InputError, balance as numerics, load
from altnorm.adjuster.adaptation import _representative
from altnorm.balance import (
    Sample,
    energy_test,
    estimate_balance,
    fit_shares,
    look_for_shift,
    spread_rows,
)
from altnorm.peers import Identity, TemperatureScaling
from tests.problems import planted_labels

OLD, NEW = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
CONVERGED = 1e-4  # what an optimiser that knows nothing of EM agrees to
ROUNDING = 1e-9
SIGNAL = 1.6


def draw(n, balance, seed, *, bias=0.0, slope=1.0):
    """Probabilities that are calibrated under the old balance, unless bias or slope change them."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=balance)
    scores = SIGNAL * (rng.normal(size=(n, 3)) + SIGNAL * np.eye(3)[codes]) + np.log(OLD)
    return softmax(slope * scores + bias * np.eye(3)[0], axis=1), codes


def rows(proba):
    return Sample(proba, proba)


# The estimate


def test_shares_are_the_most_probable_ones():
    density = draw(300, NEW, 0)[0] / OLD
    pseudo = 0.5 * 3 * OLD

    def loss(free):
        shares = softmax(np.append(free, 0.0))
        return -np.log(density @ shares).sum() - pseudo @ np.log(shares)

    expected = softmax(np.append(minimize(loss, np.zeros(2), tol=1e-12).x, 0.0))
    np.testing.assert_allclose(fit_shares(density, pseudo, start=OLD), expected, atol=CONVERGED)


def test_intervals_hold_the_true_shares():
    """Of 60 samples with 3 shares each: 95 % of intervals should, and some should not."""
    labelled, codes = draw(1000, OLD, 0)
    inside = []
    for seed in range(60):
        estimate = estimate_balance(labelled, codes, draw(300, NEW, 1 + seed)[0], OLD)
        assert (estimate.low <= estimate.shares).all()
        assert (estimate.shares <= estimate.high).all()
        inside += ((estimate.low <= NEW) & (estimate.high >= NEW)).tolist()
    assert 0.9 <= np.mean(inside) < 1


def test_the_estimate_follows_permuted_classes():
    order = np.array([2, 0, 1])
    (labelled, codes), new = draw(1000, OLD, 0), draw(500, NEW, 4)[0]
    moved = np.argsort(order)[codes]
    plain = estimate_balance(labelled, codes, new, OLD)
    permuted = estimate_balance(labelled[:, order], moved, new[:, order], OLD[order])
    np.testing.assert_allclose(permuted.shares, plain.shares[order], atol=ROUNDING)
    np.testing.assert_allclose(permuted.high, plain.high[order], atol=ROUNDING)


# The test


def p_value(labelled, new, calibrate=lambda p: p):
    proba, codes = labelled
    old, new = (Sample(p, calibrate(p)) for p in (proba, new))
    before = old.calibrated.mean(axis=0)
    after = estimate_balance(old.calibrated, codes, new.calibrated, before).shares
    return energy_test(old, codes, new, before, after).p_value


@pytest.fixture
def few_draws(monkeypatch):
    """As many as a p-value of 0.05 needs: the level stays."""
    monkeypatch.setattr(numerics, "N_DRAWS", 59)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("balance", "bias"), [(OLD, 0.0), (NEW, 0.0), (NEW, 1.0)], ids=["same", "other", "leaning"]
)
def test_label_shift_is_seldom_rejected(balance, bias):
    """Also of probabilities that lean to a class, with but a temperature to calibrate them."""
    p_values = np.empty(60)
    for k in range(60):
        labelled, new = (
            draw(200, OLD, 2 * k, bias=bias),
            draw(200, balance, 2 * k + 1, bias=bias)[0],
        )
        model = TemperatureScaling() if bias else Identity()
        p_values[k] = p_value(labelled, new, model.fit(*labelled).transform)
    assert np.mean(p_values <= 0.05) <= 0.1
    assert np.mean(p_values <= 0.5) > 0.25  # and it is a p-value, not always large


@pytest.mark.parametrize(
    "change", [{"bias": 1.5}, {"bias": -1.5}, {"slope": 1.4}, {"slope": 0.7}], ids=str
)
def test_other_changes_are_seen(change):
    assert p_value(draw(600, OLD, 0), draw(1000, OLD, 5, **change)[0]) <= 0.05


def test_the_energy_is_the_distance_between_samples():
    """Against the definition: with one class there is no balance to fit."""
    labelled, new = (draw(n, OLD, seed)[0] for n, seed in ((40, 6), (30, 7)))
    x, z = (log_softmax(np.log(p), axis=1) for p in (labelled, new))
    x, z = (v - v.mean(axis=1, keepdims=True) for v in (x, z))
    expected = 2 * cdist(x, z).mean() - cdist(x, x).mean() - cdist(z, z).mean()
    codes, only_first = np.zeros(40, dtype=int), np.array([1.0, 0.0, 0.0])
    means = numerics._class_means(codes, 3)
    fit = numerics._Fit.build(rows(labelled), rows(new), means, OLD, only_first)
    difference = np.append(np.full(40, 1 / 40), np.full(30, -1 / 30))
    np.testing.assert_allclose(fit.distance(difference[None])[0], expected, rtol=1e-6)


def test_too_few_rows_contradict_nothing():
    labelled, codes = draw(300, OLD, 0)
    for n, n_new in ((300, 1), (1, 300)):
        test = energy_test(rows(labelled[:n]), codes[:n], rows(labelled[:n_new]), OLD, NEW)
        assert test == (0.0, 1.0)
    for n in (0, 1):  # rows of a class
        keep = np.sort(np.concatenate([np.flatnonzero(codes != 2), np.flatnonzero(codes == 2)[:n]]))
        test = energy_test(rows(labelled[keep]), codes[keep], rows(labelled), OLD, OLD)
        assert np.isfinite(test.energy)


def test_rows_are_spread_over_the_classes():
    codes = np.repeat([0, 1, 2], [1000, 100, 5])
    kept = spread_rows(codes, np.ones(3), 300)
    counts = np.bincount(codes[kept])
    assert counts[1:].tolist() == [100, 5]
    assert counts[0] == 195
    assert np.unique(kept).size == kept.size
    np.testing.assert_array_equal(spread_rows(codes, np.ones(3), 2000), np.arange(codes.size))
    by_share = np.bincount(codes[spread_rows(codes, np.array([0.9, 0.1, 0.0]), 60)])
    assert by_share[0] > 2 * by_share[1] > 0


# The record


REJECTED = {"shift_rejected": True, "p_value": 0.002}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "The share of class"),
        ({"n_changed": 40}, "Not adapted: if only the class balance changed, 40 of 300 decisions"),
        (REJECTED, "Not adapted: something other than the class balance has changed (p = 0.002, 3"),
        ({"adapted": True, "n_changed": 1000}, "assuming that nothing else changed: 1,000 of 300"),
        (REJECTED | {"adapted": True}, "although the predictions contradict that (p = 0.002)"),
    ],
)
def test_a_shift_is_told_in_words(changes, words):
    labelled, codes = draw(300, OLD, 0)
    shift = look_for_shift(rows(labelled), codes, rows(draw(300, NEW, 1)[0]), OLD)
    assert words in str(replace(shift, **changes))


# An estimator


@cache
def fitted(family="bias", bias=0.0, scoring=None):
    """Fitted to rows that are calibrated, or lean to a class, under the old balance."""
    return Adjuster((family,), scoring=scoring).fit(*draw(1500, OLD, 0, bias=bias))


@pytest.mark.parametrize(
    ("family", "bias"), [("bias", 0.0), ("bias", 1.5), ("matrix", 1.5), ("alternating", 1.5)]
)
def test_adapting_gains_what_knowing_the_balance_gains(family, bias):
    adjuster = fitted(family, bias)
    assert adjuster.family_ == family
    proba, codes = draw(1500, NEW, 1, bias=bias)
    before = adjuster.transform(proba)
    adapted = adjuster.adapt(proba, assume="label_shift")
    np.testing.assert_allclose(adapted.shift_.after, NEW, atol=0.06)
    base, mine = (np.mean(model.predict(proba) == codes) for model in (adjuster, adapted))
    calibrated = proba * np.exp(-bias * np.eye(3)[0])
    oracle = np.mean((calibrated * NEW / OLD).argmax(axis=1) == codes)
    assert mine - base > 0.85 * (oracle - base) > 0.02
    assert adapted.shift_.adapted
    changed = (adapted.predict(proba) != adjuster.predict(proba)).sum()
    assert adapted.shift_.n_changed == changed > 0
    np.testing.assert_array_equal(adjuster.transform(proba), before)
    if family != "alternating":  # probabilities are multiplied by the ratio
        expected = before * np.divide(adapted.shift_.after, adapted.shift_.before)
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(adapted.transform(proba), expected, atol=ROUNDING)


def test_without_a_word_nothing_changes():
    adjuster, proba = fitted(), draw(800, NEW, 1)[0]
    copy = adjuster.adapt(proba)
    np.testing.assert_array_equal(copy.transform(proba), adjuster.transform(proba))
    assert not copy.shift_.adapted
    assert not hasattr(adjuster, "shift_")
    word = adjuster.adapt(proba, assume="label_shift").shift_
    assert {**vars(copy.shift_), "adapted": True} == vars(word)
    assert copy.shift_.n_changed > 0
    assert not hasattr(clone(copy), "shift_")
    assert not hasattr(copy.fit(*draw(300, OLD, 0)), "shift_")


def test_a_rejected_assumption_is_refused_unless_one_insists():
    adjuster, proba = fitted(), draw(800, OLD, 1, slope=1.6)[0]
    assert adjuster.adapt(proba).shift_.shift_rejected
    with pytest.raises(InputError, match=r"something else has changed \(p") as caught:
        adjuster.adapt(proba, assume="label_shift")
    assert caught.value.code == "shift_rejected"
    assert "insist=True" in caught.value.remedy
    insisted = adjuster.adapt(proba, assume="label_shift", insist=True)
    assert insisted.shift_.adapted
    assert insisted.shift_.shift_rejected


def test_balanced_decisions_stay():
    """Each class weighs the same whatever its share: only the probabilities change."""
    adjuster, proba = fitted(scoring="balanced_accuracy"), draw(800, NEW, 1)[0]
    adapted = adjuster.adapt(proba, assume="label_shift")
    assert adapted.shift_.n_changed == 0
    assert np.abs(adapted.transform(proba) - adjuster.transform(proba)).max() > 0.1


def test_refusals():
    adjuster, proba = fitted(), draw(300, NEW, 1)[0]
    adapted = adjuster.adapt(proba, assume="label_shift", insist=True)
    several, labels = planted_labels(100)
    tagger = Adjuster(("bias",), multilabel="labelwise").fit(several, labels)
    assert tagger.drift(several).advice == "nothing"
    for model, rows, message in (
        (adjuster, proba, "label_shift"),
        (adapted, proba, "adapted already"),
        (tagger, several, "one class per row"),
    ):
        with pytest.raises(InputError, match=message):
            model.adapt(rows, assume="balance")


def test_drift_says_what_follows():
    adjuster = fitted()
    assert adjuster.drift(draw(1500, OLD, 1)[0]).advice == "nothing"
    moved = adjuster.drift(draw(1500, NEW, 2)[0])
    assert moved.advice == "adapt"
    assert "assume='label_shift'" in str(moved)
    assert adjuster.drift(draw(1500, OLD, 3, bias=2.0)[0]).advice == "stop"
    adapted = adjuster.adapt(draw(1500, NEW, 4)[0], assume="label_shift")
    assert adapted.drift(draw(1500, NEW, 5)[0]).advice == "nothing"


def test_rows_are_kept_evenly_and_by_weight():
    codes = np.repeat([0, 1], [5000, 100])
    kept = _representative(codes, np.ones(5100), 300)
    np.testing.assert_array_equal(np.bincount(codes[kept]), [200, 100])
    heavy = np.ones(5100)
    heavy[:1000] = 9.0
    assert np.mean(_representative(codes, heavy, 300)[:200] < 1000) == pytest.approx(
        9 / 13, abs=0.02
    )


def test_a_class_as_good_as_impossible_everywhere_stays_in_the_file(tmp_path):
    """Its share is no less than a file may say."""
    proba, y = np.tile([1.0, 5e-324], (100, 1)), np.arange(100) % 2
    fitted = Adjuster(("bias",), calibrate=False).fit(proba, y)
    fitted.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.transform(proba), fitted.transform(proba))
