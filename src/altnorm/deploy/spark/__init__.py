"""A fitted normalizer on Spark: record batches, partition by partition, on the executors.

`transform` is for data frames, `ProbabilityAdjuster` for pipelines of Spark ML.
"""

from __future__ import annotations

try:
    import pyspark  # noqa: F401 - a missing extra is told here
except ImportError as error:
    raise ImportError(
        "altnorm.spark needs the `spark` extra; install it with pip install 'altnorm[spark]'"
    ) from error

from altnorm.deploy.spark._pipeline import ProbabilityAdjuster
from altnorm.deploy.spark._transform import input_errors, take_in, transform

__all__ = ["ProbabilityAdjuster", "input_errors", "take_in", "transform"]

# Saved pipelines name the class by its module: not by one that may move.
ProbabilityAdjuster.__module__ = __name__
