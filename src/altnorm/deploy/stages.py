"""What a fitted normalizer does to a row, in two stages: the decision, then the probabilities.

A runtime without altnorm (an ONNX graph, a PyTorch module) does the same from this record.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.errors import InputError
from altnorm.adjuster.calibration import Temperatures
from altnorm.families import (
    BiasCorrectedTemperature,
    Identity,
    MatrixScaling,
    TemperatureScaling,
)
from altnorm.method.kinds import LabelKind, kind_of
from altnorm.method.normalizer import AlternatingNormalizer

_WITH_TEMPERATURE = (BiasCorrectedTemperature, TemperatureScaling)


class LinearScores(NamedTuple):
    """``softmax(max(log_p, floor) @ weight.T + bias)``; a slope for all classes may be `weight`."""

    weight: np.ndarray  # (m, m), or a number as shape ()
    bias: np.ndarray  # (m,)
    floor: float = -math.inf


class Stages(NamedTuple):
    """What a fitted normalizer does to a row.

    `decider` makes the decision: rows in doubt adjusted, or scores, or None for none. Then
    probabilities may be calibrated, which changes no decision: what the decider returns by
    `temperatures`, or else what came in by `calibrator`.
    """

    decider: AlternatingNormalizer | LinearScores | None
    temperatures: Temperatures | None
    calibrator: LinearScores | None
    n_classes: int
    input: str
    kind: LabelKind
    direct: bool  # whether logits go to the scores as they are, not by way of probabilities

    @property
    def calibrates(self) -> bool:
        """Whether there is a second stage."""
        return self.temperatures is not None or self.calibrator is not None


def chosen_normalizer(fitted: Any) -> Any:
    """Return what makes the decisions: of a search what it chose, else the normalizer itself."""
    return getattr(fitted, "best_normalizer_", fitted)


def read_stages(fitted: Any) -> Stages:
    """Say what a fitted normalizer does to a row.

    Parameters
    ----------
    fitted : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or a peer
        Of the peers, those that fit a temperature or a matrix, and Identity.

    Returns
    -------
    Stages
        The two stages.
    """
    chosen = chosen_normalizer(fitted)
    temperatures = getattr(fitted, "temperatures_", None)
    calibrator = getattr(fitted, "calibrator_", None)
    decider = _read_decider(chosen)
    return Stages(
        decider,
        None if temperatures is None else Temperatures(*map(float, temperatures)),
        None if calibrator is None else _read_scores(calibrator),
        len(fitted.classes_),
        fitted.input,
        kind_of(fitted),
        direct=chosen is fitted and isinstance(decider, LinearScores),
    )


def _read_decider(chosen: Any) -> AlternatingNormalizer | LinearScores | None:
    fitted = hasattr(chosen, "classes_")
    if fitted and isinstance(chosen, AlternatingNormalizer):
        return chosen
    if fitted and isinstance(chosen, Identity):
        return None
    if fitted and isinstance(chosen, (*_WITH_TEMPERATURE, MatrixScaling)):
        return _read_scores(chosen)
    raise InputError(
        "`normalizer` must be a fitted Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, "
        "Identity, or a peer that fits a temperature or a matrix",
        f"it is {chosen!r}",
        "Fit one first.",
        value=chosen,
        code="not_supported",
    )


def _read_scores(peer: Any) -> LinearScores:
    bias = np.asarray(getattr(peer, "bias_", np.zeros(len(peer.classes_))), dtype=np.float64)
    if isinstance(peer, MatrixScaling):
        return LinearScores(np.asarray(peer.matrix_, dtype=np.float64), bias, float(peer.floor_))
    return LinearScores(np.array(1 / float(peer.temperature_)), bias)
