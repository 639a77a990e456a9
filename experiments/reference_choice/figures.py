"""The figures of the study of references: drawn from tables, nothing is measured here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, PURPLE, TEAL, figure, ordered, save
from experiments.reference_choice.calibrated import CONFIDENT, REFERENCES, Record, mean_and_error
from experiments.reference_choice.results import NAIVE, TUNED, suite_means
from experiments.reference_choice.study import CHOICES, DEFAULTS, NEAREST, WHOLE, Design

__all__ = ["draw_calibrated", "draw_sizes"]

_FLOOR = -4.5  # points; the nearest rows do much worse

_LOOK = {
    "confident": (ORANGE, "o", "confident only (the paper)"),
    "all": (BLUE, "o", "all"),
    "stratified": (TEAL, "s", "stratified by predicted class"),
    "balanced": (GREY, "D", "predicted classes balanced"),
    "weighted": (PURPLE, "^", "weighted by confidence"),
    "nearest": ("#B8860B", "v", "nearest in probability"),
    DEFAULTS: (INK, "*", "confident or all, smoothing tuned (the library)"),
}


def draw_sizes(gains: list[dict[str, Any]], design: Design, folder: Path) -> None:
    """Mean gain over the suite against the size of the reference, one curve a choice."""
    sizes = [*design.sizes, WHOLE]
    with figure(2, (11.4, 5)) as (canvas, panels):
        _draw_curves(panels[0], gains, design, NAIVE, CHOICES)
        panels[0].set_ylim(bottom=max(_FLOOR, panels[0].get_ylim()[0]))
        panels[0].set_title("CAN-naive: alpha 1, threshold 0.75")
        panels[0].set_ylabel("mean gain over the classifiers (accuracy points)")
        _draw_curves(panels[1], gains, design, TUNED, (*CHOICES, DEFAULTS))
        panels[1].set_title("Settings chosen by cross-fitting, or no change")
        for panel in panels:
            panel.axhline(0, color=INK, lw=0.8)
            panel.set_xticks(range(len(sizes)), [*(f"{n:,}" for n in design.sizes), "all"])
            panel.set_xlabel("rows that serve as reference")
        handles, labels = panels[1].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=4)
        save(canvas, folder, "sizes")


def _draw_curves(
    panel: Axes,
    gains: list[dict[str, Any]],
    design: Design,
    name: str,
    choices: tuple[str, ...],
) -> None:
    for choice in choices:
        colour, marker, label = _LOOK[choice]
        sizes = [*(design.near_sizes if choice == NEAREST else design.sizes), WHOLE]
        x = [len(design.sizes) if n == WHOLE else design.sizes.index(n) for n in sizes]
        draws = [suite_means(gains, choice, n, name) for n in sizes]
        mean = np.array([d.mean() for d in draws])
        error = np.array([d.std() / np.sqrt(max(len(d) - 1, 1)) for d in draws])
        size = 9 if choice == DEFAULTS else 5
        shifted = np.array(x) + 0.05 * (list(_LOOK).index(choice) - 3)
        style = {"color": colour, "marker": marker, "ms": size, "elinewidth": 1, "label": label}
        panel.errorbar(shifted, mean, 1.96 * error, **style)
        if choice == NEAREST and name == NAIVE:
            _mark_lost(panel, shifted, mean)


def _mark_lost(panel: Axes, x: np.ndarray, mean: np.ndarray) -> None:
    """Write down the points that the axis leaves out."""
    for at, value in zip(x, mean, strict=True):
        if value < _FLOOR:
            text = f"{value:+.1f}"
            place = {"xytext": (at, _FLOOR + 0.35), "ha": "center", "color": "#8A6508"}
            arrow = {"arrowstyle": "-|>", "color": "#B8860B"}
            panel.annotate(text, (at, _FLOOR), arrowprops=arrow, **place)


def draw_calibrated(records: Sequence[Record], folder: Path) -> None:
    """Points of accuracy against how much the classes differ, one panel per number of classes."""
    sizes = list(dict.fromkeys(r.classes for r in records))
    colours = [*ordered(len(CONFIDENT)), BLUE]
    with figure(len(sizes), (3.6 * len(sizes), 3.7), sharey=True, squeeze=False) as (canvas, axes):
        for panel, m in zip(axes[0], sizes, strict=True):
            panel.axhline(0, color=INK, linewidth=1)
            for name, colour in zip(REFERENCES, colours, strict=True):
                some = [r for r in records if (r.classes, r.reference) == (m, name)]
                spreads = sorted({r.spread for r in some})
                points = [mean_and_error([r.gain for r in some if r.spread == s]) for s in spreads]
                means, errors = zip(*points, strict=True)
                bars = [1.96 * error for error in errors]
                panel.errorbar(spreads, means, bars, color=colour, marker="o", ms=4, label=name)
            panel.set_title(f"{m} classes")
            panel.set_xlabel("spread of the classes' difficulty")
        axes[0][0].set_ylabel("change of accuracy, points")
        handles, labels = axes[0][0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=len(handles))
        save(canvas, folder, "calibrated")
