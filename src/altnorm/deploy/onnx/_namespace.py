"""The part of the array API that programs use, as nodes of an ONNX graph.

Arrays filled with one number are that number: operators of ONNX broadcast.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from onnx import helper

from altnorm.deploy.onnx._graph import Value

int64 = np.int64


def exp(x: Value) -> Value:
    return x.graph("Exp", x)


def log(x: Value) -> Value:
    return x.graph("Log", x)


def log1p(x: Value) -> Value:
    return log(x + 1.0)


def abs(x: Value) -> Value:
    return x.graph("Abs", x)


def maximum(x: Value, y: Value) -> Value:
    return x.graph("Max", x, y)


def minimum(x: Value, y: Value) -> Value:
    return x.graph("Min", x, y)


def where(condition: Value, x: Value, y: Value) -> Value:
    return x.graph("Where", condition, x, y, dtype=x.dtype)


def zeros_like(x: Value) -> Value:
    return x.graph.constant(np.zeros((), dtype=x.dtype))


def ones_like(x: Value) -> Value:
    return x.graph.constant(np.ones((), dtype=x.dtype))


def full_like(x: Value, value: float) -> Value:
    return x.graph.constant(np.full((), value, dtype=x.dtype))


def max(x: Value, *, axis: int, keepdims: bool) -> Value:
    if x.graph.opset < 18:
        return x.graph("ReduceMax", x, axes=[axis], keepdims=int(keepdims))
    return x.graph("ReduceMax", x, np.array([axis]), keepdims=int(keepdims))


def sum(x: Value, *, axis: int, keepdims: bool) -> Value:
    return x.graph("ReduceSum", x, np.array([axis]), keepdims=int(keepdims))


def cumulative_sum(x: Value, *, axis: int) -> Value:
    return x.graph("CumSum", x, np.array(axis))


def argmax(x: Value, *, axis: int) -> Value:
    return x.graph("ArgMax", x, axis=axis, keepdims=0, dtype=np.int64)


def take(x: Value, indices: Value, *, axis: int) -> Value:
    return x.graph("Gather", x, indices, axis=axis)


def concat(values: list[Value], *, axis: int) -> Value:
    return values[0].graph("Concat", *values, axis=axis)


def astype(x: Value, dtype: Any, *, copy: bool = True) -> Value:
    return x.graph.cast(x, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def topk(x: Value, k: int, *, dim: int) -> SimpleNamespace:
    """As PyTorch's: the standard has none."""
    return SimpleNamespace(values=x.graph("TopK", x, np.array([k]), axis=dim, n_outputs=2))
