"""One code for every array library: the same kind, device and dtype out, the same values."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from altnorm import alternating_normalization, ambiguity, topk_entropy, trajectory
from altnorm._base import arrays as _array
from tests.libraries import LIBRARIES
from tests.oracle import draw_rows

ATOL = {"float64": 1e-11, "float32": 1e-4}  # against NumPy in double precision


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


def rows(n, m, seed=0):
    """Rows of every kind, with values that single precision holds exactly."""
    return draw_rows(np.random.default_rng(seed), n, m).astype(np.float32).astype(np.float64)


def classifier_rows(n, m, seed=0):
    """Rows as sure as a classifier's."""
    return np.random.default_rng(seed).dirichlet(np.full(m, 0.5), n)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestSameKindSameValues:
    def check(self, library, result, expected, like):
        assert library.same_place(result, like)
        assert result.dtype == like.dtype
        name = str(like.dtype).rpartition(".")[2]
        assert_allclose(_array.to_numpy(result), expected, rtol=0, atol=ATOL[name])

    def test_ambiguity(self, library, dtype):
        proba = rows(40, 15)
        like = library.make(proba, dtype)
        self.check(library, ambiguity(like), ambiguity(proba), like)
        self.check(library, topk_entropy(like, 4), topk_entropy(proba, 4), like)

    @pytest.mark.parametrize(("n", "m"), [(30, 2), (30, 6), (500, 20), (5000, 2)])
    @pytest.mark.parametrize(("alpha", "depth"), [(1.0, 1), (0.6, 1), (2.0, 3), (20.0, 5)])
    def test_plain(self, library, dtype, n, m, alpha, depth):
        """Of every kernel: literal, with repairs in the log domain, with halved intervals."""
        proba, reference = classifier_rows(40, m), classifier_rows(n, m, 1)
        like = library.make(proba, dtype)
        keywords = {"alpha": alpha, "depth": depth}
        expected = trajectory(proba, reference, **keywords)
        steps = trajectory(like, library.make(reference, dtype), **keywords)
        final = alternating_normalization(like, library.make(reference, dtype), **keywords)
        if dtype == "float64" or alpha < 20:
            self.check(library, steps, expected, like)
            self.check(library, final, expected[-1], like)
        assert library.same_place(final, like)
        assert np.isfinite(_array.to_numpy(final)).all()

    @pytest.mark.parametrize("m", [2, 6])
    @pytest.mark.parametrize("depth", [1, 3])
    def test_every_option(self, library, dtype, m, depth):
        """Zeros, a class with prior zero, weights, smoothing; prior and weights of the library."""
        proba, reference = rows(12, m), rows(30, m, 1)
        proba[3] = np.eye(m)[0]
        weight, prior = np.arange(30.0), np.arange(m, dtype=float)
        numbers = {"alpha": 2.0, "depth": depth, "smoothing": 0.1}
        with pytest.warns(UserWarning, match="prior zero"):
            expected = alternating_normalization(
                proba, reference, prior=prior, reference_weight=weight, **numbers
            )
        like = library.make(proba, dtype)
        with pytest.warns(UserWarning, match="prior zero"):
            result = alternating_normalization(
                like,
                library.make(reference, dtype),
                prior=library.make(prior, dtype),
                reference_weight=library.make(weight, dtype),
                **numbers,
            )
        self.check(library, result, expected, like)

    def test_no_rows(self, library, dtype):
        empty = library.make(np.empty((0, 3)), dtype)
        reference = library.make(rows(5, 3), dtype)
        for depth in (1, 3):
            result = alternating_normalization(empty, reference, depth=depth)
            assert library.same_place(result, empty)
            assert tuple(result.shape) == (0, 3)
            assert tuple(trajectory(empty, reference, depth=depth).shape) == (depth + 1, 0, 3)
        assert tuple(ambiguity(empty).shape) == tuple(topk_entropy(empty, 2).shape) == (0,)


@pytest.mark.heavy
def test_torch_half_precision_is_computed_in_single():
    torch = pytest.importorskip("torch")
    proba = torch.tensor([[0.5, 0.5]], dtype=torch.bfloat16)
    result = alternating_normalization(proba, torch.tensor([[0.0, 1.0]], dtype=torch.bfloat16))
    assert result.dtype == torch.float32
    assert_array_equal(result.numpy(), [[0.75, 0.25]])


@pytest.mark.parametrize(
    ("megabytes", "free", "stops"),
    [(1, 0, [250]), (1e-1, 0, [131, 250]), (1e-3, 4 * 100 * 800, [100, 200, 250])],
)
def test_blocks_fit_the_memory(monkeypatch, library, megabytes, free, stops):
    """The working memory or, on a GPU, a quarter of what is free there, if that is more."""
    monkeypatch.setattr(_array, "_free_bytes", lambda like: free)
    like = library.make([[1.0]], "float64")
    with config_context(working_memory=megabytes):
        slices = list(_array.block_slices(250, 800, like, cached=False))
    assert [part.stop for part in slices] == stops
    assert [part.start for part in slices] == [0, *stops[:-1]]
