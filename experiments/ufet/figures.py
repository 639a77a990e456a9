"""The hyper-parameter figure: macro-F1 against alpha, one curve for each depth and tau."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments._figures import GREY, INK, figure, ordered, save
from experiments._multilabel.grid import GridPoint

__all__ = ["Curves", "draw_tuning", "tuning_curves"]

Curves = dict[tuple[float, int], tuple[np.ndarray, np.ndarray]]


def tuning_curves(points: Sequence[GridPoint]) -> Curves:
    """For each tau and depth the alphas and the mean score over all scans."""
    scores: dict[tuple[float, int, float], list[float]] = {}
    for point in points:
        key = (point.threshold, point.depth, point.alpha)
        scores.setdefault(key, []).append(point.score)
    curves: dict[tuple[float, int], list[tuple[float, float]]] = {}
    for (threshold, depth, alpha), values in sorted(scores.items()):
        curves.setdefault((threshold, depth), []).append((alpha, float(np.mean(values))))
    return {key: tuple(np.array(curve).T) for key, curve in curves.items()}


def draw_tuning(curves: Curves, base: float, folder: Path, name: str) -> None:
    """One panel per tau, one curve per depth, the untouched predictions as a line."""
    thresholds = sorted({threshold for threshold, _ in curves})
    depths = sorted({depth for _, depth in curves})
    colours = dict(zip(depths, ordered(len(depths)), strict=True))
    with figure(len(thresholds), (10.5, 3.6), sharey=True) as (canvas, panels):
        for panel, threshold in zip(panels, thresholds, strict=True):
            first = panel is panels[0]
            panel.axhline(base, color=GREY, linestyle="--", label="untouched" if first else None)
            for depth in depths:
                alphas, scores = curves[threshold, depth]
                label = f"d = {depth}" if first else None
                panel.plot(alphas, scores, color=colours[depth], label=label)
            panel.set(title=f"tau = {threshold:g}", xlabel="alpha", xscale="log")
            panel.set_xticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])
            panel.minorticks_off()
        panels[0].set_ylabel("validation macro-F1", color=INK)
        canvas.legend(loc="outside lower center", ncols=len(depths) + 1)
        save(canvas, folder, name)
