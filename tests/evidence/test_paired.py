"""The paired test, against closed forms, the bootstrap and simulation; what rows add to a gain."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm, t
from sklearn.metrics import jaccard_score, make_scorer

from altnorm.evidence.paired import attribute_gain, derivative, paired_test
from altnorm.evidence.scores import MULTI_LABEL, SINGLE_LABEL, cost_score, resolve_scoring

# What rows may add: mostly nothing, else some of either sign.
GAINS = st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 0.25]), min_size=2, max_size=120)


def ones(rows):
    return np.ones(len(rows))


@given(GAINS, st.integers(1, 12))
def test_the_p_value_and_the_interval_agree(rows, n_groups):
    rows = np.array(rows) / len(rows)
    groups = np.arange(len(rows)) % n_groups
    for clusters in ([], [groups]):
        test = paired_test(rows, ones(rows), clusters)
        excluded = test.ci_low > 0 or test.ci_high < 0
        assert (test.p_value < 0.05) == excluded
        assert test.ci_low <= test.gain <= test.ci_high
        assert test.gain == pytest.approx(rows.sum())
        assert 0 <= test.p_value <= 1
        if test.gain != 0:  # a gain is never certain
            assert test.ci_low < test.gain < test.ci_high
            assert test.p_value > 0


@given(GAINS, st.integers(0, 100), st.integers(1, 9))
def test_order_scale_and_sign(rows, seed, n_groups):
    rows = np.array(rows) / len(rows)
    groups = np.arange(len(rows)) % n_groups
    test = paired_test(rows, ones(rows), [groups])
    order = np.random.default_rng(seed).permutation(len(rows))
    renamed = np.random.default_rng(seed).permutation(n_groups)[groups]
    moved = paired_test(rows[order], 3 * ones(rows), [renamed[order]])
    assert moved == pytest.approx(test)
    for clusters in ([], [groups]):  # rows of weight 0 are no evidence
        alone = paired_test(rows, ones(rows), clusters)
        idle = [np.append(each, [0, n_groups]) for each in clusters]
        assert paired_test(np.append(rows, [0, 0]), np.append(ones(rows), [0, 0]), idle) == alone
    scaled = paired_test(4 * rows, ones(rows), [groups])
    assert scaled.p_value == pytest.approx(test.p_value)
    assert scaled.ci_high == pytest.approx(4 * test.ci_high)
    mirrored = paired_test(-rows, ones(rows), [groups])
    assert mirrored.p_value == pytest.approx(test.p_value)
    assert (mirrored.ci_low, mirrored.ci_high) == pytest.approx((-test.ci_high, -test.ci_low))
    if test.gain != 0:
        assert mirrored.one_sided + test.one_sided == pytest.approx(1)
        assert mirrored.errors == pytest.approx(-test.errors)


@pytest.mark.parametrize(("fixed", "broken", "n"), [(14, 5, 100), (3, 0, 50), (641, 64, 4500)])
def test_fixed_and_broken_by_hand(fixed, broken, n):
    """Agresti and Min's interval with one more changed row in place of their two."""
    rows = np.repeat([1, -1, 0], [fixed, broken, n - fixed - broken]) / n
    test = paired_test(rows, np.ones(n))
    variance = (fixed + broken + 1) / n**2 - (fixed - broken) ** 2 / n**2 / (n + 2)
    half = t.isf(0.025, fixed + broken - 1) * math.sqrt(variance)  # so many rows contribute
    gain = (fixed - broken) / n
    assert (test.ci_low, test.ci_high) == pytest.approx((gain - half, gain + half))


