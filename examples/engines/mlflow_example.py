"""
MLflow
======

A fitted normalizer is saved as an MLflow model of the flavour ``python_function``, from code and
our model file: nothing is pickled. ``mlflow.pyfunc.log_model`` takes the same arguments within a
run, and ``mlflow models serve`` or ``mlflow.pyfunc.spark_udf`` use what comes out.
"""

import tempfile
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd

from altnorm import Adjuster

CLASSES = np.array(["ant", "bee", "cow"])
CODE = Path(__file__).parent / "mlflow_model.py"

rng = np.random.default_rng(0)
labels = rng.integers(3, size=1200)
scores = np.exp(rng.normal(size=(1200, 3)) + np.eye(3)[labels] + [1.5, 0.0, 0.0])
proba = pd.DataFrame(scores / scores.sum(axis=1, keepdims=True), columns=CLASSES)
adjuster = Adjuster().fit(proba[:600], CLASSES[labels[:600]])

with tempfile.TemporaryDirectory() as folder:
    file, target = Path(folder, "normalizer.safetensors"), Path(folder, "model")
    adjuster.save(file)
    mlflow.pyfunc.save_model(
        target,
        python_model=CODE,
        artifacts={"normalizer": str(file)},
        input_example=proba[:2],  # MLflow takes names and types of the columns from it
        pip_requirements=["altnorm", "pandas"],
    )
    served = mlflow.pyfunc.load_model(str(target))

adjusted = served.predict(proba[600:])
print(adjusted.head(3))
