"""Record batches in, record batches out: the way to every engine that speaks Arrow."""

from altnorm.deploy.arrow import apply_batches

__all__ = ["apply_batches"]
