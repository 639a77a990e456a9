"""A fitted model as an ONNX graph on standard operators."""

from altnorm.deploy.onnx import export, register_converter

__all__ = ["export", "register_converter"]
