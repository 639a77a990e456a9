"""A fitted normalizer on Spark: record batches, partition by partition, on the executors."""

from altnorm.deploy.spark import (
    ProbabilityAdjuster,
    input_errors,
    take_in,
    transform,
)

__all__ = [
    "ProbabilityAdjuster",
    "input_errors",
    "take_in",
    "transform",
]
