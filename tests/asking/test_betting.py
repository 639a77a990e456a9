"""Bets on a finite pool: what is claimed of them is counted over all orders of small pools."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from altnorm.asking.betting import (
    DrawnUnits,
    expected_labels,
    first_crossing,
    log_capital,
    possible,
    total_limits,
)

ROUNDING = 1e-12  # relative: a few dozen double-precision operations
POOLS = [
    ([1, 1, -1, 0, 1, -1], [1, 1, 1, 1, 1, 1]),
    ([1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]),
    ([-1, -1, -1, -1, -1], [1, 1, 1, 1, 1]),
    ([2, -1, 3, -2, 1], [2, 1, 3, 4, 3]),  # rows with several changed labels
    ([0.5, -0.25, 1.25, 0.0, -3.5], [0.5, 2.0, 1.25, 0.75, 4.0]),  # costs, of which some are high
]
RESOLUTION = 2.0**-16  # of the limits, in units of the pool's total size


def draws_of(x, k, order, n=None):
    x, k, order = np.array(x), np.array(k), np.array(order, dtype=int)
    return DrawnUnits(x[order][:n], k[order][:n], float(k.sum()), len(k))


def orders(k):
    """All orders of a pool with their probability: the next unit in proportion to its size."""
    for order in permutations(range(len(k))):
        chance, left = Fraction(1), Fraction(sum(k))
        for i in order:
            chance *= Fraction(k[i]) / left
            left -= Fraction(k[i])
        yield order, chance


def exact_capital(x, k, order, s):
    """The definition in rational arithmetic, one bet and one draw at a time."""
    parts = [Fraction(2 * j + 1, 64) for j in range(32)]
    capitals, path = [Fraction(1)] * 32, [Fraction(1)]
    rest_x, rest_k = Fraction(s), Fraction(sum(k))
    for i in order:
        mean = rest_x / rest_k
        if mean > -1:
            growth = [1 + c / (1 + mean) * (Fraction(x[i]) / Fraction(k[i]) - mean) for c in parts]
            capitals = [old * g for old, g in zip(capitals, growth, strict=True)]
        path.append(sum(capitals) / 32)
        rest_x, rest_k = rest_x - Fraction(x[i]), rest_k - Fraction(k[i])
    return path


@pytest.mark.parametrize(("x", "k"), POOLS)
def test_the_capital_is_a_martingale_where_the_claim_is_just_true(x, k):
    total = sum(x)
    means = (float(c) * np.exp(log_capital(draws_of(x, k, order), total)) for order, c in orders(k))
    np.testing.assert_allclose(sum(means), 1, rtol=ROUNDING)
    rng = np.random.default_rng(0)  # and it is that of the definition
    for s in np.arange(-sum(k), sum(k) + 0.5, 0.5):
        order = rng.permutation(len(x)).tolist()
        exact = [float(value) for value in exact_capital(x, k, order, s)]
        np.testing.assert_allclose(
            np.exp(log_capital(draws_of(x, k, order), s)), exact, rtol=ROUNDING
        )


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_errors_and_misses_over_all_orders_of_all_pools_of_seven_rows(alpha):
    wrong, missed, times = {}, {}, {}
    for x in product((-1, 0, 1), repeat=7):
        pool, total = tuple(sorted(x)), sum(x)
        draws = DrawnUnits(np.array(x), np.ones(7, dtype=int), 7, 7, 1.0)
        up, down = log_capital(draws, total).max(), log_capital(draws.mirrored(), -total).max()
        missed[pool] = missed.get(pool, 0) + (max(up, down) >= np.log(2 / alpha))
        against = (draws, 0) if total <= 0 else (draws.mirrored(), -1)
        wrong[pool] = wrong.get(pool, 0) + (log_capital(*against).max() >= np.log(1 / alpha))
        times[pool] = times.get(pool, 0) + 1
    assert sum(times.values()) == 3**7
    assert max(wrong[pool] / times[pool] for pool in times) <= alpha
    assert max(missed[pool] / times[pool] for pool in times) <= alpha
    if alpha == 0.3:  # small pools can reach this level, so the bounds above are not idle
        assert max(wrong.values()) > 0


@given(
    x=st.lists(st.integers(-1, 1), max_size=40),
    n_left=st.integers(0, 60),
    alpha=st.sampled_from([0.01, 0.05, 0.4]),
)
@settings(max_examples=60, deadline=None)
def test_the_limits_are_those_of_a_search_over_all_totals(x, n_left, alpha):
    n = len(x) + n_left
    draws = DrawnUnits(np.array(x), np.ones(len(x)), n, n, step=1.0)
    low, high = (float(bound[-1]) for bound in possible(draws))
    kept = [s for s in np.arange(low, high + 1) if not is_rejected(draws, s, alpha)]
    assert total_limits(draws, alpha) == ((kept[0], kept[-1]) if kept else (low, high))
    assert not kept or len(kept) == kept[-1] - kept[0] + 1


def is_rejected(draws, s, alpha):
    capitals = log_capital(draws, s).max(), log_capital(draws.mirrored(), -s).max()
    return max(capitals) >= np.log(2 / alpha)


@pytest.mark.parametrize("n", [3, 20, 45])
def test_the_limits_of_totals_that_may_be_any_number(n):
    rng = np.random.default_rng(4)
    k = rng.exponential(size=60)
    draws = draws_of(k * rng.uniform(-1, 1, size=60), k, rng.permutation(60), n)
    low, high = total_limits(draws, 0.3)
    nearby = 2 * RESOLUTION * draws.total
    for limit, inwards in ((low, nearby), (high, -nearby)):
        assert is_rejected(draws, limit, 0.3)
        assert not is_rejected(draws, limit + inwards, 0.3)


def test_certainty_decides_without_any_bet():
    draws = DrawnUnits(np.ones(3, dtype=int), np.ones(3, dtype=int), 5, 5)
    assert first_crossing(draws, 0, 1e-9) == 3  # 3 fixed of 5: the other two cannot undo it
    assert first_crossing(draws.mirrored(), -1, 1e-9) is None


@pytest.mark.parametrize("fixed", [0.9, 0.75, 0.4])
def test_the_expected_number_of_labels_is_near_what_it_takes(fixed):
    rng, n = np.random.default_rng(3), 400
    pool = np.repeat([1, -1], [round(n * fixed), n - round(n * fixed)])
    expected, needed = [], []
    for _ in range(60):
        x = rng.permutation(pool)
        draws = DrawnUnits(x, np.ones(n, dtype=int), n, n)
        crossings = [first_crossing(draws, 0, 0.05), first_crossing(draws.mirrored(), -1, 0.05)]
        needed.append(min(t for t in crossings if t is not None))
        start = DrawnUnits(x[:4], np.ones(4, dtype=int), n, n)
        expected.append(4 + expected_labels(start, 0.05))
    assert 1 / 3 < np.median(expected) / np.median(needed) < 3


def test_no_more_labels_are_expected_than_rows_are_left():
    draws = DrawnUnits(np.array([1, -1, 0]), np.ones(3, dtype=int), 10, 10)
    assert 1 <= expected_labels(draws, 0.05) <= 7
    for n in (3, 4):
        assert expected_labels(draws._replace(total=n, n_units=n), 0.05) == n - 3
