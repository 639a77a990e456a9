r"""A fitted normalizer as an ONNX graph on standard operators.

All that does not depend on the row is worked out beforehand (:mod:`altnorm._plan`) and stored. The
graph computes in double precision whatever its input is, in the log domain, and so agrees with
`transform` in double precision on the same rows.

- One iteration: the reference's log column sums, one number per class.
- More iterations, several classes: the log of the reference after each iteration on its own, and
  two matrix products an iteration. What a linear product loses to underflow is recomputed in the
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
    import onnx
    from onnx import compose, helper
except ImportError as error:
    raise ImportError(
        "altnorm.onnx needs the `onnx` extra; install it with pip install 'altnorm[onnx]'"
    ) from error

from altnorm._files import check_input, replacing
from altnorm._plan import chosen_normalizer
from altnorm._validation import InputError, check_choice, check_integer
from altnorm.normalizer import AlternatingNormalizer
from altnorm.onnx._formulas import adjust, tilted
from altnorm.onnx._graph import Graph, Value

__all__ = ["export"]

_OLDEST_OPSET = 13
_LARGEST_FILE = 2**31 - 2**20  # of a protocol buffer


def export(
    normalizer: Any,
    path: str | PathLike[str],
    *,
    dtype: str = "float32",
    output_name: str = "adjusted",
    opset: int = 18,
    append_to: Any = None,
    append_output: str | None = None,
    force: bool = True,
) -> Any:
    """Write a fitted normalizer as an ONNX model.

    The model has one input, "proba" or "logits" as `normalizer.input` says, of shape (N, m) with
    any N, and one output of the same shape and type. Rows in doubt are adjusted, the others come
    out bit for bit. Unlike `transform` it does not check its input. Class names and settings are in
    the model's ``metadata_props``, as JSON.

    Parameters
    ----------
    normalizer : AlternatingNormalizer, AlternatingNormalizerCV or Identity
        A fitted normalizer; of a search, what it chose is exported. Peers that fit a temperature
        can be exported, too.
    path : str or path-like
        Where to write the model. It appears there complete or not at all.
    dtype : {"float32", "float64"}, default="float32"
        Type of input and output. Inside, the graph computes in float64.
    output_name : str, default="adjusted"
        Name of the output.
    opset : int, default=18
        Version of the operator set, 13 or later.
    append_to : ModelProto, str or path-like, optional
        A classifier to which the normalizer is appended: features in, adjusted probabilities out.
        Its input, operator set and type are kept; its other outputs, such as labels decided before
        the adjustment, are dropped.
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
    shape, 8 bytes an entry, and must stay below 2 GB.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from altnorm import AlternatingNormalizer
    >>> from altnorm.onnx import export
    >>> rows = np.array([[0.02, 0.98], [0.05, 0.95], [0.95, 0.05]])
    >>> normalizer = AlternatingNormalizer(threshold=0.5).fit(rows)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = export(normalizer, os.path.join(folder, "normalizer.onnx"))
    >>> model.graph.input[0].name, model.graph.output[0].name
    ('proba', 'adjusted')
    """
    check_choice(dtype, "dtype", ("float32", "float64"))
    opset = check_integer(opset, "opset", low=_OLDEST_OPSET)
    tensor_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    if append_to is None:
        model = _build(normalizer, output_name, tensor_type, opset, ir_version=8)
    else:
        if not isinstance(append_to, onnx.ModelProto):
            append_to = _load(append_to)
        model = _append(normalizer, output_name, append_to, append_output)
    _check_size(model)
    onnx.checker.check_model(model, full_check=True)
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return model


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
            f"'{source}' is not, or it is damaged ({' '.join(str(error).split())[:200]})",
            "Name the file that your converter wrote.",
            value=str(source),
            code="onnx_file",
        ) from error
    return model


def _append(normalizer: Any, output_name: str, classifier: Any, wanted: str | None) -> Any:
    """Merge a classifier and the normalizer into one model."""
    output = _proba_output(classifier, len(normalizer.classes_), wanted)
    standard = (s.version for s in classifier.opset_import if s.domain in ("", "ai.onnx"))
    opset = next(standard, 0)
    if opset < _OLDEST_OPSET:
        raise InputError(
            f"The classifier's operator set must be {_OLDEST_OPSET} or later",
            f"it is {opset}",
            "Convert it with onnx.version_converter, or with a later target opset.",
            value=opset,
            code="onnx_opset",
        )
    tensor_type = output.type.tensor_type.elem_type
    ours = _build(normalizer, output_name, tensor_type, opset, classifier.ir_version)
    return compose.merge_models(
        classifier,
        ours,
        io_map=[(output.name, ours.graph.input[0].name)],
        outputs=[output_name],
        producer_name="altnorm",
        producer_version=ours.producer_version,
    )


def _proba_output(classifier: Any, n_classes: int, wanted: str | None) -> Any:
    """Find the classifier's output that the normalizer takes."""
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


def _build(normalizer: Any, output_name: str, tensor_type: int, opset: int, ir_version: int) -> Any:
    """Build the model of the normalizer alone."""
    chosen = chosen_normalizer(normalizer)
    shape = ["N", len(normalizer.classes_)]
    given = helper.make_tensor_value_info(normalizer.input, tensor_type, shape)
    result = helper.make_tensor_value_info(output_name, tensor_type, shape)
    g = Graph(opset)
    values = Value(g, given.name)
    p = g("Cast", values, to=onnx.TensorProto.DOUBLE)
    if normalizer.input == "logits":
        p = g("Softmax", p, axis=1) if chosen.multilabel is None else g("Sigmoid", p)
        values = g("Cast", p, to=tensor_type)
    if isinstance(chosen, AlternatingNormalizer):
        doubt, adjusted = adjust(g, p, chosen)
        values = g("Where", doubt, g("Cast", adjusted, to=tensor_type), values)
    elif hasattr(chosen, "temperature_"):
        values = g("Cast", tilted(g, p, chosen), to=tensor_type)
    g.nodes.append(helper.make_node("Identity", [values.name], [output_name]))
    graph = helper.make_graph(g.nodes, "altnorm", [given], [result], g.initializers)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=ir_version,
        producer_name="altnorm",
        producer_version=version("altnorm"),
    )
    helper.set_model_props(model, _metadata(normalizer, chosen))
    return model


def _metadata(normalizer: Any, chosen: Any) -> dict[str, str]:
    settings = {"method": type(chosen).__name__, **chosen.get_params(), "input": normalizer.input}
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
