"""Alternating normalization as the paper tunes it: the best setting on validation data itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import altnorm
from experiments._multilabel.grid import ALPHAS, DEPTHS, THRESHOLDS, GridPoint, best_point, scan
from experiments._output import read_records
from experiments.suite.files import Classifier

__all__ = [
    "COUNTED",
    "UNIFORM",
    "PaperTuning",
    "choose",
    "predicted_classes",
    "prior_for",
    "published",
    "scan_grid",
    "to_device",
]

UNIFORM, COUNTED = "uniform", "counted"
SETTINGS = Path(__file__).parent / "results" / "published.csv"

# The paper's prior is the class frequency of the training data, which one source gives (it is
# uniform). Otherwise: uniform where the training data are balanced by design (CIFAR, ImageNet,
# UAV-Human), where there are none (language models that were asked), and where nothing is known of
# them (language identification, tissue from another hospital). These few are uneven, and their
# validation rows come from the same source as the training rows: their frequencies are counted.
_UNEVEN = ("20news", "iemocap4", "snphotcc3", "transients13")


def prior_for(name: str) -> str:
    """The kind of prior that the paper allows for a source."""
    return COUNTED if name.startswith(_UNEVEN) else UNIFORM


def frequencies(kind: str, y: np.ndarray, n_classes: int) -> np.ndarray:
    """A class prior; of several labels per row the frequency of "yes"."""
    if y.ndim == 2:
        return np.array(y.mean())
    counted = np.bincount(y, minlength=n_classes) / len(y)
    return counted if kind == COUNTED else np.full(n_classes, 1 / n_classes)


def scan_grid(
    proba: np.ndarray,
    y: np.ndarray,
    prior: np.ndarray,
    *,
    thresholds: Sequence[float] = THRESHOLDS,
    device: str | None = None,
) -> list[GridPoint]:
    """Accuracy of every setting on the rows that it takes its reference from.

    Parameters
    ----------
    proba, y : ndarray
        Validation predictions, one class per row, and their classes.
    prior : ndarray of shape (m,)
        Class prior.
    thresholds : sequence of float, optional
        The values of tau.
    device : str, optional
        Compute with PyTorch on this device, such as "cuda"; None is NumPy.

    Returns
    -------
    list of GridPoint
        In the order tau, alpha, depth; a tau that leaves no row in doubt, or none sure, is left
        out.
    """
    doubtful = altnorm.ambiguity(proba)
    points = []
    for threshold in thresholds:
        hard = doubtful > threshold
        if not hard.any() or hard.all():
            continue
        sure_hits = int((proba[~hard].argmax(axis=1) == y[~hard]).sum())
        arrays = to_device(device, proba[hard], proba[~hard], prior)
        for alpha in ALPHAS:
            for depth, classes in enumerate(_predicted(*arrays, alpha), start=1):
                hits = sure_hits + int((classes == y[hard]).sum())
                points.append(GridPoint(alpha, depth, threshold, hits / len(y)))
    return points


def _predicted(rows: Any, reference: Any, prior: Any, alpha: float) -> Iterator[np.ndarray]:
    """Classes of the rows in doubt after 1, 2, .. iterations."""
    steps = altnorm.trajectory(rows, reference, prior=prior, alpha=alpha, depth=max(DEPTHS))
    for step in steps[1:]:
        yield predicted_classes(step)


def to_device(device: str | None, *arrays: np.ndarray) -> tuple[Any, ...]:
    """Arrays as PyTorch tensors on a device; as they are without one."""
    if device is None:
        return arrays
    import torch

    return tuple(torch.as_tensor(array, dtype=torch.float64, device=device) for array in arrays)


def predicted_classes(proba: Any) -> np.ndarray:
    """The most probable class of each row, in NumPy, wherever the rows are."""
    classes = proba.argmax(1)
    return classes if isinstance(classes, np.ndarray) else classes.cpu().numpy()


def choose(
    proba: np.ndarray, y: np.ndarray, prior: np.ndarray, *, device: str | None = None
) -> GridPoint:
    """The setting with the best score on validation data, of the paper's whole grid."""
    if y.ndim == 1:
        return best_point(scan_grid(proba, y, prior, device=device))
    return best_point(scan(proba, float(prior), lambda after: _micro_f1(y == 1, after > 0.5)))


def _micro_f1(true: np.ndarray, said: np.ndarray) -> float:
    return 2 * np.count_nonzero(true & said) / max(np.count_nonzero(true) + said.sum(), 1)


class PaperTuning(BaseEstimator):
    """The best setting on the rows it is fitted on, with no other evidence.

    Parameters
    ----------
    prior : {"uniform", "counted"}, default="uniform"
        Class prior; with several labels per row it is always counted.
    setting : tuple of (alpha, depth, threshold), optional
        What the search found before; None searches.
    """

    def __init__(self, prior: str = UNIFORM, setting: tuple[float, int, float] | None = None):
        self.prior = prior
        self.setting = setting

    def fit(self, proba: np.ndarray, y: np.ndarray) -> PaperTuning:
        """Choose the setting, unless it is given."""
        prior = frequencies(self.prior, y, proba.shape[1])
        setting = self.setting or choose(proba, y, prior)[:3]
        self.best_params_ = dict(zip(("alpha", "depth", "threshold"), setting, strict=True))
        if y.ndim == 2:
            given = {"prior": np.array([prior, 1 - prior]), "multilabel": "pairs"}
        else:
            given = {"prior": prior}
        normalizer = altnorm.AlternatingNormalizer(**self.best_params_, **given)
        self.normalizer_ = normalizer.fit(proba)
        return self

    def transform(self, proba: np.ndarray) -> np.ndarray:
        """Apply the chosen setting."""
        return self.normalizer_.transform(proba)


def published(classifier: Classifier, kind: str | None = None) -> PaperTuning:
    """CAN as published for one classifier, with the setting that was found before, if any."""
    if kind is None:
        kind = COUNTED if classifier.multilabel else prior_for(classifier.name)
    known = read_records(SETTINGS) if SETTINGS.exists() else []
    for row in known:
        if (row["classifier"], row["prior"]) == (classifier.name, kind):
            return PaperTuning(kind, (row["alpha"], row["depth"], row["threshold"]))
    return PaperTuning(kind)
