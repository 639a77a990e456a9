"""A classifier's ONNX model, made ready for a model at its end."""

from __future__ import annotations

from os import PathLike
from typing import Any

import onnx

from altnorm._base.errors import InputError
from altnorm._base.files import check_input

OLDEST_OPSET = 13
_LABELS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.STRING)


def prepare_classifier(source: Any, taken: list[str]) -> Any:
    """Return a copy whose labels are renamed, if its operator set is new enough.

    Labels that a classifier decides say nothing of the adjustment, so "label" becomes
    "label_before"; so does an output with one of the names that are `taken`.
    """
    model = onnx.ModelProto()
    model.CopyFrom(source if isinstance(source, onnx.ModelProto) else _load(source))
    _check_opset(model)
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


def _check_opset(model: Any) -> None:
    """Raise unless the standard operators are new enough; name them once."""
    standard = [s.version for s in model.opset_import if s.domain in ("", "ai.onnx")]
    opset = max(standard, default=OLDEST_OPSET)
    others = [s for s in model.opset_import if s.domain not in ("", "ai.onnx")]
    del model.opset_import[:]  # skl2onnx names the standard operators twice
    model.opset_import.extend([onnx.helper.make_opsetid("", opset), *others])
    if opset < OLDEST_OPSET:
        raise InputError(
            f"The classifier's operator set must be {OLDEST_OPSET} or later",
            f"it is {opset}",
            "Convert the classifier with a later target opset.",
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
