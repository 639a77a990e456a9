"""A fitted model as an ONNX graph on standard operators.

The graph is the correction that estimators run (:mod:`altnorm.estimator.correction`), unrolled,
in double precision. It may be appended to that of a classifier, and skl2onnx taught to do so.
"""

from __future__ import annotations

import json
from copy import deepcopy
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from altnorm._base.errors import InputError, needing_extra

with needing_extra("onnx"):
    import onnx
    from onnx import TensorProto, helper
    from onnx.compose import add_prefix_graph

from altnorm._base.files import check_input, replacing
from altnorm._base.validation import check_choice, check_integer
from altnorm.adjuster.classifier import AdjustedClassifier
from altnorm.adjuster.mixture import PARTS
from altnorm.deploy.graph import Graph, Value, adjusted, labelled
from altnorm.estimator.base import chosen_model, correction_of
from altnorm.estimator.correction import Correction
from altnorm.estimator.kinds import FittedModel
from altnorm.io.labels import listed

__all__ = ["export", "register_converter"]

_OUTPUTS = ("adjusted", "decision")
_LARGEST_FILE = 2**31 - 2**20  # of a protocol buffer
_OLDEST_OPSET = 13
_LABELS = (TensorProto.INT64, TensorProto.INT32, TensorProto.STRING)
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


def export(
    adjuster: FittedModel,
    path: str | PathLike[str],
    *,
    dtype: str = "float32",
    label_output: str | None = None,
    opset: int = 18,
    append_to: Any = None,
    append_output: str | None = None,
    force: bool = True,
) -> onnx.ModelProto:
    """Write a fitted model as an ONNX graph.

    The graph has one input, "proba" or "logits" as `adjuster.input` says, of shape (N, m) with any
    N. Its output "adjusted" holds what `transform` gives, in the same shape and type; rows that it
    leaves alone come out bit for bit. The output "decision" is that for the purpose, as int64: the
    column of each row's class, (N,), and m where the row is left to a person; for several labels
    per row a 0/1 matrix. Unlike `transform` the graph neither checks its input nor divides rounded
    rows by their sums. Class names and settings are in the model's ``metadata_props``, as JSON.

    Parameters
    ----------
    adjuster : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or a peer
        A fitted model, unless what it does to a row depends on other rows.
    path : str or path-like
        Where to write the graph. It appears there complete or not at all.
    dtype : {"float32", "float64"}, default="float32"
        Type of input and probabilities. Inside, the graph computes in float64.
    label_output : str, optional
        Name of a third output with the decided class out of `classes_`, as int64 or text; where
        rows may be left to a person as text, empty for these. None leaves it out.
    opset : int, default=18
        Version of the operator set, 13 or later.
    append_to : ModelProto, str or path-like, optional
        A classifier to which the model is appended: features in, adjusted probabilities out. Its
        input, type and operator set (13 or later) are kept, and its outputs follow ours, its
        own decisions renamed: "label" becomes "label_before".
    append_output : str, optional
        The classifier's output that the model takes. None takes its only output of floats with one
        column per class.
    force : bool, default=True
        Whether an existing file may be replaced.

    Returns
    -------
    onnx.ModelProto
        The graph that was written, below 2 GB: at a depth above 1 with several classes it holds
        `depth` matrices of the reference's shape, 8 bytes per entry.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from altnorm import AlternatingNormalizer
    >>> from altnorm.deploy.onnx import export
    >>> rows = np.array([[0.02, 0.98], [0.05, 0.95], [0.95, 0.05]])
    >>> normalizer = AlternatingNormalizer(threshold=0.5).fit(rows)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     graph = export(normalizer, os.path.join(folder, "model.onnx")).graph
    >>> graph.input[0].name, [output.name for output in graph.output]
    ('proba', ['adjusted', 'decision'])
    """
    check_choice(dtype, "dtype", ("float32", "float64"))
    opset = check_integer(opset, "opset", low=_OLDEST_OPSET)
    correction = correction_of(adjuster).unrolled()
    names = [*_OUTPUTS, *([] if label_output is None else [label_output])]
    if append_to is None:
        model = _empty_model(adjuster, dtype, opset)
        proba = model.graph.input[0]
    else:
        model = _prepare_classifier(append_to, names)
        proba = _find_output(model, len(adjuster.classes_), append_output)
    _check_names(names, model.graph)
    _extend(model, correction, adjuster.classes_, proba, names)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    helper.set_model_props(model, {**metadata, **_metadata(adjuster)})
    _check_size(model)
    onnx.checker.check_model(model, full_check=True)
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return model


