"""The kernels, against each other and where linear sums underflow; and the interpolation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_expit, logsumexp
from sklearn import config_context

from altnorm.method import scaling, two_classes as binary
from tests.oracle import draw_rows

ATOL_KERNELS = 1e-11  # the two kernels, as probabilities


def logs(array):
    with np.errstate(divide="ignore"):
        return np.log(array)


def run(kernel, proba, reference, prior, *, alpha, depth, weight=None, log_mass=None):
    """All iterations of `kernel` as probabilities, shape (depth, t, m)."""
    with np.errstate(all="ignore"):
        log_w = None if weight is None else logs(weight)
        met = scaling.LogReference(logs(reference), log_w, logs(prior), alpha, log_mass)
        steps = kernel(logs(proba), met, depth=depth)
        return np.exp([np.concatenate(blocks) for blocks in steps])


def iterate(log_b, met, *, depth):
    return scaling.iterate(log_b, scaling.reference_steps(met), depth=depth)


def softmax_rows(rng, n, m, scale):
    """Rows like a classifier's: the larger `scale`, the surer and the smaller the small entries."""
    logits = scale * rng.normal(size=(n, m))
    return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))


@pytest.fixture
def repaired(monkeypatch):
    """Count the entries that linear products lost and that were recomputed in the log domain."""
    counts = []
    original = scaling._repair

    def spy(log_product, wrong, left, right):
        counts.append(int(wrong.sum()))
        return original(log_product, wrong, left, right)

    monkeypatch.setattr(scaling, "_repair", spy)
    return counts


REGIMES = [  # alpha, depth, scale of the logits, whether linear products underflow
    (1.0, 5, 1.0, False),
    (0.7, 5, 5.0, False),
    (5.0, 5, 1.0, True),
    (16.0, 4, 1.0, True),
    (35.0, 5, 1.0, True),
    (35.0, 3, 30.0, False),
]


@pytest.mark.parametrize(("alpha", "depth", "scale", "underflows"), REGIMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_agree_also_in_blocks(repaired, alpha, depth, scale, underflows, weighted):
    rng = np.random.default_rng(int(alpha * 10) + depth)
    n, m = 300, 20
    reference, proba = softmax_rows(rng, n, m, scale), softmax_rows(rng, 8, m, 1.0)
    proba[0], reference[5], reference[6] = reference[0], reference[7], np.eye(m)[3]
    proba[1], proba[2] = 1 / m, np.eye(m)[4]
    keywords = {
        "prior": rng.dirichlet(np.ones(m)),
        "weight": rng.random(n) if weighted else None,
        "alpha": alpha,
        "depth": depth,
    }
    literal = run(scaling.iterate_stacked, proba, reference, **keywords)
    assert np.isfinite(literal).all()
    for megabytes in (1024, 0.01):
        with config_context(working_memory=megabytes):
            fast = run(iterate, proba, reference, **keywords)
        assert_allclose(fast, literal, rtol=0, atol=ATOL_KERNELS)
    assert (sum(repaired) > 0) == underflows


@pytest.mark.parametrize("alpha", [0.1, 0.7, 1.0, 2.0, 5.0, 35.0])
@pytest.mark.parametrize("log_mass", [None, 2.0])
@pytest.mark.parametrize("kind", ["dirichlet", "softmax", "sparse", "tiny"])
def test_few_rows_without_logarithms_are_exact_or_refused(alpha, log_mass, kind):
    rng, m = np.random.default_rng(5), 6
    reference, q = draw_rows(rng, 40, m, kind), rng.dirichlet(np.ones(m))
    reference[:, 2] = 0  # a class that no reference row has
    reference /= reference.sum(axis=1, keepdims=True)
    answered = 0
    for row in draw_rows(rng, 20, m):
        depth = int(rng.integers(2, 6))
        options = {"alpha": alpha, "depth": depth, "log_mass": log_mass}
        expected = run(scaling.iterate_stacked, row[None], reference, q, **options)[-1]
        with np.errstate(all="ignore"):
            met = scaling.LogReference(logs(reference), None, np.log(q), alpha, log_mass)
            steps = scaling.keep_steps(scaling.reference_steps(met), depth)
            adjusted = scaling.iterate_few(row[None], steps)
        if adjusted is not None:
            answered += 1
            assert_allclose(adjusted, expected, rtol=0, atol=ATOL_KERNELS)
    if kind == "dirichlet" and alpha <= 2:
        assert answered >= 10


@pytest.mark.parametrize("spread", [0.1, 30.0, 3000.0])
@pytest.mark.parametrize("share", [0.005, 0.9])
def test_lost_entries_are_recomputed(spread, share):
    """Whether few terms make up the sums (a large spread), all count (a small one), or some."""
    rng = np.random.default_rng(8)
    left, right = spread * rng.normal(size=(40, 200)), spread * rng.normal(size=(30, 200))
    left[rng.random(left.shape) < 0.2] = right[rng.random(right.shape) < 0.2] = -np.inf
    right[3, 1:] = -np.inf
    wrong = rng.random((40, 30)) < share
    with np.errstate(divide="ignore"):
        recomputed = scaling._repair(np.zeros(wrong.shape), wrong, left, right)
    expected = logsumexp(left[:, None, :] + right[None, :, :], axis=2)
    assert_allclose(recomputed, np.where(wrong, expected, 0), rtol=1e-14, atol=1e-13)


# One iteration against given column sums, where linear sums underflow and where they do not.


@pytest.mark.parametrize("alpha", [0.1, 1.0, 7.0, 35.0])
@pytest.mark.parametrize("low", [0, -100, -1000, -20000, -np.inf])
def test_small_column_sums(alpha, low):
    """Column sums that underflow make the linear form useless, and it must be noticed."""
    rng = np.random.default_rng(1)
    proba, q = draw_rows(rng, 40, 6), rng.dirichlet(np.ones(6))
    log_s = rng.uniform(max(low, -1e5), 3, 6)
    log_s[2] = min(log_s[2], low)  # minus infinity: a class that no reference row has
    with np.errstate(all="ignore"):
        log_b = alpha * np.log(proba)
        expected = np.log(q) + np.where(proba > 0, log_b - np.logaddexp(log_b, log_s), -np.inf)
        expected = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    adjusted = scaling.step_once(proba, scaling.ColumnSums.of(log_s, q, proba), alpha=alpha)
    assert_allclose(adjusted, expected, rtol=0, atol=1e-12)


# The interpolation of the two-class kernel, branch by branch.


RTOL_INTERPOLATION = 1e-13  # interpolated and direct column sums, relative to their size


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

        def spy(*arguments):
            coefficients = original(*arguments)
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
