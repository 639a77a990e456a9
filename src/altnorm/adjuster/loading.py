"""A model file back into the estimator that it was; importing their classes registers them."""

from __future__ import annotations

import os

from altnorm import families
from altnorm._base.persistence import read_model
from altnorm.adjuster.adjuster import Adjuster
from altnorm.adjuster.alternating import AlternatingNormalizerCV
from altnorm.estimator.normalizer import AlternatingNormalizer

Model = (
    Adjuster
    | AlternatingNormalizerCV
    | AlternatingNormalizer
    | families.BatchCalibration
    | families.BiasCorrectedTemperature
    | families.CurveScaling
    | families.Identity
    | families.LabelThresholds
    | families.LabelwiseScaling
    | families.MatrixScaling
    | families.TemperatureScaling
)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a fitted estimator that its `save` wrote.

    A file that was changed or cut off is refused, and so is one whose settings or arrays are not
    such as `fit` leaves them. Nothing in a file is executed.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or one of altnorm.peers
        It transforms bit for bit as the one that was saved. Its arrays are read-only.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import altnorm
    >>> proba = np.array([[0.1, 0.9], [0.8, 0.2]])
    >>> normalizer = altnorm.AlternatingNormalizer(alpha=2.0).fit(proba)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     normalizer.save(Path(folder) / "model.safetensors")
    ...     altnorm.load(Path(folder) / "model.safetensors")
    AlternatingNormalizer(alpha=2.0)
    """
    model: Model = read_model(path)
    return model
