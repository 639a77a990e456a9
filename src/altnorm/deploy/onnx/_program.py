"""A program as nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from altnorm.deploy.onnx._graph import Graph, Value
from altnorm.deploy.onnx._graph import namespace as xp
from altnorm.deploy.program import Backend, Program, convert
from altnorm.method.scaling import logsumexp

_TINY = float(np.finfo(np.float64).smallest_normal) ** 0.9  # a product below may have lost terms


def adjusted(values: Value, program: Program) -> tuple[Value, Value]:
    """Return probabilities in the type of `values`, and decisions; computed in double."""
    constants: Program = convert(program, values.graph.constant)
    p = constants.probabilities(xp.astype(values, np.float64), _BACKEND)
    return xp.astype(p, values.dtype), constants.rule(p)


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


def _replace_rows(p: Value, chosen: Value, change: Callable[[Value], Value]) -> Value:
    g = p.graph
    rows = g.indices(g("Squeeze", chosen, np.array([1])))
    return g("ScatterND", p, g("Unsqueeze", rows, np.array([1])), change(g("Gather", p, rows)))


def _log_product(left: Value, log_right: Value, right: Value, supported: Value) -> Value:
    """Entries that underflowed are computed once more from the logs, row by row.

    Where there are none, which is the rule, that costs nothing.
    """
    g = left.graph
    shift = xp.max(left, axis=1, keepdims=True)
    # Not `right`: runtimes work this out once, when they load the file, which is half as large.
    product = xp.exp(left - shift) @ xp.exp(log_right).T
    linear = xp.log(product) + shift
    lost = (product < _TINY) & supported
    rows = g.indices(xp.max(xp.astype(lost, np.float64), axis=1, keepdims=False) > 0)

    def repaired(body: Graph, i: Value) -> Value:
        row = body("Gather", rows, i)
        columns = body.indices(body("Gather", lost, row))
        terms = body("Gather", left, row) + body("Gather", log_right, columns)
        exact = body("Squeeze", logsumexp(terms, axis=1), np.array([1]))
        at = body("Unsqueeze", columns, np.array([1]))
        return body("ScatterND", body("Gather", linear, row), at, exact)

    exact = g.stack_rows(g("Size", rows), supported.shape[0], repaired)
    return g("ScatterND", linear, g("Unsqueeze", rows, np.array([1])), exact)


_BACKEND = Backend(_log_product, _replace_rows)
