"""How skl2onnx converts a classifier that adjusts its own predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper
from sklearn.frozen import FrozenEstimator

from altnorm._base.errors import InputError
from altnorm.adjuster.classifier import AdjustedClassifier
from altnorm.deploy.onnx._append import OLDEST_OPSET
from altnorm.deploy.onnx._graph import Graph, Value
from altnorm.deploy.onnx._program import adjusted, label_values
from altnorm.deploy.reading import read_program

_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [True, False],
}


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
    if opset < OLDEST_OPSET:
        raise InputError(
            f"`target_opset` must be {OLDEST_OPSET} or later",
            f"it is {opset}",
            "Leave it out.",
            value=opset,
            code="onnx_opset",
        )
    # Two of these in one pipeline must not share the names of their values.
    g = Graph(opset, scope.get_unique_variable_name("altnorm") + "/")
    before = Value(g, _inner_proba(scope, operator), _dtype(proba))
    program = read_program(model.adjuster_)
    after, decided = adjusted(before, program)
    # With `nocl` (no class labels) skl2onnx promises indices in the place of names.
    names = label_values(model.classes_, program)
    if names is not None and not scope.get_options(model, {"nocl": False})["nocl"]:
        decided = g.constant(names)[decided]
    g.finish({label.full_name: decided, proba.full_name: after})
    container.initializers.extend(g.initializers)
    # skl2onnx takes nodes in parts, each with the version of its operator.
    for node in g.nodes:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
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
