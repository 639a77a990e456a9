"""The methods a careful user compares alternating normalization with, behind the same interface.

For classes that exclude one another: `Identity`, `TemperatureScaling`,
`BiasCorrectedTemperature`, `ShrunkBias`, `PriorReweighting`, `LabelShiftEM`, `BatchCalibration`;
each returns ``softmax(log p / temperature + bias)`` and they differ in how they come by the two;
`MatrixScaling` puts a matrix in the place of the temperature. For several labels per row:
`GlobalThreshold`, `LabelThresholds` and, for probabilities, `LabelwiseScaling`.
"""

from altnorm.families.labelwise import LabelwiseScaling
from altnorm.families.priors import BatchCalibration, LabelShiftEM, PriorReweighting
from altnorm.families.shrunk import MatrixScaling, ShrunkBias
from altnorm.families.temperature import BiasCorrectedTemperature, Identity, TemperatureScaling
from altnorm.families.thresholds import GlobalThreshold, LabelThresholds

__all__ = [
    "BatchCalibration",
    "BiasCorrectedTemperature",
    "GlobalThreshold",
    "Identity",
    "LabelShiftEM",
    "LabelThresholds",
    "LabelwiseScaling",
    "MatrixScaling",
    "PriorReweighting",
    "ShrunkBias",
    "TemperatureScaling",
]
