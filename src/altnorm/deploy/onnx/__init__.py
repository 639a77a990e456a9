r"""A fitted model as an ONNX graph on standard operators.

All that does not depend on the row is worked out beforehand (:mod:`altnorm.deploy.reading`) and
stored; the rest is the program that PyTorch runs, too (:mod:`altnorm.deploy.program`). The graph
computes in double precision whatever its input is, in the log domain, and so agrees with
`transform` in double precision on the same rows.

- One iteration: the reference's log column sums, one number per class.
- More iterations, several classes: the log of the reference after each iteration on its own, and
  two matrix products per iteration. What a linear product loses to underflow is recomputed in the
  log domain, entry by entry, inside the graph.
- More iterations, two classes or several labels: the adjustment is a function of one number, the
  logit. It is tabulated to rounding accuracy, as polynomials on a few pieces that a binary search
  finds. The graph is as small for 20 million pairs as for 20.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np

try:
    from onnx import helper
except ImportError as error:
    raise ImportError(
        "altnorm.onnx needs the `onnx` extra; install it with pip install 'altnorm[onnx]'"
    ) from error

from altnorm._base.errors import InputError
from altnorm._base.files import replacing
from altnorm._base.validation import check_choice, check_integer
from altnorm.deploy.onnx._classifiers import (
    OLDEST_OPSET,
    check_graph,
    find_output,
    free_prefix,
    prepare_classifier,
    register_converter,
)
from altnorm.deploy.onnx._graph import Graph, Value, adjusted, labelled
from altnorm.deploy.program import Program
from altnorm.deploy.reading import read_program
from altnorm.method.estimator import chosen_model
from altnorm.method.kinds import FittedNormalizer

__all__ = ["export", "register_converter"]

_LARGEST_FILE = 2**31 - 2**20  # of a protocol buffer


def export(
    adjuster: FittedNormalizer,
    path: str | PathLike[str],
    *,
    dtype: str = "float32",
    output_name: str = "adjusted",
    decision_output: str = "decision",
    label_output: str | None = None,
    opset: int = 18,
    append_to: Any = None,
    append_output: str | None = None,
    force: bool = True,
) -> Any:
    """Write a fitted model as an ONNX graph.

    The graph has one input, "proba" or "logits" as `adjuster.input` says, of shape (N, m) with any
    N. Its first output holds what `transform` gives, in the same shape and type; rows that it
    leaves alone come out bit for bit. The second holds the decision for the purpose, as int64: the
    column of each row's class, (N,), and m where the row is left to a person; for several labels
    per row a 0/1 matrix. Unlike `transform` the graph neither checks its input nor divides rounded
    rows by their sums. Class names and settings are in the model's ``metadata_props``, as JSON.

    Parameters
    ----------
    adjuster : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or a peer
        A fitted model. Of the peers Identity, those that fit a temperature, a matrix or a line, and
        LabelThresholds.
    path : str or path-like
        Where to write the graph. It appears there complete or not at all.
    dtype : {"float32", "float64"}, default="float32"
        Type of input and probabilities. Inside, the graph computes in float64.
    output_name : str, default="adjusted"
        Name of the output of probabilities.
    decision_output : str, default="decision"
        Name of the output of decisions.
    label_output : str, optional
        Name of a third output with the decided class out of `classes_`, as int64 or text; where
        rows may be left to a person as text, empty for these. None leaves it out.
    opset : int, default=18
        Version of the operator set, 13 or later.
    append_to : ModelProto, str or path-like, optional
        A classifier to which the model is appended: features in, adjusted probabilities out. Its
        input, type and operator set (13 or later) are kept, and its outputs follow ours. Labels
        that it decides itself, without the adjustment, are renamed: "label" becomes
        "label_before".
    append_output : str, optional
        The classifier's output that the model takes. None takes its only output of floats with one
        column per class.
    force : bool, default=True
        Whether an existing file may be replaced.

    Returns
    -------
    onnx.ModelProto
        The graph that was written.

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
    ...     graph = export(normalizer, os.path.join(folder, "model.onnx")).graph
    >>> graph.input[0].name, [output.name for output in graph.output]
    ('proba', ['adjusted', 'decision'])
    """
    check_choice(dtype, "dtype", ("float32", "float64"))
    opset = check_integer(opset, "opset", low=OLDEST_OPSET)
    program = read_program(adjuster)
    names = [output_name, decision_output, *([] if label_output is None else [label_output])]
    _check_names(names, adjuster.input)
    if append_to is None:
        model = _empty_model(adjuster, dtype, opset)
        given = model.graph.input[0]
    else:
        model = prepare_classifier(append_to, names)
        given = find_output(model, len(adjuster.classes_), append_output)
    _extend(model, program, adjuster.classes_, given, names)
    known = {entry.key: entry.value for entry in model.metadata_props}
    helper.set_model_props(model, {**known, **_metadata(adjuster)})
    _check_size(model)
    check_graph(model, appended=append_to is not None)
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return model


def _check_names(names: list[str], taken: str) -> None:
    """Raise unless outputs have names, all different and not that of the input."""
    if not all(names) or len({*names, taken}) <= len(names):
        raise InputError(
            f"Outputs must have different names, none of them empty or '{taken}'",
            f"they are {', '.join(map(repr, names))}",
            "Pass another `output_name` or `label_output`.",
            value=names,
            code="onnx_output",
        )


def _empty_model(adjuster: FittedNormalizer, dtype: str, opset: int) -> Any:
    """A graph with the model's input and nothing else."""
    tensor_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["N", len(adjuster.classes_)]
    given = helper.make_tensor_value_info(adjuster.input, tensor_type, shape)
    opsets = [helper.make_opsetid("", opset)]
    graph = helper.make_graph([], "altnorm", [given], [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _extend(model: Any, program: Program, classes: Any, given: Any, names: list[str]) -> None:
    """Add a program to a graph, after its value `given`; our outputs come first."""
    opset = next(s.version for s in model.opset_import if s.domain in ("", "ai.onnx"))
    g = Graph(opset, free_prefix(model))
    given_type = helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
    before = Value(g, given.name, given_type)
    values = [*adjusted(before, program)]
    if len(names) > 2:
        values.append(labelled(values[1], classes, program))
    types = [helper.np_dtype_to_tensor_dtype(value.dtype) for value in values]
    g.finish(dict(zip(names, values, strict=True)))
    shapes = [["N", len(classes)] if program.is_multilabel else ["N"]] * len(names)
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
        raise InputError(
            "An ONNX file must stay below 2 GB",
            f"this one would hold {size / 1e9:.1f} GB, the reference once per iteration",
            "Use fewer reference rows, or depth=1.",
            value=size,
            code="too_large",
        )


def _metadata(adjuster: FittedNormalizer) -> dict[str, str]:
    chosen = chosen_model(adjuster)
    settings = {"method": type(chosen).__name__, **chosen.get_params(), "input": adjuster.input}
    if chosen is not adjuster and hasattr(adjuster, "temperature_"):
        settings["temperature"] = adjuster.temperature_
    return {
        "altnorm.classes": json.dumps(adjuster.classes_, default=_plain),
        "altnorm.settings": json.dumps(settings, default=_plain),
        "altnorm.version": version("altnorm"),
    }


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
