"""Adapting: it finds the balance, leaves alone what it should, and says why."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, InputError, load
from altnorm.adjuster import Window
from altnorm.peers import Identity, MatrixScaling, ShrunkBias

OLD, NEW = np.full(4, 0.25), np.array([0.04, 0.1, 0.16, 0.7])
GRID = {"alphas": (0.5, 1.0, 2.0), "depths": (1,), "n_repeats": 2}


def draw(n, balance, seed, *, bias=(0.0, 0.0, 0.0, 0.0), slope=1.5):
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, n, p=balance)
    scores = rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[codes]
    return softmax(slope * scores + np.asarray(bias), axis=1), codes


def accuracy(fitted, proba, codes):
    return (fitted.predict(proba) == codes).mean()


def make(name):
    if name == "CV":
        return AlternatingNormalizerCV(**GRID)
    families = ("alternating", "bias", "matrix") if name == "none" else (name,)
    return Adjuster(families, n_repeats=2, calibrate=name != "plain")


@pytest.fixture(scope="module")
def fitted():
    """One fit for each way to re-target."""
    biased = draw(2000, OLD, 0, bias=(2.0, 0.0, 0.0, 0.0))
    found = {name: make(name).fit(*biased) for name in ("alternating", "bias", "matrix", "CV")}
    return found | {"none": make("none").fit(*draw(2000, OLD, 0))}


def bias_of(name):
    return (0.0, 0.0, 0.0, 0.0) if name == "none" else (2.0, 0.0, 0.0, 0.0)


CASES = ("alternating", "bias", "matrix", "CV", "none")


@pytest.mark.parametrize("name", CASES)
def test_another_balance_is_adapted_to(fitted, name):
    proba, codes = draw(1500, NEW, 1, bias=bias_of(name))
    adapted = fitted[name].adapt(proba)
    assert adapted.shift_.reason == "adapted"
    assert str(adapted.shift_).startswith("Adapted to another class balance, at a distance of 0.4")
    np.testing.assert_allclose(adapted.shift_.after, NEW, atol=0.05)
    low, high = np.array(adapted.shift_.after_low), np.array(adapted.shift_.after_high)
    assert ((low <= NEW) & (high >= NEW)).mean() >= 0.75
    before, after = (accuracy(one, proba, codes) for one in (fitted[name], adapted))
    oracle = accuracy_of_bayes(proba, codes, bias_of(name))
    assert after - before >= 0.85 * (oracle - before)


def accuracy_of_bayes(proba, codes, bias):
    """Knows the world: undo the bias, then weigh by the new balance."""
    return ((np.log(proba) - bias + np.log(NEW)).argmax(axis=1) == codes).mean()


@pytest.mark.parametrize("name", CASES)
def test_the_same_balance_leaves_an_equal_copy(fitted, name):
    proba, _ = draw(1500, OLD, 2, bias=bias_of(name))
    copy = fitted[name].adapt(proba)
    assert copy is not fitted[name]
    assert copy.shift_.reason == "no_shift"
    assert "no sign of another class balance (1,500 rows, p = 0." in str(copy.shift_)
    np.testing.assert_array_equal(copy.transform(proba), fitted[name].transform(proba))


def test_what_is_no_label_shift_is_left_alone(fitted):
    """A classifier that has become unsure, and leans to another class."""
    proba, _ = draw(3000, OLD, 3, bias=(2.0, 1.0, 0.0, 0.0), slope=0.5)
    copy = fitted["bias"].adapt(proba)
    assert copy.shift_.reason == "not_label_shift"
    assert "unexplained" in str(copy.shift_)
    np.testing.assert_array_equal(copy.transform(proba), fitted["bias"].transform(proba))
    assert fitted["bias"].check(proba).advice == "stop"


def test_who_knows_that_only_the_balance_has_changed_is_believed(fitted):
    little = OLD + 0.16 * np.array([1, -1 / 3, -1 / 3, -1 / 3])
    proba, codes = draw(8000, little, 9, bias=bias_of("bias"))
    asked = fitted["bias"].adapt(proba)
    assumed = fitted["bias"].adapt(proba, only_balance=True)
    assert (asked.shift_.reason, assumed.shift_.reason) == ("small_shift", "assumed")
    np.testing.assert_allclose(assumed.shift_.after, little, atol=0.03)
    assert accuracy(assumed, proba, codes) > accuracy(asked, proba, codes)
    assert assumed.check(draw(1500, little, 4, bias=bias_of("bias"))[0]).advice == "nothing"
    with pytest.raises(InputError, match="adapted already"):
        assumed.adapt(proba)


def confused(n, balance, seed):
    """Rows of class 3 look like class 2, but they have more of class 0: biases cannot tell."""
    proba, codes = draw(n, balance, seed)
    log_p = np.log(proba)
    log_p[:, 2], log_p[:, 0] = log_p[:, 2] + 0.8 * log_p[:, 3], log_p[:, 0] + 0.5 * log_p[:, 3]
    log_p[:, 3] *= 0.2
    return softmax(log_p, axis=1), codes


def test_a_matrix_calibrates_where_it_makes_labels_more_probable(tmp_path):
    """Then the balance is nearer to the truth than what biases alone find."""
    adjuster = Adjuster(("bias", "matrix"), n_repeats=1).fit(*confused(3000, OLD, 11))
    assert isinstance(adjuster.shift_matrix_, MatrixScaling)
    plain = Adjuster(("bias",), n_repeats=1).fit(*confused(3000, OLD, 11))
    assert plain.shift_matrix_ is None
    new = [confused(1500, NEW, seed)[0] for seed in range(12, 16)]
    ours, theirs = (
        np.mean([np.abs(np.subtract(one.adapt(p).shift_.after, NEW)).sum() for p in new])
        for one in (adjuster, plain)
    )
    assert ours < 0.7 * theirs
    proba = new[0]
    adjuster.save(tmp_path / "model")
    assert load(tmp_path / "model").adapt(proba).shift_ == adjuster.adapt(proba).shift_


def test_a_matrix_for_the_balance_has_a_ridge():
    """Also where one that expects few confusions calibrates."""
    adjuster = Adjuster(("bias", "matrix"), n_repeats=1).fit(*confused(300, OLD, 11))
    assert adjuster.calibrator_.penalty == "cauchy"
    assert adjuster.shift_matrix_.penalty == "ridge"


def test_a_matrix_leaves_the_tests_as_they_are():
    """Many numbers are fitted, but rows of the same kind still look so, and label shift too."""
    adjuster = Adjuster(("bias", "matrix"), n_repeats=1).fit(*confused(600, OLD, 13))
    assert isinstance(adjuster.shift_matrix_, MatrixScaling)
    same = [adjuster.adapt(confused(400, OLD, 100 + k)[0]).shift_ for k in range(20)]
    assert sum(shift.reason == "no_shift" for shift in same) >= 18
    moved = [adjuster.adapt(confused(400, NEW, 200 + k)[0]).shift_ for k in range(20)]
    assert sum(shift.reason == "adapted" for shift in moved) >= 18


def test_check_says_what_follows(fitted):
    bias = bias_of("bias")
    assert fitted["bias"].check(draw(1500, OLD, 4, bias=bias)[0]).advice == "nothing"
    moved = draw(1500, NEW, 5, bias=bias)[0]
    drift = fitted["bias"].check(moved)
    assert drift.advice == "adapt"
    assert str(drift).startswith("The class balance has changed")
    adapted = fitted["bias"].adapt(moved)
    assert adapted.check(draw(1500, NEW, 6, bias=bias)[0]).advice == "nothing"
    assert adapted.check(draw(1500, OLD, 7, bias=bias)[0]).advice == "adapt"


def test_a_small_shift_is_nothing_to_act_on(fitted):
    little = OLD + 0.16 * np.array([1, -1 / 3, -1 / 3, -1 / 3])
    proba, _ = draw(8000, little, 9, bias=bias_of("bias"))
    copy, drift = fitted["bias"].adapt(proba), fitted["bias"].check(proba)
    assert copy.shift_.reason == "small_shift"
    np.testing.assert_array_equal(copy.transform(proba), fitted["bias"].transform(proba))
    assert drift.advice == "nothing"
    assert drift.drifted
    assert "changed a little" in str(drift)
    assert str(drift).endswith("Nothing has to be done.")


def test_sums_travel_as_a_vector(fitted):
    proba, _ = draw(500, NEW, 10, bias=bias_of("bias"))
    window = fitted["bias"].take_in(proba)
    again = Window.from_vector(window.to_vector(), 4)
    for ours, theirs in zip(
        (*again.intake, *again.usage), (*window.intake, *window.usage), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert fitted["bias"].adapt(again).shift_ == fitted["bias"].adapt(window).shift_


def test_what_each_family_becomes(fitted):
    proba, _ = draw(1500, NEW, 1, bias=bias_of("bias"))
    kinds = {name: type(fitted[name].adapt(proba).best_normalizer_) for name in CASES}
    assert kinds["matrix"] is MatrixScaling
    assert kinds["bias"] is ShrunkBias
    assert isinstance(fitted["CV"].best_normalizer_, AlternatingNormalizer)
    assert kinds["CV"] is ShrunkBias  # the calibrated probabilities
    assert isinstance(fitted["none"].best_normalizer_, Identity)
    assert kinds["none"] in (ShrunkBias, MatrixScaling)
    families = {name: fitted[name].adapt(proba).family_ for name in CASES}
    assert families["bias"] == families["CV"] == "bias"
    assert fitted["CV"].family_ == "alternating"


def test_the_report_tells_it(fitted):
    pytest.importorskip("jinja2")
    from altnorm.io.predictions import Predictions
    from altnorm.report import render_report

    proba, codes = draw(600, NEW, 1, bias=bias_of("CV"))
    page = render_report(fitted["CV"].adapt(proba), Predictions(proba, np.arange(4), codes))
    assert "Adapted to another class balance" in page


def test_the_bias_family_is_multiplied_by_the_ratio(fitted):
    """Bayes' rule on the rows themselves, where no calibration follows."""
    plain = Adjuster(("bias",), calibrate=False, n_repeats=2)
    plain.fit(*draw(2000, OLD, 0, bias=bias_of("bias")))
    proba, _ = draw(1500, NEW, 1, bias=bias_of("bias"))
    adapted = plain.adapt(proba)
    expected = plain.transform(proba) * np.divide(adapted.shift_.after, adapted.shift_.before)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(adapted.transform(proba), expected, atol=1e-12)


