"""Whether to adapt, how far, and what is said about it."""

import numpy as np
import pytest
from scipy.special import softmax

from altnorm.balance.label_shift import profile_rows, take_in
from altnorm.balance.shift import REASONS, _rake, judge_shift

OLD = np.full(4, 0.25)


def draw(n, balance, seed, *, slope=1.0):
    """Rows that are calibrated under OLD if the slope is 1."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, n, p=balance)
    scores = rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[codes]
    return softmax(1.5 * slope * scores, axis=1), codes


def towards(distance):
    """A balance at this total variation distance from OLD."""
    return OLD + distance * np.array([1, -1 / 3, -1 / 3, -1 / 3])


@pytest.fixture(scope="module")
def profile():
    return profile_rows(*draw(4000, OLD, 0))


def judged(profile, drawn, *, n=8000, slope=1.0, **options):
    return judge_shift(profile, take_in(profile, draw(n, drawn, 1, slope=slope)[0]), **options)


@pytest.mark.parametrize(
    ("distance", "reason", "strength"),
    [(0.0, "no_shift", 0), (0.12, "small_shift", 0), (0.28, "adapted", 0.5), (0.6, "adapted", 1)],
)
def test_the_distance_decides_how_much_is_adopted(profile, distance, reason, strength):
    """Of so few rows that they cannot tell a small shift from a classifier that leans."""
    shift = judged(profile, towards(distance), n=400)
    assert abs(shift.over_leaning) < 1 or strength == 1
    assert shift.reason == reason
    assert shift.strength == pytest.approx(strength, abs=0.2)
    assert shift.distance == pytest.approx(distance, abs=0.05)
    if 0 < strength < 1:  # on the line between the balances
        middle = np.divide(np.subtract(shift.after, shift.before), shift.strength)
        assert np.abs(middle).sum() / 2 == pytest.approx(shift.distance, abs=0.03)


def leaning(n, amount, seed):
    """Rows of the old balance, from a classifier that has begun to favour the first class."""
    tilted = draw(n, OLD, seed)[0] * np.exp(amount * np.array([1, 0, 0, -1]))
    return tilted / tilted.sum(axis=1, keepdims=True)


def test_many_rows_tell_a_small_shift_from_a_classifier_that_leans(profile):
    """At the same distance, one is adopted and the other is not."""
    shifted = judged(profile, towards(0.22))
    leans = judge_shift(profile, take_in(profile, leaning(8000, 0.6, 1)))
    assert shifted.distance == pytest.approx(leans.distance, abs=0.03)
    assert shifted.over_leaning > 2
    assert shifted.strength == 1
    assert leans.over_leaning < 0
    assert leans.reason == "small_shift"


def test_few_rows_cannot_tell_them_apart():
    """Without a change neither is better: on average zero, in units of chance."""
    profile = profile_rows(*draw(1000, OLD, 7))
    found = [judged(profile, OLD, n=n) for n in (150, 200, 250, 300, 350, 400)]
    assert np.abs([shift.over_leaning for shift in found]).max() < 1


def test_a_bad_fit_is_adapted_to_less_and_less(profile):
    """The same shift, and classifiers that have become less and less sure."""
    found = [judged(profile, towards(0.35), slope=slope) for slope in (1.0, 0.89, 0.87, 0.75)]
    strengths = [shift.strength for shift in found]
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] == 1
    assert any(0 < strength < 1 for strength in strengths)
    assert found[-1].reason == "not_label_shift"
    assert [shift.unexplained for shift in found] == sorted(s.unexplained for s in found)
    part = next(shift for shift in found if 0 < shift.strength < 1)
    assert f"Only {part.strength:.0%} of the change is adopted: it leaves" in str(part)
    assert "of the difference unexplained" in str(found[-1])


def test_a_change_alike_in_all_classes_is_allowed_if_the_shift_is_very_strong(profile):
    """Less sure, and nine rows in ten of one class: it is still clear which."""
    near, far = (judged(profile, towards(distance), slope=0.7) for distance in (0.3, 0.65))
    assert near.reason == "not_label_shift"
    assert far.reason == "adapted"
    assert far.fits_badly
    assert far.unexplained > 0.25
    assert far.uneven < 0.03
    assert far.strength > 0.5


def test_a_change_unlike_in_some_classes_is_not_label_shift(profile):
    """Rows of one predicted class alone have become less sure."""
    proba, _ = draw(8000, towards(0.65), 1)
    one = proba.argmax(axis=1) == 1
    proba[one] = softmax(0.4 * np.log(proba[one]), axis=1)
    shift = judge_shift(profile, take_in(profile, proba))
    assert shift.uneven > 0.03
    assert shift.strength < judged(profile, towards(0.65)).strength == 1
    assert "not alike in all classes" in str(shift)


def test_raking_keeps_rows_and_fills_columns():
    """Oracle: what the margins must be; a table that fits already stays as it is."""
    rng = np.random.default_rng(0)
    old, now = rng.integers(5, 50, (6, 3)).astype(float), rng.integers(5, 50, (6, 3))
    raked = _rake(old, now)
    np.testing.assert_allclose(raked.sum(axis=1), old.sum(axis=1))
    scale = now.sum(axis=1, keepdims=True) / old.sum(axis=1, keepdims=True)
    np.testing.assert_allclose((raked * scale).sum(axis=0), now.sum(axis=0), rtol=1e-4)
    ratio = raked / old  # a factor for each row times one for each column
    np.testing.assert_allclose(ratio[1:] * ratio[0, 0], ratio[1:, :1] * ratio[0], rtol=1e-9)
    np.testing.assert_allclose(_rake(old, 3 * old), old)


def test_who_knows_that_only_the_balance_has_changed_is_believed(profile):
    """Small shifts, no shift and bad fits alike; the estimate is the same."""
    for distance, slope in ((0.0, 1.0), (0.12, 1.0), (0.3, 0.7)):
        asked = judged(profile, towards(distance), slope=slope)
        assumed = judged(profile, towards(distance), slope=slope, only_balance=True)
        assert asked.strength == 0
        assert assumed.reason == "assumed"
        assert assumed.adapted
        assert assumed.strength == 1
        assert (assumed.p_value, assumed.distance) == (asked.p_value, asked.distance)
        assert np.abs(np.subtract(assumed.after, towards(distance))).max() < 0.1
        assert str(assumed).startswith("Adapted to another class balance, as asked, at a distance")


def test_what_is_said(profile):
    assert str(judged(profile, towards(0.0))).startswith("Not adapted: no sign of another")
    small = str(judged(profile, towards(0.12)))
    assert small.startswith("Not adapted: the class balance seems to have changed")
    assert small.endswith("that something else may have.")
    part = judged(profile, towards(0.28), n=400)
    assert "of the change is adopted: so small a distance may have other reasons." in str(part)
    whole = str(judged(profile, towards(0.6)))
    assert whole.startswith("Adapted to another class balance, at a distance of 0.58")
    assert "Only" not in whole
    assert "Class number 0 changed most: 0.248 before" in whole


def test_intervals_hold_what_is_adopted(profile):
    for distance in (0.0, 0.26, 0.6):
        shift = judged(profile, towards(distance), n=300)
        for name in ("before", "after"):
            low, value, high = (
                np.array(getattr(shift, name + end)) for end in ("_low", "", "_high")
            )
            assert (low >= 0).all()
            assert (low <= value).all()
            assert (value <= high).all()
            assert (high <= 1).all()
        assert shift.reason in REASONS


def test_the_balance_that_holds_is_what_counts(profile):
    now = towards(0.6)
    assert judged(profile, now, balance=now).reason in ("no_shift", "small_shift")
    assert judged(profile, OLD, balance=now).reason == "adapted"


def test_the_level_is_the_callers(profile):
    few = judged(profile, towards(0.4), n=25, significance=1e-6)
    assert few.reason == "no_shift"
    assert judged(profile, towards(0.4), n=25, significance=0.999).reason != "no_shift"
