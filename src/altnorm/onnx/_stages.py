"""Both stages of a normalizer in ONNX operators: the decision, then the probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from altnorm._kinds import LabelKind
from altnorm._stages import LinearScores, Stages
from altnorm.onnx._formulas import adjust
from altnorm.onnx._graph import Graph, Value
from altnorm.tuning.calibration import Temperatures

__all__ = ["decided_labels", "label_values", "transformed"]


def transformed(g: Graph, values: Value, stages: Stages, tensor_type: int) -> Value:
    """What `transform` returns, in the type of `values`; computed in double."""
    given = g("Cast", values, to=TensorProto.DOUBLE)
    p = given
    if stages.input == "logits":
        p = g("Softmax", given, axis=1) if stages.multilabel is None else g("Sigmoid", given)
        values = g("Cast", p, to=tensor_type)
    adjusted = p
    if isinstance(stages.decider, LinearScores):
        adjusted = scored(g, given if stages.direct else p, stages.decider, stages)
        values = g("Cast", adjusted, to=tensor_type)
    elif stages.decider is not None:
        doubt, new = adjust(g, p, stages.decider)
        adjusted = g("Where", doubt, new, p)
        values = g("Where", doubt, g("Cast", new, to=tensor_type), values)
    if not stages.calibrates:
        return values
    final = g("Cast", calibrated(g, p, adjusted, stages), to=tensor_type)
    if stages.multilabel is not None:
        return final
    return with_decisions(g, final, g.arg_max(adjusted), stages.n_classes, tensor_type)


def scored(g: Graph, values: Value, scores: LinearScores, stages: Stages) -> Value:
    """Softmax of scores, of probabilities or directly of logits."""
    logits = values if stages.direct and stages.input == "logits" else g.log(values)
    log_p = g("LogSoftmax", logits, axis=1)
    if scores.floor > -math.inf:
        log_p = g("Max", log_p, scores.floor)
    sums = log_p @ scores.weight.T if scores.weight.ndim else log_p * scores.weight
    return g("Softmax", sums + scores.bias, axis=1)


def calibrated(g: Graph, p: Value, adjusted: Value, stages: Stages) -> Value:
    """Probabilities of the second stage, whose decisions may still differ."""
    if stages.temperatures is not None:
        return cooled(g, adjusted, g.differs(adjusted, p), stages.temperatures, stages.multilabel)
    assert stages.calibrator is not None
    return scored(g, p, stages.calibrator, stages._replace(direct=False))


def cooled(
    g: Graph, p: Value, touched: Value, temperatures: Temperatures, multilabel: str | None
) -> Value:
    """Divide logs of a row by its temperature, or log-odds by those of their entry."""
    if multilabel is not None:
        temperature = g("Where", touched, temperatures.touched, temperatures.others)
        return g("Sigmoid", (g.log(p) - g.log(1.0 - p)) / temperature)
    row = g.reduce_max(g("Cast", touched, to=TensorProto.DOUBLE)) > 0.0
    temperature = g("Where", row, temperatures.touched, temperatures.others)
    return g("Softmax", g.log(p) / temperature, axis=1)


def with_decisions(
    g: Graph, final: Value, decided: Value, n_classes: int, tensor_type: int
) -> Value:
    """As :func:`altnorm.tuning.calibration.keep_decisions`, only for the rows that need it."""
    hair = 4 * float(np.finfo(helper.tensor_dtype_to_np_dtype(tensor_type)).eps)
    lost = g.differs(g.arg_max(final), decided)
    rows = g.indices(g("Squeeze", lost, np.array([1])))
    p = g("Cast", g("Gather", final, rows), to=TensorProto.DOUBLE)
    kept = leading(g, p, g("Gather", decided, rows), n_classes, hair)
    at = g("Unsqueeze", rows, np.array([1]))
    return g("ScatterND", final, at, g("Cast", kept, to=tensor_type))


def leading(g: Graph, p: Value, decided: Value, n_classes: int, hair: float) -> Value:
    """Rows in which the decided class leads: the others are cut at the level where they meet."""
    own = g("Equal", decided, np.arange(n_classes))
    others = g("Where", own, -1.0, p)
    kept = g("GatherElements", p, decided, axis=1)
    sums = g("CumSum", g.top_k(others, n_classes - 1), np.array(1))
    level = g.reduce_max((sums + kept) / np.arange(2.0, n_classes + 1))
    # Not ``level * (1 - hair)``: onnxruntime leaves out products with a number this close to 1.
    lowered = g("Min", others, level - level * hair)
    return g("Where", own, kept + g.sum(others - lowered), lowered)


def decided_labels(g: Graph, proba: Value, classes: np.ndarray, kind: LabelKind) -> Value:
    """Class of each row, or the 0/1 matrix of its labels."""
    if not kind.is_multilabel:
        index = g("Squeeze", g.arg_max(proba), np.array([1]))
        return g("Gather", label_values(classes), index)
    chosen = g("Cast", proba, to=TensorProto.DOUBLE) > 0.5
    if kind.decision == "argmax_or_threshold":
        chosen = g("Or", chosen, g("Equal", g.arg_max(proba), np.arange(len(classes))))
    return g("Cast", chosen, to=TensorProto.INT64)


def label_values(classes: Any) -> np.ndarray:
    """Class labels as an array that ONNX knows: text, int64, or as they are."""
    values = np.asarray(classes)
    if values.dtype.kind in "UO":
        return np.array([str(value) for value in values.tolist()], dtype=object)
    return values.astype(np.int64) if values.dtype.kind in "iu" else values
