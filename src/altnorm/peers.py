"""The methods a careful user compares alternating normalization with, behind the same interface."""

from altnorm.families import (
    BatchCalibration,
    BiasCorrectedTemperature,
    CurveScaling,
    Identity,
    LabelThresholds,
    MatrixScaling,
    TemperatureScaling,
)

__all__ = [
    "BatchCalibration",
    "BiasCorrectedTemperature",
    "CurveScaling",
    "Identity",
    "LabelThresholds",
    "MatrixScaling",
    "TemperatureScaling",
]
