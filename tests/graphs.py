"""Exported graphs, run by onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime

OPSETS = (13, 17, 18, 21, 23)


def run(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """Return all outputs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    return session.run(None, {given.name: x})
