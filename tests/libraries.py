"""The array libraries that the tests run on, and how to make arrays of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from array_api_compat import device


@dataclass(frozen=True)
class Library:
    """How to make arrays of a library, on a device that is not its default if it has one."""

    make: Callable[..., Any]  # from values and the name of a dtype

    def same_place(self, array, like):
        return type(array) is type(like) and device(array) == device(like)


def make_strict(values, dtype=None):
    """Only what the standard has; a second device, from which nothing mixes with the first."""
    import array_api_strict as xp

    dtype = None if dtype is None else getattr(xp, dtype)
    return xp.asarray(values, dtype=dtype, device=xp.Device("device1"))


def make_torch(values, dtype=None, device="cpu"):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("PyTorch sees no CUDA device")
    dtype = None if dtype is None else getattr(torch, dtype)
    return torch.tensor(values, dtype=dtype, device=device)


def make_cuda(values, dtype=None):
    return make_torch(values, dtype, "cuda")


def make_cupy(values, dtype=None):
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("CuPy sees no CUDA device")
    return cupy.asarray(values, dtype=dtype)


def make_jax(values, dtype=None):
    """In double precision, on a GPU where it finds one."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(values, dtype=dtype)


# Those that `make test-all` does not install, or that need a GPU, skip where there is none.
LIBRARIES = [
    pytest.param(Library(np.asarray), id="numpy"),
    pytest.param(Library(make_strict), id="array-api-strict"),
    pytest.param(Library(make_torch), id="torch", marks=pytest.mark.heavy),
    pytest.param(Library(make_cuda), id="torch-cuda", marks=pytest.mark.device),
    pytest.param(Library(make_cupy), id="cupy", marks=pytest.mark.device),
    pytest.param(Library(make_jax), id="jax", marks=pytest.mark.device),
]