@pytest.mark.parametrize("sizes", [(30, 30), (20, 50), (20, 40, 90), 100 * (5,)])
def test_the_error_of_groups_is_that_of_the_jackknife(sizes):
    rng, groups, n = np.random.default_rng(0), np.arange(len(sizes)).repeat(sizes), sum(sizes)
    rows = (3 * rng.normal(size=len(sizes))[groups] + rng.normal(size=n)) / n
    without = [n * rows[groups != group].mean() for group in range(len(sizes))]
    error = math.sqrt((len(sizes) - 1) * np.var(without))
    df = max(n**2 / np.square(sizes).sum() - 1, 1)  # of groups of equal size, all but one
    test = paired_test(rows, np.ones(n), [groups])
    assert test.std_error == pytest.approx(error)
    assert test.ci_high - test.gain == pytest.approx(t.isf(0.025, df) * error)


def test_groups_of_many_rows_that_gain_alike_are_no_noise():
    """The gain of a group grows with its rows; that alone is no sign of dependence."""
    sizes = np.repeat([1, 50], 20)
    groups = np.arange(40).repeat(sizes)
    rows = np.ones(groups.size) / groups.size
    assert paired_test(rows, ones(rows), [groups]) == paired_test(rows, ones(rows))


def test_one_more_row_at_its_worst_is_allowed_for_in_both_directions():
    rows = np.repeat([1, -1, 0], [20, 5, 75]) / 100
    plain, careful = (paired_test(rows, ones(rows), worst=worst) for worst in (0.0, 0.03))
    assert careful.gain == plain.gain
    # Seen once more, at its worst: in the sum, in the variance, and in how many rows contribute.
    assert careful.std_error**2 == pytest.approx(plain.std_error**2 + 0.03**2)
    df = (25 + 3) ** 2 / (25 + 3**2) - 1
    assert careful.one_sided == pytest.approx(t.sf((0.15 - 0.03) / careful.std_error, df))
    half = t.isf(0.025, df) * careful.std_error + 0.03
    assert (careful.ci_low, careful.ci_high) == pytest.approx((0.15 - half, 0.15 + half))
    mirrored = paired_test(-rows, ones(rows), worst=0.03)
    assert mirrored.errors == pytest.approx(-careful.errors)
    assert paired_test(rows, ones(rows), worst=0.2).p_value == 1
    # What the gain is known to be too large by is taken off, and no more.
    reduced = paired_test(rows, ones(rows), surplus=0.03)
    assert (reduced.gain, reduced.std_error) == (plain.gain, plain.std_error)
    assert reduced.one_sided == pytest.approx(t.sf((0.15 - 0.03) / plain.std_error, 25 - 1))
    ends = plain.ci_low - 0.03, plain.ci_high + 0.03
    assert (reduced.ci_low, reduced.ci_high) == pytest.approx(ends)


def test_a_standard_error_of_few_rows_says_less():
    """As many errors as a normal distribution has at the same p-value."""
    few, many = (np.r_[np.ones(3 * k), -np.ones(k), np.zeros(9 * k)] for k in (1, 100))
    for rows in (few, many):
        test = paired_test(rows, ones(rows))
        assert norm.sf(test.errors) == pytest.approx(test.one_sided)
        ratio = test.errors / (test.gain / test.std_error)
        assert ratio < 0.9 if rows is few else 0.9 < ratio < 1


def test_one_large_group_among_small_ones_is_no_proof():
    """It gains, the others lose: left out, the gain is gone."""
    groups = np.r_[np.zeros(600, int), np.repeat(np.arange(1, 11), 6)]
    rows = np.where(groups == 0, 0.1, -0.2) / 660
    assert paired_test(rows, ones(rows)).p_value < 1e-6
    assert paired_test(rows, ones(rows), [groups]).p_value > 0.2


def test_one_group_tells_nothing():
    rows = np.random.default_rng(0).normal(size=300) / 300
    for worst in (0.0, 0.01):
        alone = paired_test(rows, np.ones(300), worst=worst)
        assert paired_test(rows, np.ones(300), [np.zeros(300, int)], worst=worst) == alone


