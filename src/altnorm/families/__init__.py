"""The methods a careful user compares alternating normalization with, behind the same interface.

For classes that exclude one another: `Identity`, `TemperatureScaling`,
`BiasCorrectedTemperature`, `BatchCalibration`; each returns ``softmax(log p / temperature + bias)``
and they differ in how the two are estimated; `MatrixScaling` puts a matrix in the place of the
temperature. For several labels per row: `LabelThresholds` and, for probabilities,
`LabelwiseScaling`.
"""

from altnorm.families.curves import CurveScaling
from altnorm.families.labelwise import LabelwiseScaling
from altnorm.families.matrix import MatrixScaling
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
