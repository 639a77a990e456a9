"""All knowledge of array libraries: what the array API standard lacks is resolved here, once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import ModuleType
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import array_api_compat
import numpy as np
from array_api_compat import (
    is_cupy_namespace,
    is_dask_array,
    is_jax_namespace,
    is_numpy_array,
    is_numpy_namespace,
    is_torch_array,
    is_torch_namespace,
)
from scipy.special import expit, logit
from sklearn import get_config
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

device, is_array_api_obj = array_api_compat.device, array_api_compat.is_array_api_obj

Array = Any
"""An array of any supported library; the standard has no common base class to name."""


class DeviceArray(Protocol):
    """An array of NumPy, PyTorch, CuPy or JAX, as type checkers know it."""

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


GivenArray = TypeVar("GivenArray", bound=DeviceArray)
"""What a user passes, and gets back in kind."""

Result = TypeVar("Result")

# A block of this many bytes stays in a core's cache, where elementwise passes are cheapest.
_CACHE_BYTES = 2**21

# What may be kept for the next call is this share of scikit-learn's `working_memory`.
_KEPT_SHARE = 0.25

_FUSED = ("torch.float32", "torch.float64")  # what kernels compute in

# Products of small blocks leave most of a GPU idle, so a block takes this share of its free memory.
_DEVICE_SHARE = 0.25

_NAMESPACES: dict[type, Any] = {}  # of each kind of array that was seen
_threads = cache(ThreadpoolController)  # looks through all libraries, which takes a while


def array_namespace(*arrays: Array) -> Any:
    """Return the one library of some arrays, in the form of the array API standard."""
    kind = type(arrays[0])
    if len(arrays) > 1 and any(type(array) is not kind for array in arrays):
        return array_api_compat.array_namespace(*arrays)
    # It is asked for dozens of times for a single row, and looking it up takes a while.
    if kind not in _NAMESPACES:
        _NAMESPACES[kind] = array_api_compat.array_namespace(*arrays)
    return _NAMESPACES[kind]


def one_thread() -> AbstractContextManager[Any]:
    """Keep linear algebra to one thread: several burn their time on small matrices."""
    limit: AbstractContextManager[Any] = _threads().limit(limits=1)
    return limit


def is_foreign(values: object) -> bool:
    """Whether `values` is an array of a library other than NumPy, perhaps on another device."""
    if type(values) is np.ndarray:
        return False
    return is_array_api_obj(values) and not (is_numpy_array(values) or is_dask_array(values))


def on_host(values: Any) -> Any:
    """Return arrays of other libraries as NumPy arrays, and all else as it is."""
    return to_numpy(values) if is_foreign(values) else values


def move(values: Any, like: object) -> Any:
    """Return `values` where `like` is, if that is an array of another library than NumPy."""
    if not is_foreign(like):
        return values
    xp = array_namespace(like)
    if is_array_api_obj(values) and array_namespace(values) is xp:
        return values
    return xp.asarray(np.ascontiguousarray(values), device=device(like))


def as_array(values: Any, like: Array) -> Array:
    """Return `values` as an array of the library, device and dtype of `like`."""
    xp = array_namespace(like)
    # No two libraries take each other's arrays reliably; the way through NumPy always exists.
    if is_array_api_obj(values) and array_namespace(values) is not xp:
        values = to_numpy(values)
    return xp.asarray(values, dtype=like.dtype, device=device(like))


def to_numpy(array: Array) -> np.ndarray:
    xp = array_namespace(array)
    if is_torch_namespace(xp):
        return np.asarray(array.detach().cpu())
    if is_cupy_namespace(xp):
        return array.get()
    if is_numpy_namespace(xp) or is_jax_namespace(xp):
        return np.asarray(array)
    return np.from_dlpack(array)


def widest_float(like: Array) -> Any:
    xp = array_namespace(like)
    if is_numpy_namespace(xp):
        return np.float64
    kinds = xp.__array_namespace_info__().dtypes(kind="real floating", device=device(like))
    return kinds.get("float64", like.dtype)


def wide(rows: Array) -> Array:
    """Return rows in the most precise dtype where they are."""
    if type(rows) is np.ndarray and rows.dtype == np.float64:
        return rows
    return array_namespace(rows).astype(rows, widest_float(rows), copy=False)


def take_rows(array: Array, rows: np.ndarray) -> Array:
    """Return the rows that `rows`, a mask or numbers in host memory, stands for."""
    if is_numpy_array(array):
        return array[rows]
    xp = array_namespace(array)
    numbers = np.flatnonzero(rows) if rows.dtype == bool else rows
    return xp.take(array, xp.asarray(numbers, device=device(array)), axis=0)


def put_rows(array: Array, rows: np.ndarray, values: Array) -> Array:
    """Return `array` with other values in some rows, a mask in host memory; in place if it can."""
    xp = array_namespace(array)
    values = xp.astype(move(values, array), array.dtype, copy=False)
    return scatter(array, xp.asarray(rows, device=device(array)), values)


def column_of_max(array: Array) -> np.ndarray:
    """Return the column of the largest entry of each row, the first of equal ones, as NumPy."""
    if not is_foreign(array):
        return np.asarray(array).argmax(axis=1)
    return to_numpy(array_namespace(array).argmax(array, axis=1))


def entries_at(array: Array, columns: np.ndarray) -> np.ndarray:
    """Return the entry of each row in its column, as NumPy."""
    if is_numpy_array(array):
        return array[np.arange(columns.size), columns]
    rows = array_namespace(array).arange(columns.size, device=device(array))
    return to_numpy(take_entries(array, rows, move(columns, array)[:, None]))[:, 0]


def softmax(scores: Array) -> Array:
    xp = array_namespace(scores)
    top = xp.max(scores, axis=1, keepdims=True)
    p = xp.exp(scores - top)
    return p / xp.sum(p, axis=1, keepdims=True)


def log_softmax(scores: Array) -> Array:
    xp = array_namespace(scores)
    shifted = scores - xp.max(scores, axis=1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))


def convert(part: Any, function: Callable[[Any], Any], kinds: Any = (np.ndarray, float)) -> Any:
    """Return a record of constants, or a part of one, with `function` applied to each."""
    if isinstance(part, tuple):
        parts = [convert(each, function, kinds) for each in part]
        return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)
    return function(part) if isinstance(part, kinds) else part


def beside(record: Any, rows: Array) -> Any:
    """Return a record with its arrays where the rows are."""
    if not is_foreign(rows):
        return record

    def place(constant: np.ndarray) -> Array:
        is_float = constant.dtype.kind == "f"
        return as_array(constant, rows) if is_float else move(constant, rows)

    return convert(record, place, np.ndarray)


def sigmoid(z: Array) -> Array:
    """Logistic function, of infinities too."""
    if type(z) is np.ndarray:
        return np.asarray(expit(z))
    xp = array_namespace(z)
    small = xp.exp(-xp.abs(z))
    return xp.where(z > 0, 1 / (1 + small), small / (1 + small))


def log_odds(p: Array) -> Array:
    if type(p) is np.ndarray:
        return np.asarray(logit(p))
    xp = array_namespace(p)
    return xp.log(p) - xp.log1p(-p)


def quiet(xp: object) -> AbstractContextManager[object]:
    """Silence NumPy, and what is built on it, where ``log(0) = -inf`` is meant.

    JAX, which is silent, must not round the factors of a product in single precision.
    """
    if is_jax_namespace(xp):
        from jax import default_matmul_precision

        return default_matmul_precision("highest")
    if is_torch_namespace(xp) or is_cupy_namespace(xp):
        return nullcontext()
    return np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")


def top_k(array: Array, k: int) -> Array:
    """Return the `k` largest values of each row, largest first."""
    xp = array_namespace(array)
    if hasattr(xp, "topk"):  # PyTorch, and the graphs of `altnorm.deploy.onnx`
        return xp.topk(array, k, dim=1).values
    if is_jax_namespace(xp):
        from jax.lax import top_k as jax_top_k

        return jax_top_k(array, k)[0]
    if is_numpy_namespace(xp):
        # Partition first: the ten largest of many classes need no full sort.
        if k < array.shape[1]:
            array = np.partition(array, array.shape[1] - k, axis=1)[:, -k:]
        return np.sort(array, axis=1)[:, ::-1]
    return xp.sort(array, axis=1, descending=True)[:, :k]


def running_sums(array: Array) -> Array:
    """Return the sums of the first, the first two, .. entries of each row."""
    xp = array_namespace(array)
    # The older name, where there is one: `torch.compile` warns of what is around the other.
    return (xp.cumsum if hasattr(xp, "cumsum") else xp.cumulative_sum)(array, axis=1)


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
    """Return ``exp(array)``, in its memory where the library allows it."""
    xp = array_namespace(array)
    if is_numpy_namespace(xp):
        return np.exp(array, out=array)
    if is_torch_namespace(xp) and not array.requires_grad:
        return array.exp_()
    return xp.exp(array)


def power_in_place(array: Array, exponent: float) -> Array:
    """Return ``array ** exponent`` of positive numbers, in its memory."""
    kernels = fused(array, by_row=False)
    if kernels is not None and exponent != -1:  # which is a mere division
        return kernels.power(array, exponent)
    array **= exponent
    return array


def are_distributions(array: Array, tolerance: float) -> bool:
    """Whether each row sums to 1, about, and no entry is negative; NaN is neither."""
    if not array.shape[0]:
        return True
    kernels = fused(array)
    if kernels is not None:
        return bool(kernels.are_distributions(array, tolerance))
    xp = array_namespace(array)
    close = xp.abs(xp.sum(array, axis=1) - 1) <= tolerance
    return bool(xp.all(close) & (xp.min(array) >= 0))


def fused(*arrays: Array, by_row: bool = True) -> ModuleType | None:
    """Return the module of kernels for such arrays, `by_row` for whole rows, or None."""
    first = arrays[0]
    if type(first) is np.ndarray:
        return None
    if not is_torch_array(first) or first.device.type != "cuda" or str(first.dtype) not in _FUSED:
        return None
    alike = all(a.dtype == first.dtype and a.is_contiguous() and a.numel() for a in arrays)
    kernels = _cuda_kernels() if alike and not any(a.requires_grad for a in arrays) else None
    too_wide = kernels is not None and by_row and first.shape[-1] > kernels.WIDEST
    return None if too_wide else kernels


@cache
def _cuda_kernels() -> ModuleType | None:
    try:
        from altnorm._base import cuda as _cuda

        _cuda.try_out()
    except Exception:  # no Triton, or none of what it needs to compile: all works without it
        return None
    return _cuda


def scatter(array: Array, where: Array, values: Array) -> Array:
    """Return `array` with ``array[where] = values``; in place where the library allows it."""
    # JAX arrays cannot be written to.
    if is_jax_namespace(array_namespace(array)):
        return array.at[where].set(values)
    array[where] = values
    return array


def block_slices(n_rows: int, bytes_per_row: int, like: Array, *, cached: bool) -> Iterator[slice]:
    """Cut `n_rows` into slices whose temporaries fit scikit-learn's ``working_memory``.

    Blocks of `cached` work, which is elementwise, also fit the cache of a CPU.
    """
    budget = get_config()["working_memory"] * 2**20
    if cached and is_numpy_namespace(array_namespace(like)):
        budget = min(budget, _CACHE_BYTES)
    if n_rows * bytes_per_row > budget:  # else there is no need to ask, which takes a while
        budget = max(budget, _DEVICE_SHARE * _free_bytes(like))
    step = max(1, int(budget // max(1, bytes_per_row)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _free_bytes(like: Array) -> int:
    """Memory that is free on the GPU that holds `like`; 0 elsewhere, or if unknown."""
    xp = array_namespace(like)
    if is_torch_namespace(xp) and like.device.type == "cuda":
        from torch import cuda

        pool = cuda.memory_reserved(like.device) - cuda.memory_allocated(like.device)
        return int(cuda.mem_get_info(like.device)[0] + pool)
    if is_cupy_namespace(xp):
        import cupy

        with like.device:
            return int(like.device.mem_info[0] + cupy.get_default_memory_pool().free_bytes())
    if is_jax_namespace(xp):
        stats = next(iter(like.devices())).memory_stats() or {}
        return int(stats.get("bytes_limit", 0) - stats.get("bytes_in_use", 0))
    return 0


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


def map_blocks(function: Callable[..., Array], *arrays: Array | None) -> Array:
    """Apply a function to rows in blocks, whose temporaries stay in the cache."""
    first: Array = arrays[0]
    blocks = list(block_slices(first.shape[0], 64 * first.shape[1], first, cached=True))
    if len(blocks) == 1:
        return function(*arrays)

    def parts(block: slice) -> Iterator[Array | None]:
        return (None if array is None else array[block, :] for array in arrays)

    return concat_blocks((function(*parts(block)) for block in blocks), first)


class KeptResults:
    """A result for each owner, as long as it lives and what it was made from is the same."""

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[object, tuple[Any, ...]] = WeakKeyDictionary()

    def get(
        self, owner: object, arrays: tuple[object, ...], key: object, make: Callable[[], Result]
    ) -> Result:
        """Return what `make` made of the very `arrays` and of an equal `key`."""
        held = self._held.get(owner)
        same = held is not None and all(map(operator.is_, held[0], arrays))
        if held is None or not same or held[1] != key:
            held = self._held[owner] = arrays, key, make()
        return held[2]


def may_keep(size: int) -> bool:
    """Whether so many numbers in double precision may be kept for the next call."""
    return 8 * size <= _KEPT_SHARE * get_config()["working_memory"] * 2**20