def test_one_more_row_at_its_worst_counts_in_the_error_of_groups():
    """Rows of a group gain or lose alike, so that its error is the larger one."""
    units, groups = np.repeat([1, -1], [20, 10]), np.arange(30).repeat(10)
    rows = units[groups] / 300
    plain, careful = (paired_test(rows, ones(rows), [groups], worst=w) for w in (0.0, 0.03))
    assert plain.std_error > 2 * paired_test(rows, ones(rows)).std_error
    assert careful.std_error**2 == pytest.approx(plain.std_error**2 + 0.03**2)
    half = t.isf(0.025, 29) * careful.std_error + 0.03
    assert careful.ci_high - careful.gain == pytest.approx(half)


def test_a_gain_of_rounding_errors_is_none():
    rows = np.tile([0.1, 0.2, -0.3], 50)
    assert rows.sum() != 0
    assert paired_test(rows, ones(rows)).gain == 0


def test_nothing_changed_or_nothing_known():
    nothing = paired_test(np.zeros(10), np.ones(10))
    assert (nothing.gain, nothing.p_value, nothing.ci_low, nothing.ci_high) == (0, 1, 0, 0)
    assert nothing.errors == 0
    assert paired_test(np.ones(10), np.repeat([1.0, 0.0], [2, 8])).p_value == 1
    tiny = paired_test(np.full(10, 1e-160), np.ones(10), worst=1e-160)
    assert (tiny.p_value, tiny.ci_low, tiny.ci_high) == (1, 0, pytest.approx(1e-159))
    single = paired_test(np.array([0.5]), np.ones(1))
    assert single.p_value == 1
    assert single.ci_low <= 0 <= single.gain <= single.ci_high


@pytest.mark.parametrize("n_groups", [0, 20])
@pytest.mark.parametrize("changed", [0.05, 0.3])
def test_the_level_is_kept_where_nothing_is_gained(changed, n_groups):
    """Also where rows of a group change together."""
    rng, n, n_trials = np.random.default_rng(0), 200, 1000
    groups = np.arange(n) * n_groups // n
    rejected = 0
    for _ in range(n_trials):
        units = rng.choice([0, 1, -1], n_groups or n, p=[1 - changed, changed / 2, changed / 2])
        rows = (units[groups] if n_groups else units) / n
        rejected += paired_test(rows, np.ones(n), [groups] if n_groups else []).p_value < 0.05
    assert rejected / n_trials < 0.05 + 3 * math.sqrt(0.05 * 0.95 / n_trials)


# What each row adds to a gain: for every score the rows add up to it, with the right error.

COSTS = cost_score(np.array([[0.0, 2, 5, 1], [1, 0, 1, 1], [9, 3, 0, 1]]))
JACCARD = make_scorer(jaccard_score, average="macro", zero_division=0)
SINGLE = {
    **SINGLE_LABEL,
    **{name: resolve_scoring(name) for name in ("fbeta=2_macro", "fbeta=0.5_weighted")},
    "costs": COSTS,
    "scorer": resolve_scoring(JACCARD),
}
MULTI = {
    **MULTI_LABEL,
    "fbeta=2_micro": resolve_scoring("fbeta=2_micro", True),
    "scorer": resolve_scoring(JACCARD, True),
}


def draw(score, n, seed, *, several, m=3, changed=0.4):
    """Labels, and predictions of which a part changes, as the score needs them."""
    rng = np.random.default_rng(seed)
    touched = rng.random(n) < changed
    if score.needs == "proba":
        before, after = rng.random((2, n, m)) if several else rng.dirichlet(np.ones(m), (2, n))
    elif several:
        before, after = rng.integers(2, size=(2, n, m))
    else:
        before, after = rng.integers(m + (score is COSTS), size=(2, n))
    mask = touched[:, None] if before.ndim == 2 else touched
    labels = rng.integers(2, size=(n, m)).astype(bool) if several else rng.integers(m, size=n)
    labels[:m] = np.eye(m, dtype=bool) if several else np.arange(m)
    return labels, before, np.where(mask, after, before)


