"""A fitted normalizer on Ray Data: record batches, block by block, on the workers."""

from altnorm.deploy.ray import (
    input_errors,
    take_in,
    transform,
)

__all__ = [
    "input_errors",
    "take_in",
    "transform",
]
