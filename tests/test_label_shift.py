"""Balances of new data: against brute force, against known truths, and as sums."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chi2_contingency

from altnorm.balance.count_tests import compare_counts
from altnorm.balance.label_shift import (
    balance_of_counts,
    count_bins,
    empty_intake,
    estimate_balance,
    profile_rows,
    take_in,
)
from altnorm.balance.shift import judge_shift, no_change, unexplained

OLD, NEW = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])


def draw(n, balance, seed, *, signal=1.5):
    """Rows that are calibrated under the balance OLD, and their classes."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(balance.size, n, p=balance)
    scores = rng.normal(size=(n, balance.size)) + signal * np.eye(balance.size)[codes]
    return softmax(signal * scores + np.log(OLD), axis=1), codes


@pytest.fixture(scope="module")
def profile():
    return profile_rows(*draw(4000, OLD, 0))


def test_the_profile_counts_rows(profile):
    proba, codes = draw(4000, OLD, 0)
    np.testing.assert_array_equal(profile.table.sum(axis=(0, 1)), np.bincount(codes))
    np.testing.assert_array_equal(profile.counts, count_bins(proba, profile.edges))
    np.testing.assert_allclose(profile.balance, proba.mean(axis=0))
    np.testing.assert_allclose(profile.reweighted(profile.balance), profile.counts)
    np.testing.assert_allclose(profile.reweighted_within(profile.balance), profile.counts)


def test_the_profile_knows_means_and_their_spread(profile):
    """Oracle: the rows themselves, each weighted by what its probabilities say of its class."""
    proba, _ = draw(4000, OLD, 0)
    n_rows, mean, variance = profile.sums()
    assert n_rows == 4000
    np.testing.assert_allclose(mean, proba.mean(axis=0))
    np.testing.assert_allclose(variance, proba.var(axis=0))
    np.testing.assert_allclose(profile.covariance, np.cov(proba.T, bias=True), atol=1e-12)
    weight = proba @ (NEW / profile.balance)
    expected = np.average(proba, axis=0, weights=weight)
    np.testing.assert_allclose(profile.sums(NEW).mean, expected)
    assert profile.sums(NEW).n_rows < 4000


def test_weights_are_repetitions(profile):
    proba, codes = draw(4000, OLD, 0)
    weighted = profile_rows(proba, codes, np.full(4000, 7.0))
    for ours, theirs in zip(weighted, profile, strict=True):
        np.testing.assert_allclose(ours, theirs)
    half = profile_rows(proba, codes, np.repeat([0.0, 1.0], 2000))
    assert half.n_rows == pytest.approx(2000)


def test_a_known_balance_is_found(profile):
    intake = take_in(profile, draw(5000, NEW, 2)[0])
    for found in (
        estimate_balance(profile, intake),
        balance_of_counts(profile, intake.counts),
        balance_of_counts(profile, intake.counts, ridge=1e-4),
    ):
        np.testing.assert_allclose(found, NEW, atol=0.04)


def test_few_rows_of_the_old_balance_move_less_than_their_em(profile):
    """EM alone believes every row; without rows nothing moves."""
    moved = []
    for seed in range(30):
        intake = take_in(profile, draw(30, OLD, seed)[0])
        for found in (estimate_balance(profile, intake), intake.share[-1] / 30):
            moved.append(np.abs(found - profile.balance).sum())
    ours, plain = np.mean(np.reshape(moved, (30, 2)), axis=0)
    assert ours < 0.75 * plain
    nothing = take_in(profile, np.empty((0, 3)))
    np.testing.assert_allclose(estimate_balance(profile, nothing), profile.balance)


def test_batches_come_close_to_all_rows_at_once(profile):
    proba, _ = draw(6000, NEW, 4)
    at_once = take_in(profile, proba)
    running = empty_intake(profile)
    for part in np.array_split(proba, 30):
        running = take_in(profile, part, running)
    np.testing.assert_array_equal(running.counts, at_once.counts)
    assert running.n_rows == 6000
    np.testing.assert_allclose(
        estimate_balance(profile, running), estimate_balance(profile, at_once), atol=0.03
    )
    apart = take_in(profile, proba[:3000]).plus(take_in(profile, proba[3000:]))
    np.testing.assert_array_equal(apart.counts, at_once.counts)
    np.testing.assert_allclose(
        estimate_balance(profile, apart), estimate_balance(profile, at_once), atol=0.01
    )


