"""A program as nodes of an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from altnorm.deploy.onnx import _backend
from altnorm.deploy.onnx._graph import Value
from altnorm.deploy.program import Program, convert


def adjusted(values: Value, program: Program) -> tuple[Value, Value]:
    """Return probabilities in the type of `values`, and decisions; computed in double."""
    g = values.graph
    constants: Program = convert(program, g.constant)
    p = constants.probabilities(g.cast(values, TensorProto.DOUBLE), _backend)
    return g.cast(p, helper.np_dtype_to_tensor_dtype(values.dtype)), constants.rule(p)


def label_values(classes: Any, program: Program) -> np.ndarray | None:
    """Class that each decision stands for, as text or int64; None for a 0/1 matrix."""
    values = np.asarray(classes)
    if program.is_multilabel:
        return None
    if program.rule.leaves_rows:
        values = np.array([*map(str, values.tolist()), ""], dtype=object)
    elif values.dtype.kind in "UO":
        values = np.array([*map(str, values.tolist())], dtype=object)
    return values.astype(np.int64) if values.dtype.kind in "iu" else values