@pytest.mark.parametrize(
    ("scores", "name"),
    [*itertools.product(["SINGLE"], SINGLE), *itertools.product(["MULTI"], MULTI)],
)
@settings(max_examples=8)
@given(n=st.integers(6, 40), seed=st.integers(0, 1000), weighted=st.booleans())
def test_rows_add_up_to_the_gain(scores, name, n, seed, weighted):
    score, several = globals()[scores][name], scores == "MULTI"
    labels, before, after = draw(score, n, seed, several=several)
    weight = np.random.default_rng(seed).integers(0, 3, n) + 0.0 if weighted else np.ones(n)
    weight[:3] = 1
    rows = attribute_gain(score, labels, before, after, weight, np.arange(n) % 4)
    gain = score(labels, after, weight) - score(labels, before, weight)
    assert rows.shape == (n,)
    assert rows.sum() == pytest.approx(gain, abs=1e-9)
    if score.function is None:
        same = (before == after).reshape(n, -1).all(axis=1) | (weight == 0)
        assert not rows[same].any()  # what did not change adds nothing


@pytest.mark.parametrize("name", ["f1_macro", "balanced_accuracy", "matthews_corrcoef", "scorer"])
def test_what_rows_add_is_what_they_would_cost_the_other_way_round(name):
    labels, before, after = draw(SINGLE[name], 60, 0, several=False)
    there, back = (
        attribute_gain(SINGLE[name], labels, *pair, np.ones(60), np.arange(60) % 6)
        for pair in ((before, after), (after, before))
    )
    np.testing.assert_allclose(there, -back, atol=1e-9)


@pytest.mark.parametrize("name", ["f1_macro", "balanced_accuracy", "matthews_corrcoef", "scorer"])
def test_the_error_is_that_of_the_bootstrap(name):
    score, n = SINGLE[name], 300
    rng = np.random.default_rng(0)
    labels = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    proba = [rng.dirichlet(np.ones(3), n) + share * np.eye(3)[labels] for share in (0.4, 0.7)]
    proba[1][:200] = proba[0][:200]
    pair = [p / p.sum(axis=1, keepdims=True) for p in proba]
    before, after = pair if score.needs == "proba" else [p.argmax(axis=1) for p in pair]
    rows = attribute_gain(score, labels, before, after, np.ones(n), np.arange(n) % 20)
    clusters = [np.arange(n) % 20] if score.function is not None else []
    gains = []
    for _ in range(60):
        i = rng.integers(n, size=n)
        gains.append(score(labels[i], after[i]) - score(labels[i], before[i]))
    test = paired_test(rows, np.ones(n), clusters)
    assert test.std_error == pytest.approx(np.std(gains), rel=0.35 if clusters else 0.2)


def test_the_derivative_is_that_of_the_formula():
    at = np.linspace(0, 50, 600)
    slope = derivative(lambda counts: np.log1p(counts).sum(axis=-1), at)
    np.testing.assert_allclose(slope, np.where(at > 0, 1 / (1 + at), 0), rtol=1e-5)


@pytest.mark.parametrize("name", ["f1_macro", "balanced_accuracy", "fbeta=2_macro"])
def test_a_row_adds_half_of_what_its_exchange_costs(name):
    """To first order: the derivative says what a single row does to the score."""
    score = SINGLE[name]
    labels, before, after = draw(score, 2000, 0, several=False, changed=0.05)
    rows = attribute_gain(score, labels, before, after, np.ones(2000), np.zeros(2000, int))
    gain = score(labels, after) - score(labels, before)
    exact = np.zeros(2000)
    for i in np.flatnonzero(before != after):
        old, new = before.copy(), after.copy()
        old[i], new[i] = after[i], before[i]
        exact[i] = (gain - (score(labels, new) - score(labels, old))) / 2
    np.testing.assert_allclose(rows, exact, atol=0.02 * np.abs(exact).max())
