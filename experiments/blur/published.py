"""Blur as the paper did it: the sure rest of the same images is the reference.

``python -m experiments.blur.published --data FOLDER [--device cuda]`` adjusts all images of each
blur, with alpha 1 and depth 1, with the paper's own setting, and with the best of its whole grid on
the images themselves. Seconds on a GPU, hours on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import altnorm
from experiments._multilabel.grid import best_point
from experiments._output import parse_arguments, write_records
from experiments.blur.study import (
    PAPER_SETTINGS,
    SIGMAS,
    THRESHOLD,
    blur_path,
    gain_record,
    read_whole,
)
from experiments.suite.paper import scan_grid
from experiments.suite.published import DEVICE

__all__ = ["BEST", "NAIVE", "OWN", "measure"]

NAIVE, OWN, BEST = "alpha 1, depth 1", "the paper's setting", "best on these images"


def measure(
    path: Path, sigma: int, setting: tuple[float, int], device: str | None
) -> list[dict[str, Any]]:
    """One record a method; accuracy and gain in points, on the rows in doubt and on all."""
    proba, labels = read_whole(path)
    hard = altnorm.ambiguity(proba) > THRESHOLD
    prior = np.full(proba.shape[1], 1 / proba.shape[1])
    points = scan_grid(proba, labels, prior, thresholds=(THRESHOLD,), device=device)
    settings = {NAIVE: (1.0, 1), OWN: setting, BEST: best_point(points)[:2]}
    before, records = proba.argmax(axis=1), []
    for method, (alpha, depth) in settings.items():
        after = before.copy()
        adjusted = altnorm.alternating_normalization(
            proba[hard], proba[~hard], alpha=alpha, depth=depth
        )
        after[hard] = adjusted.argmax(axis=1)
        key = {"sigma": sigma, "method": method, "alpha": alpha, "depth": depth}
        counts = gain_record(before == labels, after == labels, hard)
        records.append(key | {"n_reference": int((~hard).sum())} | counts)
    return records


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
