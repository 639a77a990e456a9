"""The functional entry points against 50-digit arithmetic, and their invariances."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from altnorm import InputError, alternating_normalization, trajectory
from tests.oracle import PAPER_ALPHAS, Case, draw_cases, draw_rows, oracle

ATOL = 1e-10  # largest difference from the defining equations, float64
ATOL_SMOOTH_FAR = 1e-8  # the same with smoothing beyond FAR, where the map itself is that sensitive
FAR, TOO_FAR = 1e5, 1e6  # alpha ** (depth - 1)
ATOL_SUM = 1e-12  # rows sum to 1
ATOL_SAME = 1e-12  # two ways to the same float64 result

CASES_PER_SEED = 50


def run(function: Callable[..., np.ndarray], case: Case) -> np.ndarray:
    """What a function makes of a drawn case; rows without a possible class are no surprise."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* rows have only classes with prior zero")
        return function(case.proba, case.reference, **case.keywords)


def assert_distributions(rows: np.ndarray) -> None:
    assert np.isfinite(rows).all()
    assert (rows >= 0).all()
    assert_allclose(rows.sum(axis=-1), 1, rtol=0, atol=ATOL_SUM)


def assert_matches_oracle(case: Case, atol: float = ATOL) -> None:
    expected = oracle(case.proba, case.reference, **case.keywords)
    steps, final = run(trajectory, case), run(alternating_normalization, case)
    assert_distributions(steps)
    assert_distributions(final)
    assert_allclose(steps, expected, rtol=0, atol=atol)
    assert_allclose(final, expected[-1], rtol=0, atol=atol)


class TestAgainstOracle:
    """1,200 cases without smoothing, 170 by Hypothesis, up to 400 with smoothing, larger ones."""

    @pytest.mark.parametrize("seed", range(24))
    def test_drawn(self, seed):
        for case in draw_cases(seed, CASES_PER_SEED):
            assert_matches_oracle(case)

    @pytest.mark.parametrize("seed", range(8))
    def test_drawn_with_smoothing(self, seed):
        for case in draw_cases(seed, CASES_PER_SEED, smoothing=True):
            if case.amplification <= TOO_FAR:
                assert_matches_oracle(case, ATOL if case.amplification <= FAR else ATOL_SMOOTH_FAR)

    @settings(max_examples=170)
    @given(data=st.data())
    def test_small_fractions(self, data):
        """Few distinct values, so that ties, equal rows and empty columns are common."""
        m, n = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 3))
        row = st.lists(st.integers(0, 3), min_size=m, max_size=m).filter(any)
        rows = np.array(data.draw(st.lists(row, min_size=n + 1, max_size=n + 1)), dtype=float)
        rows /= rows.sum(axis=1, keepdims=True)
        keywords = {
            "alpha": data.draw(st.sampled_from(PAPER_ALPHAS)),
            "depth": data.draw(st.integers(1, 5)),
            "prior": np.array(data.draw(row), dtype=float),
        }
        assert_matches_oracle(Case(rows[:1], rows[1:], keywords))

    @pytest.mark.parametrize("alpha", [0.1, 0.7, 1.0, 16.0, 35.0])
    @pytest.mark.parametrize("depth", [1, 3, 5])
    @pytest.mark.parametrize("m", [2, 7])
    def test_row_equal_to_every_reference_row(self, alpha, depth, m):
        """The fixed point is the prior; rounding errors must not be amplified away from it."""
        rng = np.random.default_rng(m)
        row, prior = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(m))
        same = np.tile(row, (4, 1))
        steps = trajectory(same[:1], same, alpha=alpha, depth=depth, prior=prior)
        assert_allclose(steps[1:, 0], np.tile(prior, (depth, 1)), rtol=0, atol=ATOL)

    @pytest.mark.parametrize(("n", "m"), [(420, 20), (4200, 2)])
    @pytest.mark.parametrize(("alpha", "depth"), [(35.0, 2), (25.0, 4), (0.3, 3)])
    def test_reference_too_large_for_the_literal_kernel(self, n, m, alpha, depth):
        rng = np.random.default_rng(n)
        reference, proba = draw_rows(rng, n, m), draw_rows(rng, 1, m)
        keywords = {"alpha": alpha, "depth": depth, "prior": rng.dirichlet(np.ones(m))}
        assert_matches_oracle(Case(proba, reference, keywords))

    @pytest.mark.parametrize("seed", range(2))
    def test_many_duplicates(self, seed):
        """A few distinct rows, repeated until the reference is large; the oracle weights them."""
        for case in draw_cases(1000 + seed, 25):
            n, m = case.reference.shape
            copies = 8200 // (n * m) + 1
            case.keywords["reference_weight"] = np.full(n, float(copies))
            expected = oracle(case.proba, case.reference, **case.keywords)
            case.reference = np.tile(case.reference, (copies, 1))
            case.keywords["reference_weight"] = None
            assert_allclose(run(trajectory, case), expected, rtol=0, atol=ATOL)


SETTINGS = [(1.0, 1), (5.0, 1), (1.0, 5), (0.6, 3), (4.0, 4), (35.0, 2)]


