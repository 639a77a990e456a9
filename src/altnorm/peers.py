"""The methods a careful user compares alternating normalization with, behind the same interface."""

from altnorm.families import (
    BatchCalibration,
    BiasCorrectedTemperature,
    Identity,
    LabelThresholds,
    MatrixScaling,
    TemperatureScaling,
)

__all__ = [
    "BatchCalibration",
    "BiasCorrectedTemperature",
    "Identity",
    "LabelThresholds",
    "MatrixScaling",
    "TemperatureScaling",
]
