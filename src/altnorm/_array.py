"""Namespace, device and dtype: everything altnorm knows about array libraries.

The numerical modules are written against the array API standard. The few things the standard
lacks (top-k, scattering into an array that may be immutable) are resolved here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_cupy_namespace,
    is_jax_namespace,
    is_numpy_namespace,
    is_torch_namespace,
)
from sklearn import get_config

__all__ = [
    "Array",
    "array_namespace",
    "as_array",
    "block_slices",
    "concat_blocks",
    "device",
    "exp_in_place",
    "is_array_api_obj",
    "quiet",
    "scatter",
    "take_entries",
    "to_numpy",
    "top_columns",
    "top_k",
]

Array = Any
"""An array of any supported library; the standard has no common base class to name."""

# A block of this many bytes stays in a core's cache, where elementwise passes are cheapest.
_CACHE_BYTES = 2**21


def as_array(values: Any, like: Array) -> Array:
    """Return `values` as an array of the library, device and dtype of `like`."""
    xp = array_namespace(like)
    # No two libraries take each other's arrays reliably; the way through NumPy always exists.
    if is_array_api_obj(values) and array_namespace(values) is not xp:
        values = to_numpy(values)
    return xp.asarray(values, dtype=like.dtype, device=device(like))


def to_numpy(array: Array) -> np.ndarray:
    """Copy `array` to host memory as a NumPy array."""
    xp = array_namespace(array)
    if is_torch_namespace(xp):
        return np.asarray(array.detach().cpu())
    if is_cupy_namespace(xp):
        return array.get()
    if is_numpy_namespace(xp) or is_jax_namespace(xp):
        return np.asarray(array)
    return np.from_dlpack(array)


def quiet(xp: Any) -> AbstractContextManager[Any]:
    """Silence NumPy, and what is built on it, where ``log(0) = -inf`` is meant."""
    if is_torch_namespace(xp) or is_cupy_namespace(xp) or is_jax_namespace(xp):
        return nullcontext()
    return np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")


def top_k(array: Array, k: int) -> Array:
    """Return the `k` largest values of each row, largest first."""
    xp = array_namespace(array)
    if is_torch_namespace(xp):
        return xp.topk(array, k, dim=1).values
    if is_jax_namespace(xp):
        from jax.lax import top_k as jax_top_k

        return jax_top_k(array, k)[0]
    # Partition first: the ten largest of many classes need no full sort.
    if is_numpy_namespace(xp) and k < array.shape[1]:
        array = np.partition(array, array.shape[1] - k, axis=1)[:, -k:]
    return xp.sort(array, axis=1, descending=True)[:, :k]


def top_columns(array: Array, k: int) -> Array:
    """Return the columns of the `k` largest values of each row, the smallest of them last."""
    xp = array_namespace(array)
    if is_torch_namespace(xp):
        return xp.topk(array, k, dim=1).indices
    if is_jax_namespace(xp):
        from jax.lax import top_k as jax_top_k

        return jax_top_k(array, k)[1]
    if is_numpy_namespace(xp):
        first = array.shape[1] - k
        return np.argpartition(array, first, axis=1)[:, first:][:, ::-1]
    return xp.argsort(array, axis=1, descending=True)[:, :k]


def take_entries(array: Array, rows: Array, columns: Array) -> Array:
    """Return ``array[rows[:, None], columns]``, without a copy of whole rows."""
    xp = array_namespace(array)
    # The standard has no indexing by two arrays; positions in the flat array do.
    flat = xp.reshape(rows[:, None] * array.shape[1] + columns, (-1,))
    return xp.reshape(xp.take(xp.reshape(array, (-1,)), flat), columns.shape)


def exp_in_place(array: Array) -> Array:
    """Return ``exp(array)``, in the memory of `array` where the library allows it."""
    xp = array_namespace(array)
    if is_numpy_namespace(xp):
        return np.exp(array, out=array)
    if is_torch_namespace(xp) and not array.requires_grad:
        return array.exp_()
    return xp.exp(array)


def scatter(array: Array, mask: Array, values: Array) -> Array:
    """Return `array` with ``array[mask] = values``; in place where the library allows it."""
    # JAX arrays cannot be written to.
    if is_jax_namespace(array_namespace(array)):
        return array.at[mask].set(values)
    array[mask] = values
    return array


def block_slices(n_rows: int, bytes_per_row: int, like: Array, *, cached: bool) -> Iterator[slice]:
    """Cut `n_rows` into slices whose temporaries fit scikit-learn's ``working_memory``.

    Parameters
    ----------
    n_rows : int
        Number of rows to cut.
    bytes_per_row : int
        Size of the temporaries that one row needs.
    like : array
        An array of the library and device the work runs on.
    cached : bool
        Whether the work is elementwise, so that blocks on the CPU should also fit its cache.
    """
    budget = get_config()["working_memory"] * 2**20
    if cached and is_numpy_namespace(array_namespace(like)):
        budget = min(budget, _CACHE_BYTES)
    step = max(1, int(budget // max(1, bytes_per_row)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def concat_blocks(blocks: Iterable[Array], like: Array) -> Array:
    """Stack row blocks into one array shaped like `like`, holding one block at a time."""
    xp = array_namespace(like)
    if is_jax_namespace(xp):
        return xp.concat([*blocks, xp.zeros_like(like)[:0]], axis=0)
    out = xp.empty_like(like)
    start = 0
    for block in blocks:
        out[start : start + block.shape[0], ...] = block
        start += block.shape[0]
    return out
