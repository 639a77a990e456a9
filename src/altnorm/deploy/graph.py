"""A small writer of ONNX graphs: values with arithmetic, in the form of the array API standard.

With it a correction (:mod:`altnorm.estimator.correction`) becomes nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from altnorm._base.arrays import convert
from altnorm.estimator.correction import Correction, tracing
from altnorm.method.scaling import logsumexp, smallest_safe

_TINY = smallest_safe(np.empty(0))  # a product below, in doubles, may have lost terms


class Graph:
    """Nodes and constants of a graph under construction; calling it adds a node."""

    def __init__(self, opset: int, prefix: str = "altnorm/") -> None:
        self.opset, self.prefix = opset, prefix
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.numbers = itertools.count()

    def __call__(
        self, op: str, *inputs: Any, dtype: Any = None, n_outputs: int = 1, **attributes: Any
    ) -> Value:
        """Add a node; return its first output, of the dtype of the first input unless given."""
        values = [self.constant(x) for x in inputs]
        outputs = [self.name() for _ in range(n_outputs)]
        self.nodes.append(helper.make_node(op, [v.name for v in values], outputs, **attributes))
        return Value(self, outputs[0], values[0].dtype if dtype is None else np.dtype(dtype))

    def name(self) -> str:
        """Return a name not used before."""
        return f"{self.prefix}{next(self.numbers)}"

    def constant(self, value: Any) -> Value:
        """Store an array; numbers become double or int64."""
        if isinstance(value, Value):
            return value
        name, array = self.name(), np.asarray(value, order="C")
        self.initializers.append(numpy_helper.from_array(array, name))
        return Value(self, name, array.dtype, array.shape)

    def indices(self, mask: Value) -> Value:
        """Return the indices at which a vector is true."""
        return self("Squeeze", self("NonZero", mask, dtype=np.int64), np.array([0]))

    def finish(self, outputs: dict[str, Value]) -> None:
        """Give values the names of outputs, and drop all that none of them needs."""
        for name, value in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value.name], [name]))
        needed = set(outputs)
        kept = []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed |= _inputs(node)
                kept.append(node)
        self.nodes = kept[::-1]
        self.initializers = [tensor for tensor in self.initializers if tensor.name in needed]

    def stack_rows(
        self, count: Value, width: int, make_row: Callable[[Graph, Value], Value]
    ) -> Value:
        """Stack ``make_row(0)``, ``make_row(1)``, .., each a double vector.

        `make_row` is given the graph of the loop's body, which may use values of this one.
        """
        body = Graph(self.opset, self.prefix)
        body.initializers, body.numbers = self.initializers, self.numbers
        inputs = [(self.name(), TensorProto.INT64), (self.name(), TensorProto.BOOL)]
        row = make_row(body, Value(body, inputs[0][0], np.dtype(np.int64)))
        go_on = body("Identity", Value(body, inputs[1][0], np.dtype(bool)))
        subgraph = helper.make_graph(
            body.nodes,
            row.name,
            [helper.make_tensor_value_info(name, kind, []) for name, kind in inputs],
            [
                helper.make_tensor_value_info(go_on.name, TensorProto.BOOL, []),
                helper.make_tensor_value_info(row.name, TensorProto.DOUBLE, [width]),
            ],
        )
        return self("Loop", count, np.array(True), body=subgraph, dtype=np.float64)


def _inputs(node: Any) -> set[str]:
    """Names that a node uses, also inside a loop."""
    inner = (each for attribute in node.attribute for each in attribute.g.node)
    return set(node.input).union(*map(_inputs, inner))


def _arithmetic(op: str, *, dtype: Any = None, swapped: bool = False) -> Callable[..., Value]:
    """A method that adds a node with two inputs; a number takes the type of the value."""

    def method(self: Value, other: Any) -> Value:
        if isinstance(other, (int, float)):
            other = np.asarray(other, dtype=self.dtype)
        first, second = (other, self) if swapped else (self, other)
        return self.graph(op, first, second, dtype=dtype)

    return method


class Value:
    """An array inside the graph, with arithmetic."""

    def __init__(
        self, graph: Graph, name: str, dtype: np.dtype, shape: tuple[int, ...] = ()
    ) -> None:
        self.graph, self.name, self.dtype = graph, name, dtype
        self.shape = shape  # of constants; runtimes work out the others

    def __array_namespace__(self, api_version: str | None = None) -> SimpleNamespace:
        return namespace

    __array_ufunc__ = None  # an ndarray on the left leaves the arithmetic to us
    __add__ = __radd__ = _arithmetic("Add")
    __sub__, __rsub__ = _arithmetic("Sub"), _arithmetic("Sub", swapped=True)
    __mul__ = __rmul__ = _arithmetic("Mul")
    __truediv__, __rtruediv__ = _arithmetic("Div"), _arithmetic("Div", swapped=True)
    __matmul__ = _arithmetic("MatMul")
    __gt__, __lt__ = _arithmetic("Greater", dtype=bool), _arithmetic("Less", dtype=bool)
    __and__ = _arithmetic("And")

    def __neg__(self) -> Value:
        return self.graph("Neg", self)

    def __getitem__(self, key: Any) -> Value:
        """Entries at indices, or some of the columns."""
        if isinstance(key, Value):
            return self.graph("Gather", self, key)
        rows, columns = key
        assert rows == slice(None)
        ends = columns.start or 0, 2**31 if columns.stop is None else columns.stop
        return self.graph("Slice", self, *(np.array([end]) for end in ends), np.array([1]))

    @property
    def T(self) -> Value:  # noqa: N802 - the standard's name
        """The matrix transposed."""
        return self.graph("Transpose", self, perm=[1, 0])


def _operator(op: str) -> Callable[..., Value]:
    """A function of the standard that is one node."""
    return lambda *values: values[0].graph(op, *values)


def _filled(value: float) -> Callable[[Value], Value]:
    """Arrays filled with one number are that number: operators of ONNX broadcast."""
    return lambda x: x.graph.constant(np.full((), value, dtype=x.dtype))


def _astype(x: Value, dtype: Any, *, copy: bool = True) -> Value:
    return x.graph("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dtype=dtype)


def _max(x: Value, *, axis: int, keepdims: bool) -> Value:
    if x.graph.opset < 18:
        return x.graph("ReduceMax", x, axes=[axis], keepdims=int(keepdims))
    return x.graph("ReduceMax", x, np.array([axis]), keepdims=int(keepdims))


class _Namespace(SimpleNamespace):
    """Functions of the array API; array-api-compat remembers what it has found out about one."""

    __hash__ = object.__hash__  # type: ignore[assignment]


namespace = _Namespace(
    __name__="altnorm.deploy.graph",
    int64=np.int64,
    exp=_operator("Exp"),
    log=_operator("Log"),
    log1p=lambda x: x.graph("Log", x + 1.0),
    abs=_operator("Abs"),
    maximum=_operator("Max"),
    minimum=_operator("Min"),
    where=lambda condition, x, y: x.graph("Where", condition, x, y, dtype=x.dtype),
    zeros_like=_filled(0.0),
    ones_like=_filled(1.0),
    full_like=lambda x, value: _filled(value)(x),
    max=_max,
    sum=lambda x, *, axis, keepdims: x.graph(
        "ReduceSum", x, np.array([axis]), keepdims=int(keepdims)
    ),
    cumulative_sum=lambda x, *, axis: x.graph("CumSum", x, np.array(axis)),
    argmax=lambda x, *, axis, keepdims=False: x.graph(
        "ArgMax", x, axis=axis, keepdims=int(keepdims), dtype=np.int64
    ),
    concat=lambda values, *, axis: values[0].graph("Concat", *values, axis=axis),
    astype=_astype,
    topk=lambda x, k, *, dim: SimpleNamespace(  # as PyTorch's: the standard has none
        values=x.graph("TopK", x, np.array([k]), axis=dim, n_outputs=2)
    ),
)
"""The part of the array API that corrections use."""


# A correction as nodes.


def adjusted(values: Value, correction: Correction) -> tuple[Value, Value]:
    """Return probabilities in the type of `values`, and decisions; computed in double."""
    constants: Correction = convert(correction, values.graph.constant)
    wide = namespace.astype(values, np.float64)
    p = namespace.astype(constants.probabilities(wide, _ENGINE), values.dtype)
    return p, constants.decide(wide, namespace.astype(p, np.float64))


def labelled(decided: Value, classes: Any, correction: Correction) -> Value:
    """The class that each decision stands for, as text or int64; a 0/1 matrix as it is."""
    values = np.asarray(classes)
    if correction.is_multilabel:
        return decided
    if correction.rule.leaves_rows:
        values = np.array([*map(str, values.tolist()), ""], dtype=object)
    elif values.dtype.kind in "UO":
        values = np.array([*map(str, values.tolist())], dtype=object)
    values = values.astype(np.int64) if values.dtype.kind in "iu" else values
    return decided.graph.constant(values)[decided]


def _replace_rows(p: Value, chosen: Value, change: Callable[[Value], Value]) -> Value:
    g = p.graph
    rows = g.indices(g("Squeeze", chosen, np.array([1])))
    return g("ScatterND", p, g("Unsqueeze", rows, np.array([1])), change(g("Gather", p, rows)))


def _log_product(left: Value, log_right: Value, right: Value, supported: Value) -> Value:
    """Entries that underflowed are computed once more from the logs, row by row.

    Where there are none, which is the rule, that costs nothing.
    """
    g = left.graph
    shift = namespace.max(left, axis=1, keepdims=True)
    # Not `right`: runtimes work this out once, when they load the file, which is half as large.
    product = namespace.exp(left - shift) @ namespace.exp(log_right).T
    linear = namespace.log(product) + shift
    lost = (product < _TINY) & supported
    rows = g.indices(namespace.max(namespace.astype(lost, np.float64), axis=1, keepdims=False) > 0)

    def repaired(body: Graph, i: Value) -> Value:
        row = body("Gather", rows, i)
        columns = body.indices(body("Gather", lost, row))
        terms = body("Gather", left, row) + body("Gather", log_right, columns)
        exact = body("Squeeze", logsumexp(terms, axis=1), np.array([1]))
        at = body("Unsqueeze", columns, np.array([1]))
        return body("ScatterND", body("Gather", linear, row), at, exact)

    exact = g.stack_rows(g("Size", rows), supported.shape[0], repaired)
    return g("ScatterND", linear, g("Unsqueeze", rows, np.array([1])), exact)


_ENGINE = tracing(_log_product, _replace_rows)
