"""Blur as the paper did it: the sure rest of the same images is the reference.

``python -m experiments.blur.published --data FOLDER [--device cuda]`` adjusts all images of each
blur, with alpha 1 and depth 1, with the paper's own setting, and with the best of its whole grid on
the images themselves. Minutes on a GPU, hours on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import altnorm
from experiments._multilabel.grid import best_point
from experiments._output import parse_arguments, write_records
from experiments.blur.grid import DEVICE, scan_grid
from experiments.blur.study import (
    PAPER_SETTINGS,
    SIGMAS,
    THRESHOLD,
    blur_path,
    gain_record,
    read_whole,
)

__all__ = ["BEST", "NAIVE", "OWN", "measure", "measure_setting"]

NAIVE, OWN, BEST = "alpha 1, depth 1", "the paper's setting", "best on these images"


def measure(
    path: Path, sigma: int, setting: tuple[float, int], device: str | None
) -> list[dict[str, Any]]:
    """One record a method; accuracy and gain in points, on the rows in doubt and on all."""
    proba, labels = read_whole(path)
    prior = np.full(proba.shape[1], 1 / proba.shape[1])
    points = scan_grid(proba, labels, prior, thresholds=(THRESHOLD,), device=device)
    settings = {NAIVE: (1.0, 1), OWN: setting, BEST: best_point(points)[:2]}
    return [measure_setting(path, sigma, method, *s) for method, s in settings.items()]


def measure_setting(
    path: Path, sigma: int, method: str, alpha: float, depth: int
) -> dict[str, Any]:
    """The record of one setting."""
    proba, labels = read_whole(path)
    hard = altnorm.ambiguity(proba) > THRESHOLD
    rows, reference = proba[hard], proba[~hard]
    adjusted = altnorm.alternating_normalization(rows, reference, alpha=alpha, depth=depth)
    before = proba.argmax(axis=1)
    after = before.copy()
    after[hard] = adjusted.argmax(axis=1)
    key = {"sigma": sigma, "method": method, "alpha": alpha, "depth": depth}
    counts = gain_record(before == labels, after == labels, hard)
    return key | {"n_reference": int((~hard).sum())} | counts


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all blurs."""
    arguments = parse_arguments(
        "blur", __doc__, argv, data="the predictions (.npz)", options={"--device": DEVICE}
    )
    records: list[dict[str, Any]] = []
    for sigma, setting in zip(SIGMAS, PAPER_SETTINGS, strict=True):
        path = blur_path(arguments.data, sigma)
        records += measure(path, sigma, setting, arguments.device)
        print(*records[-1].values(), flush=True)
        write_records(arguments.output / "published.csv", records)


if __name__ == "__main__":
    main()
