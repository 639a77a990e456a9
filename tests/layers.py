"""Layers and rows for the tests of the PyTorch modules."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.special import softmax

# Doctest looks into this file even where PyTorch is not installed.
torch = pytest.importorskip("torch")
AlternatingNorm = importlib.import_module("altnorm.torch").AlternatingNorm

TOLERANCE = 1e-12
# (classes, alpha, depth): one iteration, the scaling form, and two classes.
SETTINGS = [(5, 2.0, 1), (5, 0.7, 2), (5, 2.0, 3), (2, 3.0, 1), (2, 1.5, 3)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """More threads would fight with those of the other tests."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def draw(seed: int, n: int, m: int, scale: float) -> np.ndarray:
    return softmax(scale * np.random.default_rng(seed).normal(size=(n, m)), axis=1)


def layer_and_rows(m: int, alpha: float, depth: int, **keywords):
    prior = np.random.default_rng(1).dirichlet(np.full(m, 5.0))
    keywords = {"threshold": 0.3, **keywords}
    layer = AlternatingNorm(draw(2, 30, m, 3.0), prior, alpha=alpha, depth=depth, **keywords)
    return layer, torch.tensor(draw(3, 6, m, 0.5))


def assert_close(got, want: np.ndarray, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(got.detach().numpy(), want, atol=tolerance, rtol=0)


def biased(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits that favour class 0, with labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    return 1.5 * rng.normal(size=(n, m)) + 2.5 * np.eye(m)[y] + 2 * (np.arange(m) == 0), y
