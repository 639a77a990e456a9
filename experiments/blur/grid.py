"""The paper's whole grid on rows that serve as their own reference, on a GPU if there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import altnorm
from experiments._multilabel.grid import ALPHAS, DEPTHS, THRESHOLDS, GridPoint

__all__ = ["DEVICE", "predicted_classes", "scan_grid", "to_device"]

DEVICE = {"metavar": "NAME", "help": "PyTorch device, such as cuda; without it NumPy is used"}


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
