"""What differs between one class and several labels per row, in nodes of an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

import altnorm.deploy.onnx._formulas as formulas
from altnorm.adjuster.calibration import Temperatures
from altnorm.deploy.onnx._graph import Graph, Value
from altnorm.deploy.plan import BinaryPlan, RowPlan
from altnorm.method.kinds import LabelKind
from altnorm.method.normalizer import AlternatingNormalizer


class RowNodes:
    """Each row is one distribution over classes."""

    @staticmethod
    def from_logits(g: Graph, logits: Value) -> Value:
        """Softmax."""
        return g("Softmax", logits, axis=1)

    @staticmethod
    def adjust(
        g: Graph, p: Value, normalizer: AlternatingNormalizer, plan: RowPlan | BinaryPlan
    ) -> tuple[Value, Value]:
        """Say which rows are in doubt, and return all of them adjusted."""
        k_max = min(normalizer.k_max, len(normalizer.classes_))
        doubt = formulas.ambiguity(g, p, k_max) > float(normalizer.threshold)
        if isinstance(plan, RowPlan):
            if plan.anchors:
                return doubt, formulas.adjusted_where(g, p, doubt, plan)
            return doubt, formulas.adjusted_rows(g, p, plan)
        sides = np.array([1.0, -1.0])  # two classes are one logit and its negative
        logits = formulas.adjusted_logits(g, g.log(p) @ sides[:, None], plan)
        return doubt, g("Sigmoid", logits * sides)

    @staticmethod
    def cooled(g: Graph, p: Value, touched: Value, temperatures: Temperatures) -> Value:
        """Divide the logarithms of a row by its temperature."""
        row = g.reduce_max(g("Cast", touched, to=TensorProto.DOUBLE)) > 0.0
        temperature = g("Where", row, temperatures.touched, temperatures.others)
        return g("Softmax", g.log(p) / temperature, axis=1)

    @staticmethod
    def with_decisions(
        g: Graph, final: Value, adjusted: Value, n_classes: int, tensor_type: int
    ) -> Value:
        """As `altnorm.adjuster.calibration.keep_decisions`, only for the rows that need it."""
        decided = g.arg_max(adjusted)
        hair = 4 * float(np.finfo(helper.tensor_dtype_to_np_dtype(tensor_type)).eps)
        lost = g.differs(g.arg_max(final), decided)
        rows = g.indices(g("Squeeze", lost, np.array([1])))
        p = g("Cast", g("Gather", final, rows), to=TensorProto.DOUBLE)
        kept = _leading(g, p, g("Gather", decided, rows), n_classes, hair)
        at = g("Unsqueeze", rows, np.array([1]))
        return g("ScatterND", final, at, g("Cast", kept, to=tensor_type))

    @staticmethod
    def decided(g: Graph, proba: Value, classes: np.ndarray, kind: LabelKind) -> Value:
        """Class of each row."""
        index = g("Squeeze", g.arg_max(proba), np.array([1]))
        return g("Gather", label_values(classes), index)

    @staticmethod
    def label_info(name: str, classes: Any) -> Any:
        """Type and shape of what `decided` returns."""
        dtype = helper.np_dtype_to_tensor_dtype(label_values(classes).dtype)
        return helper.make_tensor_value_info(name, dtype, ["N"])


class EntryNodes:
    """Each entry is a yes/no probability of its own."""

    @staticmethod
    def from_logits(g: Graph, logits: Value) -> Value:
        """Logistic function."""
        return g("Sigmoid", logits)

    @staticmethod
    def adjust(
        g: Graph, p: Value, normalizer: AlternatingNormalizer, plan: RowPlan | BinaryPlan
    ) -> tuple[Value, Value]:
        """Say which entries are in doubt, and return all of them adjusted."""
        assert isinstance(plan, BinaryPlan)
        doubt = formulas.binary_ambiguity(g, p) > float(normalizer.threshold)
        logits = formulas.adjusted_logits(g, g.log(p) - g.log(1.0 - p), plan)
        return g("And", doubt, plan.active), g("Sigmoid", logits)

    @staticmethod
    def cooled(g: Graph, p: Value, touched: Value, temperatures: Temperatures) -> Value:
        """Divide log-odds by the temperature of their entry."""
        temperature = g("Where", touched, temperatures.touched, temperatures.others)
        return g("Sigmoid", (g.log(p) - g.log(1.0 - p)) / temperature)

    @staticmethod
    def with_decisions(
        g: Graph, final: Value, adjusted: Value, n_classes: int, tensor_type: int
    ) -> Value:
        """Return `final`: a temperature leaves every entry on its side of one half."""
        return final

    @staticmethod
    def decided(g: Graph, proba: Value, classes: np.ndarray, kind: LabelKind) -> Value:
        """The 0/1 matrix of labels."""
        chosen = g("Cast", proba, to=TensorProto.DOUBLE) > 0.5
        return g("Cast", chosen, to=TensorProto.INT64)

    @staticmethod
    def label_info(name: str, classes: Any) -> Any:
        """Type and shape of what `decided` returns."""
        return helper.make_tensor_value_info(name, TensorProto.INT64, ["N", len(classes)])


def nodes_for(kind: LabelKind) -> type[RowNodes] | type[EntryNodes]:
    """Return the nodes for a kind of labels."""
    return EntryNodes if kind.is_multilabel else RowNodes


def label_values(classes: Any) -> np.ndarray:
    """Class labels as an array that ONNX knows: text, int64, or as they are."""
    values = np.asarray(classes)
    if values.dtype.kind in "UO":
        return np.array([str(value) for value in values.tolist()], dtype=object)
    return values.astype(np.int64) if values.dtype.kind in "iu" else values


def _leading(g: Graph, p: Value, decided: Value, n_classes: int, hair: float) -> Value:
    """Rows in which the decided class leads: the others are cut at the level where they meet."""
    own = g("Equal", decided, np.arange(n_classes))
    others = g("Where", own, -1.0, p)
    kept = g("GatherElements", p, decided, axis=1)
    sums = g("CumSum", g.top_k(others, n_classes - 1), np.array(1))
    level = g.reduce_max((sums + kept) / np.arange(2.0, n_classes + 1))
    # Not ``level * (1 - hair)``: onnxruntime leaves out products with a number this close to 1.
    lowered = g("Min", others, level - level * hair)
    return g("Where", own, kept + g.sum(others - lowered), lowered)
