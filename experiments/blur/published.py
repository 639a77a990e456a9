"""Blur as the paper did it: the sure rest of the same images is the reference.

``python -m experiments.blur.published --data FOLDER [--device cuda]`` adjusts all images of each
blur, with alpha 1 and depth 1, with the paper's own setting, and with the best of its whole grid on
the images themselves; then with the best of the grid if the reference is iterated on its own.
Minutes on a GPU, hours on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp

import altnorm
from experiments._multilabel.grid import ALPHAS, DEPTHS, GridPoint, best_point
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

__all__ = ["ALONE", "BEST", "NAIVE", "OWN", "iterate_alone", "measure", "measure_setting"]

NAIVE, OWN, BEST = "alpha 1, depth 1", "the paper's setting", "best on these images"
ALONE = "reference iterated alone, best"


def measure(
    path: Path, sigma: int, setting: tuple[float, int], device: str | None
) -> list[dict[str, Any]]:
    """One record a method; accuracy and gain in points, on the rows in doubt and on all."""
    proba, labels = read_whole(path)
    prior = np.full(proba.shape[1], 1 / proba.shape[1])
    points = scan_grid(proba, labels, prior, thresholds=(THRESHOLD,), device=device)
    settings = {NAIVE: (1.0, 1), OWN: setting, BEST: best_point(points)[:2]}
    records = [measure_setting(path, sigma, method, *s) for method, s in settings.items()]
    best = best_point(_scan_alone(proba, labels))
    return [*records, measure_setting(path, sigma, ALONE, *best[:2])]


def measure_setting(
    path: Path, sigma: int, method: str, alpha: float, depth: int
) -> dict[str, Any]:
    """The record of one setting."""
    proba, labels = read_whole(path)
    hard = altnorm.ambiguity(proba) > THRESHOLD
    rows, reference = proba[hard], proba[~hard]
    if method == ALONE:
        *_, adjusted = iterate_alone(rows, reference, alpha, depth)
    else:
        adjusted = altnorm.alternating_normalization(rows, reference, alpha=alpha, depth=depth)
    before = proba.argmax(axis=1)
    after = before.copy()
    after[hard] = adjusted.argmax(axis=1)
    key = {"sigma": sigma, "method": method, "alpha": alpha, "depth": depth}
    counts = gain_record(before == labels, after == labels, hard)
    return key | {"n_reference": int((~hard).sum())} | counts


def iterate_alone(
    rows: np.ndarray, reference: np.ndarray, alpha: float, depth: int
) -> Iterator[np.ndarray]:
    """Rows after each iteration, in logs, if they do not change the reference.

    A row counts in its column sums, but the reference that the next iteration sees is the one that
    was iterated without it: no product of matrices is needed. From depth 2 on this is not the
    method, only close to it. The prior is uniform.

    Parameters
    ----------
    rows : ndarray of shape (t, m)
        Rows in doubt, without zeros.
    reference : ndarray of shape (n, m)
        Sure rows, without zeros.
    alpha, depth
        Exponent and number of iterations.

    Yields
    ------
    ndarray of shape (t, m)
        Log-probabilities.
    """
    row, others = np.log(rows), np.log(reference)
    for _ in range(depth):
        row, others = alpha * row, alpha * others
        sums = logsumexp(others, axis=0)
        row = row - np.logaddexp(sums, row)
        row -= logsumexp(row, axis=1, keepdims=True)
        others -= sums
        others -= logsumexp(others, axis=1, keepdims=True)
        yield row


def _scan_alone(proba: np.ndarray, labels: np.ndarray) -> list[GridPoint]:
    """Accuracy of the rows in doubt for every setting, the reference iterated on its own."""
    hard = altnorm.ambiguity(proba) > THRESHOLD
    points = []
    for alpha in ALPHAS:
        steps = iterate_alone(proba[hard], proba[~hard], alpha, max(DEPTHS))
        for depth, step in enumerate(steps, start=1):
            score = float((step.argmax(axis=1) == labels[hard]).mean())
            points.append(GridPoint(alpha, depth, THRESHOLD, score))
    return points


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
