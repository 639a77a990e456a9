"""Each classifier's gain with its interval, and against its classes and its accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, INK, ORANGE, TEAL, figure, save
from experiments.suite.names import plain_name
from experiments.suite.trends import METHODS as TREND_METHODS, Point

__all__ = ["draw_gains", "draw_trends"]

METHODS = {"CAN as published": ORANGE, "BCTS, always": TEAL, "Adjuster": BLUE}
_BELOW = {"Adjuster": 0.02, "BCTS, always": 0.18, "CAN as published": 0.34}
_PAPER = {"facecolor": "white", "linewidth": 0, "pad": 1.5}
_LABELS = {
    "CAN as published": "the paper's method, tuned as published",
    "BCTS, always": "temperature and bias per class, always (BCTS)",
    "Adjuster": "altnorm: adopted only on evidence",
}


def draw_gains(rows: list[dict[str, Any]], folder: Path) -> None:
    """Draw the single-label gains as dots with intervals, the largest gain on top."""
    rows = [row for row in rows if row["method"] in METHODS]
    by_key = {(row["classifier"], row["method"]): row for row in rows}
    names = sorted(
        {row["classifier"] for row in rows},
        key=lambda name: tuple(by_key[name, method]["gain"] for method in reversed(METHODS)),
    )
    # Narrow, each name above its dots, so that a phone shows it in type of a legible size.
    with figure(1, (4.6, 0.44 * len(names) + 1.4)) as (canvas, ax):
        ax.axvline(0, color=INK, linewidth=1)
        for place, name in enumerate(names):
            ax.text(-8, place + 0.32, plain_name(name), fontsize=8.5, va="center", bbox=_PAPER)
            for method, colour in METHODS.items():
                _draw_gain(ax, by_key[name, method], place - _BELOW[method], colour)
        ax.set_yticks([])
        ax.set_ylim(-0.9, len(names) - 0.3)
        ax.set_xscale("symlog", linthresh=2)
        ticks = [-5, -2, -1, 0, 1, 2, 5, 10, 20]
        ax.set_xticks(ticks, [f"{t:+d}" if t else "0" for t in ticks], fontsize=9)
        ax.set_xlim(-8, 30)
        label = (
            "gain in test accuracy, points; bars: 95 % intervals\nin brackets: number of classes"
        )
        ax.set_xlabel(label, fontsize=9)
        ax.set_ylabel("classifiers, the largest gain of altnorm on top", fontsize=9)
        ax.grid(axis="y", visible=False)
        ax.spines["left"].set_visible(False)
        _draw_legend(ax)
        save(canvas, folder, "gains")


def _draw_gain(ax: Axes, row: dict[str, Any], place: float, colour: str) -> None:
    ends = [row["ci_low"], row["ci_high"]]
    ax.plot(ends, [place] * 2, color=colour, linewidth=1.4, alpha=0.55)
    ax.plot(row["gain"], place, "o", color=colour, markersize=4.2)


def _draw_legend(ax: Axes) -> None:
    for method, colour in METHODS.items():
        ax.plot([], [], "o-", color=colour, label=_LABELS[method])
    # Above the rows: below them it would cover some.
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=9)


def draw_trends(points: Sequence[Point], folder: Path) -> None:
    """Gain of each classifier against classes and accuracy."""
    looks = dict(zip(TREND_METHODS, ((ORANGE, "s"), (BLUE, "o")), strict=False))
    with figure(2, (10.4, 4.2), sharey=True) as (canvas, panels):
        for method, (colour, marker) in looks.items():
            chosen = [p for p in points if p.method == method]
            gain = np.array([p.gain for p in chosen])
            bars = np.array([[p.gain - p.ci_low, p.ci_high - p.gain] for p in chosen]).T
            style = {"fmt": marker, "ms": 5, "color": colour, "elinewidth": 0.8, "alpha": 0.85}
            shift = 1.04 if method == TREND_METHODS[0] else 0.96
            x = np.array([p.classes for p in chosen]) * shift
            panels[0].errorbar(x, gain, bars, label=method, **style)
            panels[1].errorbar([p.base for p in chosen], gain, bars, **style)
        for panel in panels:
            panel.axhline(0, color=INK, lw=0.8)
        ticks = (3, 10, 30, 100, 300, 1000)
        panels[0].set(xscale="log", xlabel="classes", ylabel="gain (accuracy points)")
        panels[0].set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panels[0].minorticks_off()
        panels[1].set_xlabel("accuracy before (%)")
        panels[0].set_title("Do many classes help?")
        panels[1].set_title("Do better classifiers gain less?")
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        save(canvas, folder, "trends")
