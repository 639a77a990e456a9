"""The array libraries that the tests run on, and how to make arrays of each."""

import numpy as np
import pytest


class NumPy:
    """How the tests make arrays of a library, on a device that is not its default if it has one."""

    def make(self, values, dtype=None):
        return np.asarray(values, dtype=dtype)

    def same_place(self, array, like):
        return type(array) is type(like) and self.place(array) == self.place(like)

    def place(self, array):
        return None if isinstance(array, np.ndarray) else array.device


class Strict(NumPy):
    """Only what the standard has; a second device, from which nothing mixes with the first."""

    def make(self, values, dtype=None):
        import array_api_strict

        device = array_api_strict.Device("device1")
        dtype = None if dtype is None else getattr(array_api_strict, dtype)
        return array_api_strict.asarray(values, dtype=dtype, device=device)


class Torch(NumPy):
    """PyTorch on the CPU."""

    device = "cpu"

    def make(self, values, dtype=None):
        torch = pytest.importorskip("torch")
        dtype = None if dtype is None else getattr(torch, dtype)
        return torch.tensor(values, dtype=dtype, device=self.device)


class Cuda(Torch):
    """PyTorch on a GPU."""

    device = "cuda"

    def make(self, values, dtype=None):
        if not pytest.importorskip("torch").cuda.is_available():
            pytest.skip("PyTorch sees no CUDA device")
        return super().make(values, dtype)


class CuPy(NumPy):
    """CuPy, which has nothing but GPUs."""

    def make(self, values, dtype=None):
        cupy = pytest.importorskip("cupy")
        if not cupy.cuda.is_available():
            pytest.skip("CuPy sees no CUDA device")
        return cupy.asarray(values, dtype=dtype)


class Jax(NumPy):
    """JAX in double precision, on a GPU where it finds one."""

    def make(self, values, dtype=None):
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        return jax.numpy.asarray(values, dtype=dtype)

    def place(self, array):
        return array.devices()


# Those that `make test-all` does not install, or that need a GPU, skip where there is none.
LIBRARIES = [
    pytest.param(NumPy(), id="numpy"),
    pytest.param(Strict(), id="array-api-strict"),
    pytest.param(Torch(), id="torch", marks=pytest.mark.heavy),
    pytest.param(Cuda(), id="torch-cuda", marks=pytest.mark.device),
    pytest.param(CuPy(), id="cupy", marks=pytest.mark.device),
    pytest.param(Jax(), id="jax", marks=pytest.mark.device),
]
