"""Classifiers with an adjustment at their end: ONNX models made ready for it, and skl2onnx."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import onnx
from sklearn.frozen import FrozenEstimator

from altnorm._base.errors import InputError
from altnorm._base.files import check_input
from altnorm.adjuster.classifier import AdjustedClassifier
from altnorm.deploy.onnx._graph import Graph, Value, adjusted, labelled
from altnorm.deploy.reading import read_program

OLDEST_OPSET = 13
_LABELS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.STRING)
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [True, False],
}


def prepare_classifier(source: Any, taken: list[str]) -> Any:
    """Return a copy whose labels are renamed, if its operator set is new enough.

    Labels that a classifier decides say nothing of the adjustment, so "label" becomes
    "label_before"; so does an output with one of the names that are `taken`.
    """
    model = onnx.ModelProto()
    model.CopyFrom(source if isinstance(source, onnx.ModelProto) else _load(source))
    remedy = "Convert the classifier with a later target opset."
    check_opset(_read_opset(model), "The classifier's operator set", remedy)
    for output in list(model.graph.output):
        tensor = output.type.tensor_type
        is_label = tensor.elem_type in _LABELS and len(tensor.shape.dim) <= 1
        is_label &= not output.name.endswith("_before")
        if is_label or output.name in taken:
            _rename(model.graph, output.name, f"{output.name}_before")
    used = sorted(_names(model.graph).intersection(taken))
    if used:
        raise InputError(
            "Outputs must have names that the classifier does not use",
            f"it uses {used[0]!r}",
            "Pass another `output_name` or `label_output`.",
            value=used[0],
            code="onnx_output",
        )
    return model


def free_prefix(model: Any) -> str:
    """A prefix of names that the model does not use; it may have been appended to before."""
    used, prefix, number = _names(model.graph), "altnorm/", 1
    while any(name.startswith(prefix) for name in used):
        number += 1
        prefix = f"altnorm{number}/"
    return prefix


def find_output(classifier: Any, n_classes: int, wanted: str | None) -> Any:
    """Find the classifier's output that the model takes."""
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
    found = []
    for output in classifier.graph.output:
        shape = output.type.tensor_type.shape.dim
        fits = len(shape) == 2 and shape[1].dim_value in (0, n_classes)
        if output.type.tensor_type.elem_type in floats and fits:
            found.append(output)
    chosen = [output for output in found if wanted in (None, output.name)]
    if len(chosen) == 1:
        return chosen[0]
    raise InputError(
        f"The classifier must have one output of floats with {n_classes} "
        f"columns{'' if wanted is None else f' named {wanted!r}'}",
        f"its outputs are {[output.name for output in classifier.graph.output]}, of which "
        f"{len(chosen)} fit",
        "Pass `append_output`; for scikit-learn, convert with zipmap=False.",
        value=len(chosen),
        code="onnx_output",
    )


