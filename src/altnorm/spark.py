"""A fitted model on Spark: record batches, partition by partition, on the executors."""

from altnorm.deploy.spark import transform

__all__ = ["transform"]
