"""The two kernels for any number of classes, against each other and where linear sums underflow."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp as scipy_logsumexp
from sklearn import config_context

from altnorm.method import scaling
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
    return scaling.iterate(log_b, scaling.anchor_path(met), depth=depth)


def softmax_rows(rng, n, m, scale):
    """Rows like a classifier's: the larger `scale`, the surer and the smaller the small entries."""
    logits = scale * rng.normal(size=(n, m))
    return np.exp(logits - scipy_logsumexp(logits, axis=1, keepdims=True))


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
    (0.1, 3, 1.0, False),
    (0.7, 5, 5.0, False),
    (5.0, 5, 1.0, True),
    (5.0, 3, 50.0, False),
    (16.0, 4, 1.0, True),
    (35.0, 5, 1.0, True),
    (35.0, 3, 30.0, False),
]


class TestKernelsAgree:
    @pytest.mark.parametrize(("alpha", "depth", "scale", "underflows"), REGIMES)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_many_references(self, repaired, alpha, depth, scale, underflows, weighted):
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
        fast = run(iterate, proba, reference, **keywords)
        literal = run(scaling.iterate_stacked, proba, reference, **keywords)
        assert np.isfinite(fast).all()
        assert_allclose(fast, literal, rtol=0, atol=ATOL_KERNELS)
        assert (sum(repaired) > 0) == underflows

    @pytest.mark.parametrize(("alpha", "depth"), [(1.0, 4), (0.5, 3), (4.0, 4), (10.0, 3)])
    def test_two_classes(self, alpha, depth):
        rng = np.random.default_rng(7)
        reference, proba = softmax_rows(rng, 5000, 2, 3.0), softmax_rows(rng, 6, 2, 1.0)
        keywords = {"prior": np.array([0.3, 0.7]), "alpha": alpha, "depth": depth}
        fast = run(iterate, proba, reference, **keywords)
        literal = run(scaling.iterate_stacked, proba, reference, **keywords)
        assert_allclose(fast, literal, rtol=0, atol=ATOL_KERNELS)

    @pytest.mark.parametrize(("alpha", "depth"), [(1.0, 5), (0.3, 3), (5.0, 3), (20.0, 2)])
    def test_zeros_and_smoothing(self, alpha, depth):
        rng = np.random.default_rng(11)
        proba = draw_rows(rng, 10, 20)
        reference = np.insert(draw_rows(rng, 300, 19), 3, 0, axis=1)  # a class no row has
        for log_mass in (None, np.log(30.0)):
            keywords = {
                "prior": rng.dirichlet(np.ones(20)),
                "alpha": alpha,
                "depth": depth,
                "log_mass": log_mass,
            }
            fast = run(iterate, proba, reference, **keywords)
            literal = run(scaling.iterate_stacked, proba, reference, **keywords)
            assert_allclose(fast, literal, rtol=0, atol=ATOL_KERNELS)
            assert (fast[:, proba == 0] == 0).all()

    def test_float32_repairs_earlier(self, repaired):
        rng = np.random.default_rng(3)
        reference, proba = softmax_rows(rng, 30, 20, 20.0), softmax_rows(rng, 8, 20, 1.0)
        inputs = [x.astype(np.float32) for x in (proba, reference, np.full(20, 0.05))]
        single = run(iterate, *inputs, alpha=4.0, depth=4)
        assert single.dtype == np.float32
        assert sum(repaired) > 0
        exact = run(scaling.iterate_stacked, *map(np.float64, inputs), alpha=4.0, depth=4)
        assert_allclose(single, exact, rtol=0, atol=1e-4)


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
        found = scaling._repair(np.zeros(wrong.shape), wrong, left, right)
    expected = scipy_logsumexp(left[:, None, :] + right[None, :, :], axis=2)
    assert_allclose(found, np.where(wrong, expected, 0), rtol=1e-14, atol=1e-13)


@pytest.mark.parametrize("megabytes", [1e-6, 0.01, 0.1])
def test_blocks(megabytes, repaired):
    """Rows in blocks of any size, repairs included, give what one block gives."""
    rng = np.random.default_rng(5)
    reference, proba = softmax_rows(rng, 300, 20, 1.0), softmax_rows(rng, 30, 20, 1.0)
    keywords = {"prior": np.full(20, 0.05), "alpha": 16.0, "depth": 4}
    whole = run(iterate, proba, reference, **keywords)
    with config_context(working_memory=megabytes):
        cut = run(iterate, proba, reference, **keywords)
        literal = run(scaling.iterate_stacked, proba, reference, **keywords)
    assert sum(repaired) > 0
    assert_allclose(cut, whole, rtol=0, atol=ATOL_KERNELS)
    assert_allclose(literal, whole, rtol=0, atol=ATOL_KERNELS)


class TestLogArithmetic:
    @pytest.mark.parametrize("axis", [0, 1])
    def test_logsumexp(self, axis):
        x = np.array([[-np.inf, -1e5, 3.0], [-np.inf, -np.inf, -np.inf], [-np.inf, 2.0, 800.0]])
        with np.errstate(divide="ignore"):
            ours = scaling.logsumexp(x, axis)
        assert_array_equal(ours, scipy_logsumexp(x, axis=axis, keepdims=True))

    def test_log_add(self):
        values = np.array([-np.inf, -1e5, -1.0, 0.0, 2.0, 1e5])
        x, y = np.meshgrid(values, values)
        with np.errstate(all="ignore"):
            ours = scaling.log_add(x, y)
        assert_allclose(ours, np.logaddexp(x, y), rtol=1e-15)

    @pytest.mark.parametrize("alpha", [0.1, 1.0, 35.0])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_column_log_sums(self, alpha, weighted):
        rng = np.random.default_rng(6)
        rows, weight = draw_rows(rng, 50, 4), rng.integers(0, 3, 50).astype(float)
        rows[:, 2] = 0
        with np.errstate(all="ignore"):
            log_w = np.log(weight) if weighted else None
            expected = scipy_logsumexp(
                alpha * np.log(rows) + (log_w[:, None] if weighted else 0), axis=0
            )
            met = scaling.LogReference(np.log(rows), log_w, np.zeros(4), alpha)
            assert_allclose(scaling.column_log_sums(met), expected, rtol=1e-14)
            with config_context(working_memory=1e-6):
                cut = scaling.column_log_sums(met)
        assert_allclose(cut, expected, rtol=1e-14)
