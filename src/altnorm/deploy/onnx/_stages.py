"""Both stages of a normalizer in ONNX operators: the decision, then the probabilities."""

from __future__ import annotations

import math

from onnx import TensorProto

from altnorm.deploy.onnx._graph import Graph, Value
from altnorm.deploy.onnx._nodes import nodes_for
from altnorm.deploy.plan import plan_of
from altnorm.deploy.stages import LinearScores, Stages


def transformed(g: Graph, values: Value, stages: Stages, tensor_type: int) -> Value:
    """What `transform` returns, in the type of `values`; computed in double."""
    nodes = nodes_for(stages.kind)
    given = g("Cast", values, to=TensorProto.DOUBLE)
    p = given
    if stages.input == "logits":
        p = nodes.from_logits(g, given)
        values = g("Cast", p, to=tensor_type)
    adjusted = p
    if isinstance(stages.decider, LinearScores):
        adjusted = scored(g, given if stages.direct else p, stages.decider, stages)
        values = g("Cast", adjusted, to=tensor_type)
    elif stages.decider is not None:
        doubt, new = nodes.adjust(g, p, stages.decider, plan_of(stages.decider))
        adjusted = g("Where", doubt, new, p)
        values = g("Where", doubt, g("Cast", new, to=tensor_type), values)
    if not stages.calibrates:
        return values
    final = g("Cast", calibrated(g, p, adjusted, stages), to=tensor_type)
    return nodes.with_decisions(g, final, adjusted, stages.n_classes, tensor_type)


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
        touched = g.differs(adjusted, p)
        return nodes_for(stages.kind).cooled(g, adjusted, touched, stages.temperatures)
    assert stages.calibrator is not None
    return scored(g, p, stages.calibrator, stages._replace(direct=False))