def test_intervals_cover():
    hits = []
    for seed in range(60):
        profile = profile_rows(*draw(800, OLD, 1000 + seed))
        shift = judge_shift(profile, take_in(profile, draw(400, NEW, seed)[0]))
        low, high = np.array(shift.after_low), np.array(shift.after_high)
        hits.append((low <= NEW) & (high >= NEW))
    assert 0.88 <= np.mean(hits) <= 0.99


def test_no_change_has_uniform_p_values():
    p_values = []
    for seed in range(200):
        profile = profile_rows(*draw(500, OLD, 2000 + seed))
        p_values.append(no_change(profile, take_in(profile, draw(300, OLD, seed)[0])))
    assert 0.01 <= np.mean(np.less(p_values, 0.05)) <= 0.1
    assert 0.4 <= np.mean(np.less(p_values, 0.5)) <= 0.6


def test_change_is_seen_from_the_balance_that_holds(profile):
    """The same rows are news after the old balance and none after their own."""
    intake = take_in(profile, draw(2000, NEW, 9)[0])
    assert no_change(profile, intake) < 1e-6
    assert no_change(profile, intake, NEW) > 0.001
    assert no_change(profile, take_in(profile, np.empty((0, 3)))) == 1


def test_label_shift_is_explained_and_harder_data_are_not(profile):
    shifted = take_in(profile, draw(3000, NEW, 5)[0])
    p_value, rest = unexplained(profile, shifted.counts, estimate_balance(profile, shifted))
    assert p_value > 0.001
    assert rest < 0.1
    proba, _ = draw(3000, OLD, 6)
    flat = softmax(0.5 * np.log(proba), axis=1)  # everything is less sure than it was
    harder = take_in(profile, flat)
    p_value, rest = unexplained(profile, harder.counts, estimate_balance(profile, harder))
    assert p_value < 1e-6
    assert rest > 0.5


def test_permuted_classes_permute_the_balance(profile):
    order = [2, 0, 1]
    proba, codes = draw(4000, OLD, 0)
    new, _ = draw(500, NEW, 7)
    permuted = profile_rows(proba[:, order], np.argsort(order)[codes])
    np.testing.assert_allclose(
        estimate_balance(permuted, take_in(permuted, new[:, order])),
        estimate_balance(profile, take_in(profile, new))[order],
        atol=1e-4,
    )


def test_a_class_without_any_row():
    proba, codes = draw(400, OLD, 8)
    wide = np.column_stack([proba, np.zeros(400)])
    profile = profile_rows(wide, codes)
    assert (profile.balance > 0).all()
    found = estimate_balance(profile, take_in(profile, wide))
    assert np.isfinite(found).all()
    assert found[3] < 0.01


def test_the_statistic_is_the_textbook_one():
    table = np.array([[30, 50, 20], [90, 80, 60]])
    ours = compare_counts(*table)
    textbook = chi2_contingency(table, correction=False)
    assert ours.statistic == pytest.approx(textbook.statistic)
    assert ours.p_value == pytest.approx(textbook.pvalue, abs=0.03)


@pytest.mark.parametrize(("m", "n"), [(3, 500), (200, 300)])
def test_the_test_keeps_its_level(m, n):
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(m, 2.0))
    p = [
        compare_counts(rng.multinomial(2 * n, share), rng.multinomial(n, share)).p_value
        for _ in range(400)
    ]
    assert 0.02 <= np.mean(np.array(p) < 0.05) <= 0.09


def test_no_counts_are_no_evidence():
    assert compare_counts(np.zeros(3), np.array([1, 2, 3])).p_value == 1
    assert compare_counts(np.array([5, 0]), np.array([9, 0])).p_value == 1