@pytest.mark.parametrize(("alpha", "depth"), SETTINGS)
@pytest.mark.parametrize("m", [2, 6], ids=["two classes", "six classes"])
class TestInvariances:
    @pytest.fixture(autouse=True)
    def problem(self, m, alpha, depth):
        """Rows, reference and prior of moderate size, and what the iterations make of them."""
        rng = self.rng = np.random.default_rng(m)
        draw = [
            np.concatenate([draw_rows(rng, n, m), rng.dirichlet(np.ones(m), n)]) for n in (20, 10)
        ]
        (self.reference, self.proba), self.prior = draw, rng.dirichlet(np.ones(m))
        self.run = partial(trajectory, alpha=alpha, depth=depth)
        self.steps = self.run(self.proba, self.reference, prior=self.prior)

    def check(self, actual, expected, atol=ATOL_SAME):
        assert_allclose(actual, expected, rtol=0, atol=atol)

    def test_permuting_classes(self):
        order = self.rng.permutation(self.prior.size)
        moved = self.run(self.proba[:, order], self.reference[:, order], prior=self.prior[order])
        self.check(moved, self.steps[:, :, order])

    def test_permuting_reference_rows(self):
        order, weight = self.rng.permutation(40), self.rng.random(40)
        before, after = (
            self.run(self.proba, self.reference[i], prior=self.prior, reference_weight=weight[i])
            for i in (slice(None), order)
        )
        self.check(after, before)

    def test_rows_do_not_see_each_other(self):
        for cut in (slice(0, 7), slice(7, None), slice(3, 4)):
            part = self.run(self.proba[cut], self.reference, prior=self.prior)
            self.check(part, self.steps[:, cut])

    def test_weight_zero_is_row_removed(self):
        weight = (np.arange(40) < 5).astype(float)
        self.check(
            self.run(self.proba, self.reference, prior=self.prior, reference_weight=weight),
            self.run(self.proba, self.reference[:5], prior=self.prior),
        )

    def test_smoothing_is_one_hot_rows_weighted_by_the_prior(self, m):
        padded = np.concatenate([self.reference, np.eye(m)])
        weight = np.concatenate([np.ones(40), 0.5 * 40 * self.prior])
        smooth = self.run(self.proba, self.reference, prior=self.prior, smoothing=0.5)
        with_rows = self.run(self.proba, padded, prior=self.prior, reference_weight=weight)
        self.check(smooth, with_rows, ATOL)

    def test_zero_stays_zero_and_the_start_is_kept(self, depth):
        assert self.steps.shape == (depth + 1, *self.proba.shape)
        assert_array_equal(self.steps[0], self.proba)
        assert (self.proba == 0).any()
        assert (self.steps[:, self.proba == 0] == 0).all()

    @pytest.mark.parametrize("megabytes", [1e-6, 1e-3])
    def test_working_memory(self, alpha, depth, megabytes):
        options = {"prior": self.prior, "alpha": alpha, "depth": depth}
        with config_context(working_memory=megabytes):
            self.check(trajectory(self.proba, self.reference, **options), self.steps)
            final = alternating_normalization(self.proba, self.reference, **options)
        self.check(final, self.steps[-1])


@pytest.mark.parametrize("depth", [1, 3])
def test_rows_with_only_impossible_classes_are_left_and_counted(depth):
    proba = np.array([[0.0, 0.4, 0.6], [0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    with pytest.warns(
        UserWarning, match="2 of 3 rows have only classes with prior zero; they were"
    ):
        result = alternating_normalization(proba, proba, prior=[1, 0, 0], depth=depth)
    assert_array_equal(result, [[0, 0.4, 0.6], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize(("alpha", "depth"), [(35.0, 1000), (1e200, 2), (2.0, 2000), (1e-40, 1)])
@pytest.mark.parametrize("function", [alternating_normalization, trajectory])
def test_exponents_that_overflow_are_refused(function, alpha, depth):
    with pytest.raises(InputError, match=r"`alpha` \*\* `depth` must be at most 1e\+32"):
        function(np.full((1, 3), 1 / 3), np.eye(3), alpha=alpha, depth=depth)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_largest_exponents_give_numbers(n_classes, dtype):
    rng = np.random.default_rng(0)
    reference = rng.dirichlet(np.full(n_classes, 0.3), 4000).astype(dtype)
    reference /= reference.sum(axis=1, keepdims=True)
    alpha = 34.0 if dtype == np.float32 else 1e6
    depth = 6 if dtype == np.float32 else 5
    for smoothing in (0.0, 0.5):
        after = alternating_normalization(
            reference[:9], reference, alpha=alpha, depth=depth, smoothing=smoothing
        )
        np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-5)
    slow = alternating_normalization(reference[:9], reference, alpha=0.1, depth=1000)
    np.testing.assert_allclose(slow.sum(axis=1), 1, rtol=1e-5)


def test_weights_beyond_single_precision_are_refused():
    rows = np.full((2, 3), 1 / 3, np.float32)
    for weight in (1e-60, 1e60):
        with pytest.raises(InputError, match=r"in this precision; 1 of 2 entries are not, .*row 1"):
            alternating_normalization(rows, rows, reference_weight=[1.0, weight])
        wide = rows.astype(np.float64)
        after = alternating_normalization(wide, wide, reference_weight=[1.0, weight])
        np.testing.assert_allclose(after.sum(axis=1), 1)