def _check_names(names: list[str], graph: Any) -> None:
    """Raise unless our outputs have names, all different and not those of a graph."""
    used = {value.name for value in (*graph.input, *graph.output)}
    if not all(names) or len({*names, *used}) < len(names) + len(used):
        # Of many names the message shows the first: those that both have.
        taken = listed(sorted(used, key=lambda name: (name not in names, name)))
        rule = f"Outputs must have different names, none of them empty or {taken}"
        remedy = "Pass another `label_output`, or rename what the classifier uses."
        raise InputError(rule, f"they are {listed(names)}", remedy, value=names, code="onnx_output")


def _empty_model(adjuster: FittedModel, dtype: str, opset: int) -> Any:
    """A graph with the model's input and nothing else."""
    tensor_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["N", len(adjuster.classes_)]
    proba = helper.make_tensor_value_info(adjuster.input, tensor_type, shape)
    opsets = [helper.make_opsetid("", opset)]
    graph = helper.make_graph([], "altnorm", [proba], [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _extend(model: Any, correction: Correction, classes: Any, proba: Any, names: list[str]) -> None:
    """Add a correction to a graph, after its value `proba`; our outputs come first."""
    opset = next(s.version for s in model.opset_import if s.domain in ("", "ai.onnx"))
    g = Graph(opset)
    input_dtype = helper.tensor_dtype_to_np_dtype(proba.type.tensor_type.elem_type)
    before = Value(g, proba.name, input_dtype)
    values = [*adjusted(before, correction)]
    if len(names) > 2:
        values.append(labelled(values[1], classes, correction))
    types = [helper.np_dtype_to_tensor_dtype(value.dtype) for value in values]
    g.finish(dict(zip(names, values, strict=True)))
    shapes = [["N", len(classes)] if correction.is_multilabel else ["N"]] * len(names)
    shapes[0] = ["N", len(classes)]
    ours = map(helper.make_tensor_value_info, names, types, shapes)
    outputs = [*ours, *model.graph.output]
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    model.graph.node.extend(g.nodes)
    model.graph.initializer.extend(g.initializers)
    needed = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.ir_version = max(model.ir_version, needed)
    model.producer_name, model.producer_version = "altnorm", version("altnorm")


def _check_size(model: Any) -> None:
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size > _LARGEST_FILE:
        rule, remedy = "An ONNX file must stay below 2 GB", "Use fewer reference rows, or depth=1."
        offender = f"this one would hold {size / 1e9:.1f} GB, the reference once per iteration"
        raise InputError(rule, offender, remedy, value=size, code="too_large")


def _metadata(adjuster: FittedModel) -> dict[str, str]:
    chosen = chosen_model(adjuster)
    settings = {"method": type(chosen).__name__, **chosen.get_params(), "input": adjuster.input}
    if hasattr(adjuster, "mixture_"):
        settings["weights"] = dict(zip(PARTS, adjuster.mixture_.weights.tolist(), strict=True))
    return {
        "altnorm.classes": json.dumps(adjuster.classes_, default=_plain),
        "altnorm.settings": json.dumps(settings, default=_plain),
        "altnorm.version": version("altnorm"),
    }


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


# Classifiers that a model is appended to.


def _prepare_classifier(source: Any, taken: list[str]) -> Any:
    """Return a copy that uses none of our names, if its operator set is new enough.

    Labels that a classifier decides say nothing of the adjustment, so "label" becomes
    "label_before"; so does an output with one of the names that are `taken`. What is neither input
    nor output, perhaps of a model that was appended before, goes below "classifier/".
    """
    model = _load(source)
    remedy = "Convert the classifier with a later target opset."
    _check_opset(_read_opset(model), "The classifier's operator set", remedy)
    graph, prefix = model.graph, "classifier/"
    # Here rather than by `rename_initializers`, which forgets those that subgraphs use.
    names = {tensor.name: prefix + tensor.name for tensor in graph.initializer}
    outputs = {output.name for output in graph.output}
    for output in graph.output:
        if output.name in taken or _is_label(output):
            before = f"{output.name}_before"
            while before in outputs:
                before += "_before"
            names[output.name] = before
    add_prefix_graph(
        graph,
        prefix,
        rename_inputs=False,
        rename_outputs=False,
        rename_initializers=False,
        rename_value_infos=False,
        inplace=True,
        name_map=names,
    )
    return model


def _is_label(output: Any) -> bool:
    tensor = output.type.tensor_type
    has_label = tensor.elem_type in _LABELS and len(tensor.shape.dim) <= 1
    return has_label and not output.name.endswith("_before")


def _find_output(classifier: Any, n_classes: int, wanted: str | None) -> Any:
    """Find the classifier's output that the model takes."""

    def fits(output: Any) -> bool:
        tensor = output.type.tensor_type
        shape = tensor.shape.dim
        has_columns = len(shape) == 2 and shape[1].dim_value in (0, n_classes)
        return tensor.elem_type in _FLOATS and has_columns and wanted in (None, output.name)

    chosen = list(filter(fits, classifier.graph.output))
    if len(chosen) == 1:
        return chosen[0]
    rule = f"The classifier must have one output of floats with {n_classes} columns"
    rule += "" if wanted is None else f" named {wanted!r}"
    names = [output.name for output in classifier.graph.output]
    offender = f"its outputs are {names}, of which {len(chosen)} fit"
    remedy = "Pass `append_output`; for scikit-learn, convert with zipmap=False."
    raise InputError(rule, offender, remedy, value=len(chosen), code="onnx_output")


def _load(source: Any) -> Any:
    """Return a copy of a classifier, or read it; what is something else is bad input."""
    is_model = isinstance(source, onnx.ModelProto)
    name = "this one" if is_model else f"'{source}'"
    try:
        model = deepcopy(source) if is_model else onnx.load(check_input(source))
        onnx.checker.check_model(model, full_check=True)
    except (InputError, OSError):
        raise
    except Exception as error:  # the parser's and the checker's own, of several kinds
        rule, reason = "`append_to` must be an ONNX model", " ".join(str(error).split())[:200]
        offender = f"{name} is not, or it is damaged ({reason})"
        remedy = "Convert the classifier anew, or name the file that your converter wrote."
        raise InputError(rule, offender, remedy, value=name, code="onnx_file") from error
    return model


def _read_opset(model: Any) -> int:
    """Version of the standard operators, which skl2onnx names twice; now they are named once."""
    standard = [s.version for s in model.opset_import if s.domain in ("", "ai.onnx")]
    other_domains = [s for s in model.opset_import if s.domain not in ("", "ai.onnx")]
    opset = max(standard, default=_OLDEST_OPSET)
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("", opset), *other_domains])
    return opset


