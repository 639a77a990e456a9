"""Predictions to export normalizers for, and exported graphs run by onnxruntime."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnxruntime
from scipy.special import expit

OPSETS = (13, 17, 18, 21, 23)


def run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    return run_all(model, x)[0]


def run_all(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    return session.run(None, {given.name: x})


def noisy_logits(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(m, size=n)
    return rng.normal(size=(n, m)) * 1.5 + (3 + np.log(m) / 2) * np.eye(m)[y], y


def noisy_labels(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    z = rng.normal(size=(n, m)) * 2.5 - 2 + rng.normal(size=m)
    return z, rng.random(z.shape) < expit(z + 1)


def settings_in(model: onnx.ModelProto) -> dict:
    (settings,) = (e.value for e in model.metadata_props if e.key == "altnorm.settings")
    return json.loads(settings)
