"""Figures of the simulation: drawn from estimates, nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import figure, heat, ordered, save
from experiments.simulation.study import Estimate

__all__ = ["GAIN", "SWITCHED", "draw_heatmaps", "draw_lines"]

GAIN = "mean gain δ"
SWITCHED = "share of switched rows Δ"
_Z = 1.96


def draw_heatmaps(gain: Estimate, switched: Estimate, labels: Sequence[str], folder: Path) -> None:
    """Ambiguity of the reference against that of the rows, for both metrics."""
    with figure(2, (9.4, 3.9)) as (canvas, panels):
        _draw_pairs(panels[0], gain, labels, "Mean gain δ", "{:.2f}\n± {:.2f}")
        _draw_pairs(panels[1], switched, labels, "Share of switched rows Δ", "{:.1%}\n± {:.1%}")
        panels[0].set_ylabel("ambiguity of the reference A₀")
        save(canvas, folder, "heatmaps")


def _draw_pairs(panel: Axes, pairs: Estimate, labels: Sequence[str], title: str, text: str) -> None:
    texts = [
        [text.format(mean, _Z * se) for mean, se in zip(means, ses, strict=True)]
        for means, ses in zip(pairs.mean, pairs.se, strict=True)
    ]
    heat(panel, pairs.mean, texts)
    panel.set_title(title)
    panel.set_xticks(range(len(labels)), labels)
    panel.set_yticks(range(len(labels)), labels)
    panel.set_xlabel("ambiguity of the row b₀")


def draw_lines(
    x: Sequence[float],
    gain: Mapping[str, Estimate],
    switched: Mapping[str, Estimate],
    folder: Path,
    name: str,
    **options: Any,
) -> None:
    """Both metrics against `x`, one line and 95 % band for each named series."""
    with figure(2, (9.4, 3.7)) as (canvas, panels):
        for panel, series, label in zip(panels, (gain, switched), (GAIN, SWITCHED), strict=True):
            _draw_series(panel, x, series)
            _label_axes(panel, x, label, **options)
        canvas.legend(
            *panels[0].get_legend_handles_labels(),
            title=options.get("legend"),
            loc="outside right center",
            alignment="left",
        )
        save(canvas, folder, name)


def _draw_series(panel: Axes, x: Sequence[float], series: Mapping[str, Estimate]) -> None:
    for colour, (name, line) in zip(ordered(len(series)), series.items(), strict=True):
        panel.fill_between(
            x, line.mean - _Z * line.se, line.mean + _Z * line.se, color=colour, alpha=0.18, lw=0
        )
        panel.plot(x, line.mean, color=colour, label=name, marker="o", ms=3)


def _label_axes(
    panel: Axes,
    x: Sequence[float],
    label: str,
    *,
    xlabel: str,
    ticks: Sequence[float],
    log: bool = True,
    log_gain: bool = False,
    legend: str = "",
) -> None:
    if log:
        panel.set_xscale("log")
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlim(min(x) / 1.06 if log else min(x) - 0.1, max(x) * 1.06 if log else max(x) + 0.1)
    panel.set_xlabel(xlabel)
    panel.set_title(label[0].upper() + label[1:])
    if label == GAIN and log_gain:
        panel.set_yscale("log")
        ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5) if np.prod(np.array(panel.get_ylim()) - t) < 0]
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
    else:
        panel.set_ylim(bottom=min(0, panel.get_ylim()[0]))
    if label == SWITCHED:
        panel.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
