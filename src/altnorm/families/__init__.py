"""Corrections that are fitted by penalised likelihood, and other methods to compare with."""

from altnorm.families.labelwise import LabelwiseScaling
from altnorm.families.linear import CurveScaling, MatrixScaling
from altnorm.families.temperature import (
    BatchCalibration,
    BiasCorrectedTemperature,
    Identity,
    TemperatureScaling,
)
from altnorm.families.thresholds import LabelThresholds

__all__ = [
    "BatchCalibration",
    "BiasCorrectedTemperature",
    "CurveScaling",
    "Identity",
    "LabelThresholds",
    "LabelwiseScaling",
    "MatrixScaling",
    "TemperatureScaling",
]
