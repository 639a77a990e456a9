"""
ONNX
====

A fitted normalizer as a graph on standard operators, and appended to a classifier's own graph.
"""

# %%
# Export and run with onnxruntime.

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import altnorm
import altnorm.onnx

val, test, _ = altnorm.load_demo()
normalizer = altnorm.AlternatingNormalizer(alpha=0.6, threshold=0.5, prior="uniform")
normalizer.fit(val.proba)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "normalizer.onnx"
altnorm.onnx.export(normalizer, path)
session = onnxruntime.InferenceSession(str(path))
rows = test.proba.astype(np.float32)
adjusted, decision = session.run(None, {session.get_inputs()[0].name: rows})
print(f"largest difference {np.abs(adjusted - normalizer.transform(rows)).max():.1e}")
print(f"{path.stat().st_size / 1024:.0f} kB")
folder.cleanup()
