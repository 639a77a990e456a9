"""The two-class kernel: against the general ones, and its interpolation branch by branch."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_expit, logsumexp
from sklearn import config_context

from altnorm.method import scaling
from altnorm.method import two_classes as binary

ATOL_KERNELS = 1e-12  # probabilities from the two-class and the general kernel
RTOL_INTERPOLATION = 1e-13  # interpolated and direct column sums, relative to their size


def general(logit_b, logit_a, weight, prior, **keywords):
    """The same through a kernel for any number of classes; probabilities of the first class."""
    stack = [np.stack([log_expit(z), log_expit(-z)], axis=1) for z in (logit_b, logit_a)]
    log_w = None if weight is None else np.log(weight)
    with np.errstate(all="ignore"):
        alpha, depth = keywords.pop("alpha"), keywords.pop("depth")
        reference = scaling.LogReference(stack[1], log_w, np.log(prior), alpha, **keywords)
        path = scaling.anchor_path(reference)
        steps = list(scaling.iterate(stack[0], path, depth=depth))
    return np.exp([np.concatenate(blocks)[:, 0] for blocks in steps])


def two_class(logit_b, logit_a, weight, prior, *, alpha, depth, log_mass=None):
    settings = tuple(np.log(prior)), alpha, depth, log_mass
    with np.errstate(all="ignore"):
        met = binary.BinaryReference(logit_a, weight, *settings)
        steps = list(binary.iterate_logits(logit_b, met))
        return np.exp([binary.log_sigmoids(z)[0] for z in steps])


@pytest.mark.parametrize(
    ("alpha", "depth"), [(1.0, 1), (1.0, 5), (0.1, 5), (0.6, 3), (3.0, 4), (10.0, 3), (35.0, 2)]
)
@pytest.mark.parametrize("n_rows", [1, 4, 40, 1500])
class TestAgainstGeneralKernel:
    def draw(self, n_rows):
        rng = np.random.default_rng(n_rows)
        logit_a, logit_b = 4 * rng.normal(size=5000), 2 * rng.normal(size=n_rows)
        logit_a[:10] = logit_a[10]
        logit_b[0] = logit_a[0]
        return logit_b, logit_a, rng.random(5000)

    def test_plain(self, n_rows, alpha, depth):
        logit_b, logit_a, _ = self.draw(n_rows)
        args = (logit_b, logit_a, None, np.array([0.2, 0.8]))
        expected = general(*args, alpha=alpha, depth=depth)
        assert_allclose(
            two_class(*args, alpha=alpha, depth=depth), expected, rtol=0, atol=ATOL_KERNELS
        )

    def test_weights_and_smoothing(self, n_rows, alpha, depth):
        logit_b, logit_a, weight = self.draw(n_rows)
        args = (logit_b, logit_a, weight, np.array([0.6, 0.4]))
        keywords = {"alpha": alpha, "depth": depth, "log_mass": np.log(0.1 * weight.sum())}
        assert_allclose(
            two_class(*args, **keywords), general(*args, **keywords), rtol=0, atol=ATOL_KERNELS
        )


@pytest.mark.parametrize("weight", [None, np.array([2.0, 1.0, 0.5])])
def test_sure_rows(weight):
    """Infinite logits are one-hot rows; they stay what they are and count in their column."""
    logit_a, logit_b = np.array([np.inf, -np.inf, 0.3]), np.array([np.inf, -np.inf, 0.0, 1.0])
    prior = np.array([0.5, 0.5])
    args = (logit_b, logit_a, weight, prior)
    ours = two_class(*args, alpha=2.0, depth=3)
    assert_allclose(ours, general(*args, alpha=2.0, depth=3), rtol=0, atol=ATOL_KERNELS)
    assert_array_equal(ours[:, 0], 1)
    assert_array_equal(ours[:, 1], 0)


def test_one_class_without_reference():
    logit_b, logit_a = np.linspace(-3, 3, 50), np.full(4, np.inf)
    args = (logit_b, logit_a, None, np.array([0.5, 0.5]))
    ours = two_class(*args, alpha=1.0, depth=3)
    assert_allclose(ours, general(*args, alpha=1.0, depth=3), rtol=0, atol=ATOL_KERNELS)


@pytest.mark.parametrize("megabytes", [1e-6, 1e-3])
def test_blocks(megabytes):
    rng = np.random.default_rng(8)
    args = (rng.normal(size=200), rng.normal(size=300), rng.random(300), np.array([0.1, 0.9]))
    whole = two_class(*args, alpha=2.0, depth=3)
    with config_context(working_memory=megabytes):
        assert_allclose(two_class(*args, alpha=2.0, depth=3), whole, rtol=0, atol=ATOL_KERNELS)


class TestInterpolate:
    def column_sums(self, z, alpha, evaluated=None):
        """Column sums straight from their definition; the number of points is noted."""

        def function(d):
            if evaluated is not None:
                evaluated.append(d.size)
            return tuple(
                logsumexp(alpha * log_expit(s * (z + d[:, None])), axis=1) for s in (1, -1)
            )

        return function

    def check(self, function, x):
        expected = function(x)
        for ours, direct in zip(binary.interpolate(function, x), expected, strict=True):
            assert_allclose(ours, direct, rtol=RTOL_INTERPOLATION, atol=RTOL_INTERPOLATION)

    def test_smooth_needs_few_nodes(self):
        rng = np.random.default_rng(0)
        evaluated = []
        x = rng.uniform(-1, 1, 20_000)
        function = self.column_sums(rng.normal(size=100), 1.0, evaluated)
        binary.interpolate(function, x)
        assert sum(evaluated) <= 33
        self.check(function, x)

    @pytest.mark.parametrize("alpha", [0.1, 1.0, 35.0])
    def test_sharp_is_halved(self, alpha, monkeypatch):
        """Bends far apart over a wide range: 65 nodes do not do, and the interval is cut."""
        rng = np.random.default_rng(1)
        unresolved = []
        original = binary._chebyshev

        def spy(function, part):
            coefficients = original(function, part)
            unresolved.append(coefficients is None)
            return coefficients

        monkeypatch.setattr(binary, "_chebyshev", spy)
        x = rng.uniform(-500, 500, 5000)
        self.check(self.column_sums(np.array([-300.0, 0.0, 10.0, 250.0]), alpha), x)
        assert any(unresolved)
        assert not all(unresolved)

    def test_clustered_points(self):
        """Halving an interval must end also where nearly all points are in one place."""
        x = np.concatenate([np.full(500, 3.0), np.linspace(-1e5, 1e5, 200), [3.0 + 1e-13]])
        self.check(self.column_sums(np.array([-50.0, 0.0]), 2.0), x)

    @pytest.mark.parametrize("size", [0, 1, 3, 5, 6, 20, 65, 66])
    @pytest.mark.parametrize("spread", [0.0, 1.0, 1000.0])
    def test_few_points(self, size, spread):
        x = spread * np.random.default_rng(size).normal(size=size) + 0.5
        self.check(self.column_sums(np.array([-7.0, 0.0, 2.0]), 3.0), x)

    def test_equal_points_are_evaluated_once(self):
        evaluated = []
        binary.interpolate(self.column_sums(np.zeros(3), 1.0, evaluated), np.full(1000, 0.25))
        assert sum(evaluated) == 1

    def test_order_is_kept(self):
        x = np.random.default_rng(2).permutation(np.linspace(-2, 2, 999))
        first, _ = binary.interpolate(lambda d: (d, -d), x)
        assert_allclose(first, x, rtol=0, atol=RTOL_INTERPOLATION)

    def test_absent_class(self):
        x = np.linspace(-1, 1, 500)
        first, second = binary.interpolate(lambda d: (d**2, np.full_like(d, -np.inf)), x)
        assert_allclose(first, x**2, rtol=0, atol=RTOL_INTERPOLATION)
        assert (second == -np.inf).all()


def test_log_sigmoids():
    z = np.array([-np.inf, -1000.0, -1.0, 0.0, 1e-20, 40.0, np.inf])
    plus, minus = binary.log_sigmoids(z)
    assert_allclose(plus, log_expit(z), rtol=1e-15)
    assert_allclose(minus, log_expit(-z), rtol=1e-15)
