"""The methods a careful user compares alternating normalization with, behind the same interface.

For classes that exclude one another: `Identity`, `TemperatureScaling`,
`BiasCorrectedTemperature`, `PriorReweighting`, `LabelShiftEM`, `BatchCalibration`; each returns
``softmax(log p / temperature + bias)`` and they differ in how they come by the two. For several
labels per row: `GlobalThreshold` and `LabelThresholds`.
"""

from altnorm.peers.priors import BatchCalibration, LabelShiftEM, PriorReweighting
from altnorm.peers.temperature import BiasCorrectedTemperature, Identity, TemperatureScaling
from altnorm.peers.thresholds import GlobalThreshold, LabelThresholds

__all__ = [
    "BatchCalibration",
    "BiasCorrectedTemperature",
    "GlobalThreshold",
    "Identity",
    "LabelShiftEM",
    "LabelThresholds",
    "PriorReweighting",
    "TemperatureScaling",
]