def test_a_stream_needs_its_rows_once(fitted):
    proba, _ = draw(4000, NEW, 8, bias=bias_of("bias"))
    adjuster, window = fitted["bias"], None
    for part in np.array_split(proba, 16):
        window = adjuster.take_in(part, window)
    assert window.n_rows == 4000
    running, at_once = adjuster.adapt(window).shift_, adjuster.adapt(proba).shift_
    assert running.p_value == pytest.approx(at_once.p_value, rel=1e-6)  # another order of sums
    np.testing.assert_allclose(running.after, at_once.after, atol=0.03)
    halves = adjuster.take_in(proba[:2000]).plus(adjuster.take_in(proba[2000:]))
    assert adjuster.adapt(halves).shift_.reason == "adapted"
    assert adjuster.check(halves) == adjuster.check(proba)


def test_refusals(fitted):
    proba, codes = draw(1500, NEW, 1, bias=bias_of("bias"))
    adapted = fitted["bias"].adapt(proba)
    with pytest.raises(InputError, match=r"adapted already\. Call `adapt` of the original"):
        adapted.adapt(proba)
    labelwise = Adjuster(multilabel="labelwise", n_repeats=1).fit(
        proba, np.eye(4, dtype=int)[codes]
    )
    with pytest.raises(InputError, match="for problems with one class per row"):
        labelwise.adapt(proba)
    assert labelwise.check(proba).advice == "nothing"


def test_a_new_fit_forgets_the_shift(fitted):
    proba, codes = draw(1500, NEW, 1, bias=bias_of("bias"))
    adapted = fitted["bias"].adapt(proba)
    assert not hasattr(clone(adapted), "shift_")
    assert not hasattr(adapted.fit(proba, codes), "shift_")


@pytest.mark.parametrize("name", CASES)
def test_models_remember(fitted, name, tmp_path):
    proba, _ = draw(1500, NEW, 1, bias=bias_of(name))
    adapted = fitted[name].adapt(proba)
    adapted.save(tmp_path / "model")
    restored = load(tmp_path / "model")
    assert restored.shift_ == adapted.shift_
    np.testing.assert_array_equal(restored.transform(proba), adapted.transform(proba))
    fitted[name].save(tmp_path / "original")
    again = load(tmp_path / "original").adapt(proba)
    np.testing.assert_array_equal(again.transform(proba), adapted.transform(proba))
