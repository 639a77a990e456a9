"""A fitted model on Ray Data: record batches, block by block, on the workers."""

from altnorm.deploy.ray import transform

__all__ = ["transform"]
