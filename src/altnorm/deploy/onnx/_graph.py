"""A small writer of ONNX graphs: values with arithmetic, so that formulas read as formulas."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes and constants of a graph under construction; calling it adds a node."""

    def __init__(self, opset: int, prefix: str = "altnorm/") -> None:
        self.opset, self.prefix = opset, prefix
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.numbers = itertools.count()

    def __call__(self, op: str, *inputs: Any, n_outputs: int = 1, **attributes: Any) -> Value:
        """Add a node; return its first output."""
        values = [self.constant(x) for x in inputs]
        outputs = [self.name() for _ in range(n_outputs)]
        self.nodes.append(helper.make_node(op, [v.name for v in values], outputs, **attributes))
        return Value(self, outputs[0])

    def name(self) -> str:
        """Return a name not used before."""
        return f"{self.prefix}{next(self.numbers)}"

    def constant(self, value: Any) -> Value:
        """Store an array; numbers become double or int64."""
        if isinstance(value, Value):
            return value
        name = self.name()
        self.initializers.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return Value(self, name)

    def log(self, x: Value) -> Value:
        """Return the logarithm; that of zero is minus infinity."""
        return self("Log", x)

    def reduce_max(self, x: Value) -> Value:
        """Return the largest entry of each row."""
        if self.opset < 18:
            return self("ReduceMax", x, axes=[1], keepdims=1)
        return self("ReduceMax", x, np.array([1]), keepdims=1)

    def sum(self, x: Value) -> Value:
        """Return the sum of each row."""
        return self("ReduceSum", x, np.array([1]), keepdims=1)

    def arg_max(self, x: Value) -> Value:
        """Return where each row has its largest entry, the first of equal ones."""
        return self("ArgMax", x, axis=1, keepdims=1)

    def differs(self, x: Value, y: Value) -> Value:
        """Return where two arrays differ."""
        return self("Not", self("Equal", x, y))

    def indices(self, mask: Value) -> Value:
        """Return the indices at which a vector is true."""
        return self("Squeeze", self("NonZero", mask), np.array([0]))

    def top_k(self, x: Value, k: int) -> Value:
        """Return the `k` largest entries of each row."""
        return self("TopK", x, np.array([k]), n_outputs=2)

    def stack_rows(
        self, count: Value, width: int, make_row: Callable[[Graph, Value], Value]
    ) -> Value:
        """Stack ``make_row(0)``, ``make_row(1)``, .., each a double vector of length `width`.

        `make_row` is given the graph of the loop's body, which may use values of this one.
        """
        body = Graph(self.opset, self.prefix)
        body.initializers, body.numbers = self.initializers, self.numbers
        inputs = [(self.name(), TensorProto.INT64), (self.name(), TensorProto.BOOL)]
        row = make_row(body, Value(body, inputs[0][0]))
        go_on = body("Identity", Value(body, inputs[1][0]))
        subgraph = helper.make_graph(
            body.nodes,
            row.name,
            [helper.make_tensor_value_info(name, kind, []) for name, kind in inputs],
            [
                helper.make_tensor_value_info(go_on.name, TensorProto.BOOL, []),
                helper.make_tensor_value_info(row.name, TensorProto.DOUBLE, [width]),
            ],
        )
        return self("Loop", count, np.array(True), body=subgraph)


class Value:
    """An array inside the graph, with arithmetic."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> Value:
        return self.graph("Add", self, other)

    def __sub__(self, other: Any) -> Value:
        return self.graph("Sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.graph("Sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return self.graph("Mul", self, other)

    def __truediv__(self, other: Any) -> Value:
        return self.graph("Div", self, other)

    def __matmul__(self, other: Any) -> Value:
        return self.graph("MatMul", self, other)

    def __gt__(self, other: Any) -> Value:
        return self.graph("Greater", self, other)

    def __neg__(self) -> Value:
        return self.graph("Neg", self)

    __array_ufunc__ = None  # an ndarray on the left leaves the arithmetic to us
