"""Kernels for PyTorch on a GPU: what they compute, and how they are called where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from altnorm import AlternatingNormalizer, InputError, alternating_normalization, ambiguity
from altnorm._base import arrays as _array
from altnorm.method.scaling import ColumnSums, step_once

torch = pytest.importorskip("torch")

BAD = ((-0.5, "negative"), (float("nan"), "finite"), (0.9, "sum to 1"))
WHOLE_ROWS = pytest.mark.parametrize("m", [2, 3, 100, 1000, 5000])


def draw(n, m, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(m, 0.3), n)


@pytest.mark.device
class TestOnTheDevice:
    """What Triton computes is what PyTorch does."""

    @pytest.fixture(params=["float64", "float32"])
    def rows(self, request):
        if not torch.cuda.is_available():
            pytest.skip("PyTorch sees no CUDA device")
        dtype = getattr(torch, request.param)
        return lambda n, m: torch.tensor(draw(n, m, n), dtype=dtype, device="cuda")

    def test_they_are_in_use(self, rows):
        assert _array.fused(rows(3, 4)) is not None
        assert _array.fused(rows(3, 4).T) is None
        assert _array.fused(rows(3, 4).half()) is None

    @WHOLE_ROWS
    @pytest.mark.parametrize("alpha", [0.7, 1.0, 3.0])
    @pytest.mark.parametrize("depth", [1, 3])
    def test_same_values(self, monkeypatch, rows, m, alpha, depth):
        p, reference = rows(77, m), rows(50, m)
        p[0, 0] = 0.0
        p[0] /= p[0].sum()
        fast = alternating_normalization(p, reference, alpha=alpha, depth=depth)
        monkeypatch.setattr(_array, "_cuda_kernels", lambda: None)
        plain = alternating_normalization(p, reference, alpha=alpha, depth=depth)
        assert (fast - plain).abs().max() < (1e-12 if p.element_size() == 8 else 1e-4)

    @pytest.mark.parametrize("alpha", [0.1, 0.7, 1.0, 3.0, 20.0])
    def test_each_entry_to_the_last_digits(self, rows, alpha):
        """Small entries too; `alpha` multiplies what rounding does to a logarithm."""
        p, reference = rows(300, 100), rows(50, 100)
        fast = alternating_normalization(p, reference, alpha=alpha).cpu().numpy()
        exact = alternating_normalization(
            p.cpu().numpy().astype(float), reference.cpu().numpy().astype(float), alpha=alpha
        )
        large = exact > 1e-30
        error = np.abs(fast / np.where(large, exact, 1) - 1)[large].max()
        assert error < max(alpha, 1) * 100 * np.finfo(fast.dtype).eps

    @WHOLE_ROWS
    @pytest.mark.parametrize("k_max", [2, 10, 40])
    def test_ambiguity(self, rows, m, k_max):
        p = rows(301, m)
        p[0], p[1] = 0.0, 1 / m
        p[0, 1] = 1.0
        exact = ambiguity(p.cpu().numpy().astype(float), k_max=k_max)
        error = np.abs(ambiguity(p, k_max=k_max).cpu().numpy() - exact).max()
        assert error < (1e-14 if p.element_size() == 8 else 2e-6)

    @pytest.mark.parametrize(("value", "message"), BAD)
    def test_bad_rows_are_found(self, rows, value, message):
        p, good = rows(500, 30), rows(40, 30)
        p[499, 29] = value
        for arguments in ((p, good), (good, p)):
            with pytest.raises(InputError, match=message):
                alternating_normalization(*arguments)


class PlainKernels:
    """The kernels in PyTorch's own words, for tensors in host memory."""

    FEW = 32

    def are_distributions(self, p, tolerance):
        return bool(((p.sum(1) - 1).abs() <= tolerance).all() & (p >= 0).all())

    def step_rows(self, p, s, q, alpha, tolerance, least_total):
        power = (p**alpha).where(s != 0, 1.0)
        new = (q * power / (s + power)).where(p > 0, 0.0)
        total = new.sum(1, keepdim=True)
        self.is_fine = self.are_distributions(p, tolerance) and bool((total > least_total).all())
        return new / total, self.is_fine

    def largest_entropy(self, p, k_min, k_max):
        self.n_entropies = getattr(self, "n_entropies", 0) + len(p)
        tops = [p.topk(k, dim=1).values for k in range(k_min, k_max + 1)]
        shares = [top / top.sum(1, keepdim=True) for top in tops]
        entropies = [torch.special.entr(x).sum(1) / np.log(x.shape[1]) for x in shares]
        return torch.stack(entropies).amax(0).clip(0, 1)


