r"""A fitted normalizer as an ONNX graph on standard operators.

All that does not depend on the row is worked out beforehand (:mod:`altnorm.deploy.plan`) and
stored. The graph computes in double precision whatever its input is, in the log domain, and so
agrees with `transform` in double precision on the same rows.

- One iteration: the reference's log column sums, one number per class.
- More iterations, several classes: the log of the reference after each iteration on its own, and
  two matrix products per iteration. What a linear product loses to underflow is recomputed in the
  log domain, entry by entry, inside the graph.
- More iterations, two classes or several labels: the adjustment is a function of one number, the
  logit. It is tabulated to rounding accuracy, as polynomials on a few pieces that a binary search
  finds. The graph is as small for 20 million pairs as for 20.
- The other families and the calibration of an `Adjuster` are a few operators each; rows whose
  decision a calibration would change are put right inside the graph.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np

try:
    import onnx
    from onnx import helper
except ImportError as error:
    raise ImportError(
        "altnorm.onnx needs the `onnx` extra; install it with pip install 'altnorm[onnx]'"
    ) from error

from altnorm._base.errors import InputError
from altnorm._base.files import replacing
from altnorm._base.validation import check_choice, check_integer
from altnorm.deploy.onnx._append import OLDEST_OPSET, find_output, free_prefix, prepare_classifier
from altnorm.deploy.onnx._graph import Graph, Value
from altnorm.deploy.onnx._nodes import nodes_for
from altnorm.deploy.onnx._sklearn import register_converter
from altnorm.deploy.onnx._stages import transformed
from altnorm.deploy.stages import chosen_normalizer, read_stages
from altnorm.method.kinds import kind_of

__all__ = ["export", "register_converter"]

_LARGEST_FILE = 2**31 - 2**20  # of a protocol buffer


def export(
    normalizer: Any,
    path: str | PathLike[str],
    *,
    dtype: str = "float32",
    output_name: str = "adjusted",
    label_output: str | None = None,
    opset: int = 18,
    append_to: Any = None,
    append_output: str | None = None,
    force: bool = True,
) -> Any:
    """Write a fitted normalizer as an ONNX model.

    The model has one input, "proba" or "logits" as `normalizer.input` says, of shape (N, m) with
    any N, and one output of the same shape and type, which holds what `transform` gives: rows that
    it leaves alone come out bit for bit. Unlike `transform` it neither checks its input nor divides
    rounded rows by their sums. Class names and settings are in the model's ``metadata_props``, as
    JSON.

    Parameters
    ----------
    normalizer : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or a peer
        A fitted normalizer; of a search, what it chose is exported, with the calibration. Of the
        peers, those that fit a temperature or a matrix and Identity can be exported.
    path : str or path-like
        Where to write the model. It appears there complete or not at all.
    dtype : {"float32", "float64"}, default="float32"
        Type of input and output. Inside, the graph computes in float64.
    output_name : str, default="adjusted"
        Name of the output.
    label_output : str, optional
        Name of a second output with the class of each row after the adjustment, out of `classes_`;
        for multi-label problems the 0/1 matrix of decisions. None leaves it out.
    opset : int, default=18
        Version of the operator set, 13 or later.
    append_to : ModelProto, str or path-like, optional
        A classifier to which the normalizer is appended: features in, adjusted probabilities out.
        Its input and type are kept, and its operator set unless that is older than 13. Its outputs
        follow ours. Labels that it decides itself, without the adjustment, are renamed: "label"
        becomes "label_before".
    append_output : str, optional
        The classifier's output that the normalizer takes. None takes its only output of floats
        with one column per class.
    force : bool, default=True
        Whether an existing file may be replaced.

    Returns
    -------
    onnx.ModelProto
        The model that was written.

    Notes
    -----
    At a depth above 1 with several classes the file holds `depth` matrices of the reference's
    shape, 8 bytes per entry, and must stay below 2 GB.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from altnorm import AlternatingNormalizer
    >>> from altnorm.deploy.onnx import export
    >>> rows = np.array([[0.02, 0.98], [0.05, 0.95], [0.95, 0.05]])
    >>> normalizer = AlternatingNormalizer(threshold=0.5).fit(rows)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = export(normalizer, os.path.join(folder, "normalizer.onnx"))
    >>> model.graph.input[0].name, model.graph.output[0].name
    ('proba', 'adjusted')
    """
    check_choice(dtype, "dtype", ("float32", "float64"))
    opset = check_integer(opset, "opset", low=OLDEST_OPSET)
    names = [output_name] if label_output is None else [output_name, label_output]
    if append_to is None:
        model = _empty_model(normalizer, dtype, opset)
        given = model.graph.input[0]
    else:
        model = prepare_classifier(append_to, names)
        given = find_output(model, len(normalizer.classes_), append_output)
    _extend(model, normalizer, given, names)
    _check_size(model)
    onnx.checker.check_model(model, full_check=True)
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return model


def _empty_model(normalizer: Any, dtype: str, opset: int) -> Any:
    """A model with the normalizer's input and nothing else."""
    read_stages(normalizer)  # what cannot be exported is told first
    tensor_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["N", len(normalizer.classes_)]
    given = helper.make_tensor_value_info(normalizer.input, tensor_type, shape)
    opsets = [helper.make_opsetid("", opset)]
    graph = helper.make_graph([], "altnorm", [given], [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _extend(model: Any, normalizer: Any, given: Any, names: list[str]) -> None:
    """Add the normalizer to a model, after its value `given`; our outputs come first."""
    opset = next(s.version for s in model.opset_import if s.domain in ("", "ai.onnx"))
    tensor_type = given.type.tensor_type.elem_type
    g = Graph(opset, free_prefix(model))
    proba = transformed(g, Value(g, given.name), read_stages(normalizer), tensor_type)
    kind, classes = kind_of(normalizer), normalizer.classes_
    values = [proba]
    outputs = [helper.make_tensor_value_info(names[0], tensor_type, ["N", len(classes)])]
    if len(names) > 1:
        nodes = nodes_for(kind)
        values.append(nodes.decided(g, proba, classes, kind))
        outputs.append(nodes.label_info(names[1], classes))
    for value, name in zip(values, names, strict=True):
        g.nodes.append(helper.make_node("Identity", [value.name], [name]))
    outputs += model.graph.output
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    model.graph.node.extend(g.nodes)
    model.graph.initializer.extend(g.initializers)
    needed = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.ir_version = max(model.ir_version, needed)
    model.producer_name, model.producer_version = "altnorm", version("altnorm")
    known = {entry.key: entry.value for entry in model.metadata_props}
    helper.set_model_props(model, {**known, **_metadata(normalizer)})


def _check_size(model: Any) -> None:
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size > _LARGEST_FILE:
        raise InputError(
            "An ONNX file must stay below 2 GB",
            f"this one would hold {size / 1e9:.1f} GB, the reference once per iteration",
            "Use fewer reference rows, or depth=1.",
            value=size,
            code="too_large",
        )


def _metadata(normalizer: Any) -> dict[str, str]:
    chosen = chosen_normalizer(normalizer)
    settings = {"method": type(chosen).__name__, **chosen.get_params(), "input": normalizer.input}
    if getattr(normalizer, "temperatures_", None) is not None:
        settings["temperatures"] = normalizer.temperatures_
    if getattr(normalizer, "calibrator_", None) is not None:
        settings["calibrator"] = type(normalizer.calibrator_).__name__
    settings = {name: _plain(value) for name, value in settings.items()}
    return {
        "altnorm.classes": json.dumps(np.asarray(normalizer.classes_).tolist(), default=str),
        "altnorm.settings": json.dumps(settings, default=str),
        "altnorm.version": version("altnorm"),
    }


def _plain(value: Any) -> Any:
    """Return what JSON can hold: arrays as lists, infinity as text."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
