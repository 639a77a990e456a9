"""The methods a careful user compares alternating normalization with, behind the same interface."""

from altnorm.families import (
    BatchCalibration,
    BiasCorrectedTemperature,
    GlobalThreshold,
    Identity,
    LabelShiftEM,
    LabelThresholds,
    MatrixScaling,
    PriorReweighting,
    ShrunkBias,
    TemperatureScaling,
)

__all__ = [
    "BatchCalibration",
    "BiasCorrectedTemperature",
    "GlobalThreshold",
    "Identity",
    "LabelShiftEM",
    "LabelThresholds",
    "MatrixScaling",
    "PriorReweighting",
    "ShrunkBias",
    "TemperatureScaling",
]