@pytest.mark.heavy
class TestHowTheyAreCalled:
    """Results and messages are those without kernels, whether they find a fault or not."""

    @pytest.fixture
    def kernels(self, monkeypatch):
        kernels = PlainKernels()

        def fused(*arrays, by_row=True):
            alike = all(_array.is_torch_array(a) and a.dtype == arrays[0].dtype for a in arrays)
            return kernels if alike and all(a.numel() for a in arrays) else None

        monkeypatch.setattr(_array, "fused", fused)
        return kernels

    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"alpha": 0.7, "smoothing": 0.1},
            {"reference_weight": np.arange(20.0)},
            {"prior": [0.0, 0.4, 0.3, 0.2, 0.1]},
            {"alpha": 300.0},
        ],
        ids=str,
    )
    def test_same_as_numpy(self, kernels, settings):
        p, reference = draw(30, 5), draw(20, 5, 1)
        reference[:, 2] = 0  # a class that no reference row has
        reference /= reference.sum(axis=1, keepdims=True)
        adjusted = alternating_normalization(*map(torch.tensor, (p, reference)), **settings)
        expected = alternating_normalization(p, reference, **settings)
        assert_allclose(adjusted.numpy(), expected, rtol=0, atol=1e-12)
        assert kernels.is_fine

    @pytest.mark.parametrize("low", [0.0, -1000.0])
    def test_small_column_sums(self, kernels, low):
        """Column sums that underflow make the linear form useless, and it must be noticed."""
        p, q = draw(40, 6), np.full(6, 1 / 6)
        log_s = np.random.default_rng(1).uniform(low, 3, 6)
        sums = ColumnSums.of(torch.tensor(log_s), torch.tensor(q), torch.tensor(p))
        adjusted = step_once(torch.tensor(p), sums, alpha=1.0)
        expected = step_once(p, ColumnSums.of(log_s, q, p), alpha=1.0)
        assert_allclose(adjusted.numpy(), expected, rtol=0, atol=1e-12)
        assert kernels.is_fine == (low == 0)

    @pytest.mark.parametrize(("value", "message"), BAD)
    def test_bad_rows(self, kernels, value, message):
        p, good = torch.tensor(draw(30, 5)), torch.tensor(draw(20, 5, 1))
        p[29, 4] = value
        for arguments, name in (((p, good), "proba"), ((good, p), "reference")):
            with pytest.raises(InputError, match=message) as error:
                alternating_normalization(*arguments)
            assert f"`{name}`" in str(error.value)

    def test_ambiguity(self, kernels):
        p = draw(30, 50)
        assert_allclose(ambiguity(torch.tensor(p)).numpy(), ambiguity(p), rtol=0, atol=1e-14)

    def test_estimator(self, kernels):
        p, reference = draw(60, 5), draw(40, 5, 1)
        normalizer = AlternatingNormalizer(threshold=0.0, reference="all").fit(
            torch.tensor(reference)
        )
        kernels.n_entropies = 0
        adjusted = normalizer.transform(torch.tensor(p))
        assert kernels.n_entropies == len(p)  # no row goes another way
        expected = AlternatingNormalizer(threshold=0.0, reference="all").fit(reference).transform(p)
        assert_allclose(adjusted.numpy(), expected, rtol=0, atol=1e-13)