def _check_opset(opset: int, name: str, remedy: str) -> None:
    """Raise unless a set of standard operators is new enough."""
    if opset < _OLDEST_OPSET:
        rule, offender = f"{name} must be {_OLDEST_OPSET} or later", f"it is {opset}"
        raise InputError(rule, offender, remedy, value=opset, code="onnx_opset")


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
        options={
            "zipmap": [True, False, "columns"],
            "nocl": [True, False],
            "output_class_labels": [True, False],
        },
    )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the inner classifier and then the adjustment to a graph of skl2onnx."""
    from skl2onnx.common.data_types import guess_proto_type

    model, (label, proba) = operator.raw_operator, operator.outputs
    opset = container.target_opset_any_domain("")
    _check_opset(opset, "`target_opset`", "Leave it out.")
    # Two of these in one pipeline must not share the names of their values.
    g = Graph(opset, scope.get_unique_variable_name("altnorm") + "/")
    dtype = helper.tensor_dtype_to_np_dtype(guess_proto_type(proba.type))
    before = Value(g, _inner_proba(scope, operator), dtype)
    correction = correction_of(model.adjuster_).unrolled()
    after, decided = adjusted(before, correction)
    # With `nocl` (no class labels) skl2onnx promises indices in the place of names.
    if not scope.get_options(model, {"nocl": False})["nocl"]:
        decided = labelled(decided, model.classes_, correction)
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