def check_graph(model: Any, *, appended: bool) -> None:
    """Raise unless the whole is a sound graph; what is wrong with a classifier is bad input."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # the checker's own, of several kinds
        if not appended:
            raise
        raise InputError(
            "`append_to` must be a sound ONNX graph",
            f"this one is not ({_first_line(error)})",
            "Convert the classifier anew.",
            code="onnx_file",
        ) from error


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _load(path: str | PathLike[str]) -> Any:
    """Read a classifier; a file that holds something else is bad input."""
    source = check_input(path)
    try:
        model = onnx.load(source)
        onnx.checker.check_model(model)
    except OSError:
        raise
    except Exception as error:  # the parser's own, which protocol buffers do not document
        raise InputError(
            "`append_to` must be an ONNX model",
            f"'{source}' is not, or it is damaged ({_first_line(error)})",
            "Name the file that your converter wrote.",
            value=str(source),
            code="onnx_file",
        ) from error
    return model


def _read_opset(model: Any) -> int:
    """Version of the standard operators, which skl2onnx names twice; now they are named once."""
    standard = [s.version for s in model.opset_import if s.domain in ("", "ai.onnx")]
    others = [s for s in model.opset_import if s.domain not in ("", "ai.onnx")]
    opset = max(standard, default=OLDEST_OPSET)
    del model.opset_import[:]
    model.opset_import.extend([onnx.helper.make_opsetid("", opset), *others])
    return opset


def check_opset(opset: int, what: str, remedy: str) -> None:
    """Raise unless a set of standard operators is new enough."""
    if opset < OLDEST_OPSET:
        raise InputError(
            f"{what} must be {OLDEST_OPSET} or later",
            f"it is {opset}",
            remedy,
            value=opset,
            code="onnx_opset",
        )


def _names(graph: Any) -> set[str]:
    """Names of all values in a graph and in its subgraphs."""
    found = {value.name for value in (*graph.input, *graph.initializer)}
    for node in graph.node:
        found.update(node.input, node.output)
        for attribute in node.attribute:
            found |= _names(attribute.g).union(*(_names(inner) for inner in attribute.graphs))
    return found


def _rename(graph: Any, old: str, new: str) -> None:
    """Rename a value wherever it is used."""
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        if value.name == old:
            value.name = new
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename(inner, old, new)


# How skl2onnx converts a classifier that adjusts its own predictions.


def register_converter() -> None:
    """Teach skl2onnx to convert :class:`altnorm.AdjustedClassifier`.

    From then on ``skl2onnx.to_onnx`` takes such a classifier, also inside a pipeline, if it can
    convert the classifier within. The graph's `label` and `probabilities` are those after the
    adjustment. Needs skl2onnx.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from altnorm import AdjustedClassifier
    >>> from altnorm.deploy.onnx import register_converter
    >>> X, y = make_classification(500, 10, n_informative=4, n_classes=3, random_state=0)
    >>> model = AdjustedClassifier(GaussianNB()).fit(X, y)
    >>> register_converter()
    >>> from skl2onnx import to_onnx
    >>> graph = to_onnx(model, X[:1], options={"zipmap": False}).graph
    >>> [output.name for output in graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    except ImportError as error:
        raise ImportError(
            "register_converter needs skl2onnx; install it with pip install skl2onnx"
        ) from error
    update_registered_converter(
        AdjustedClassifier,
        "AltnormAdjustedClassifier",
        calculate_linear_classifier_output_shapes,
        _convert,
        options=_OPTIONS,
    )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the inner classifier and then the adjustment to a graph of skl2onnx."""
    model, (label, proba) = operator.raw_operator, operator.outputs
    opset = container.target_opset_any_domain("")
    check_opset(opset, "`target_opset`", "Leave it out.")
    # Two of these in one pipeline must not share the names of their values.
    g = Graph(opset, scope.get_unique_variable_name("altnorm") + "/")
    before = Value(g, _inner_proba(scope, operator), _dtype(proba))
    program = read_program(model.adjuster_)
    after, decided = adjusted(before, program)
    # With `nocl` (no class labels) skl2onnx promises indices in the place of names.
    if not scope.get_options(model, {"nocl": False})["nocl"]:
        decided = labelled(decided, model.classes_, program)
    g.finish({label.full_name: decided, proba.full_name: after})
    container.initializers.extend(g.initializers)
    # skl2onnx takes nodes in parts, each with the version of its operator.
    for node in g.nodes:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        attributes |= {"op_version": opset, "name": scope.get_unique_operator_name("altnorm")}
        container.add_node(node.op_type, list(node.input), list(node.output), **attributes)


def _inner_proba(scope: Any, operator: Any) -> str:
    """Declare the inner classifier; return the name of its probabilities."""
    from skl2onnx import get_model_alias
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    estimator = operator.raw_operator.estimator_
    # skl2onnx knows no frozen estimators, and the one inside predicts the same.
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    inner = scope.declare_local_operator(get_model_alias(type(estimator)), estimator)
    inner.inputs = operator.inputs
    is_text = np.asarray(estimator.classes_).dtype.kind in "UO"
    label_type = StringTensorType() if is_text else Int64TensorType()
    inner.outputs.append(scope.declare_local_variable("label_before", label_type))
    proba_type = type(operator.outputs[1].type)([None, len(estimator.classes_)])
    proba = scope.declare_local_variable("proba_before", proba_type)
    inner.outputs.append(proba)
    return str(proba.onnx_name)


def _dtype(variable: Any) -> np.dtype:
    from skl2onnx.common.data_types import DoubleTensorType

    return np.dtype(np.float64 if isinstance(variable.type, DoubleTensorType) else np.float32)
