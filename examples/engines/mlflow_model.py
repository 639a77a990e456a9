"""
The model's code
================

What MLflow runs where the model is served: probabilities in, adjusted probabilities and the class
after the adjustment out. It needs altnorm, and the model file as an artifact named ``normalizer``.
"""

import mlflow
import pandas as pd

from altnorm import load


class Adjustment(mlflow.pyfunc.PythonModel):
    """A fitted normalizer as an MLflow model."""

    def load_context(self, context):
        """Load the model file; unlike a pickle it executes nothing."""
        self.normalizer = load(context.artifacts["normalizer"])

    def predict(self, context, model_input: pd.DataFrame, params=None) -> pd.DataFrame:
        """One column per class, in any order and among others, in; the same plus "class" out."""
        adjusted = self.normalizer.transform(model_input)
        frame = pd.DataFrame(adjusted, model_input.index, self.normalizer.classes_)
        return frame.assign(**{"class": self.normalizer.predict(model_input)})


mlflow.models.set_model(Adjustment())
