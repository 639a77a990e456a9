"""The benchmark in one picture: accuracy and log loss of each method, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, figure, save
from experiments.benchmark.measure import ALL, UNTOUCHED
from experiments.benchmark.summary import (
    Records,
    accuracy_interval,
    gains_of,
    loss_interval,
    methods_of,
)

__all__ = ["draw_gains"]


def draw_gains(records: Records, folder: Path) -> None:
    """Draw each method's mean gains with all labels, the lowest log loss on top."""
    records = [record for record in records if record["labels"] == ALL]
    gains = {method: gains_of(records, method) for method in methods_of(records)}
    del gains[UNTOUCHED]
    # What is for two classes only was tried on other classifiers than the rest.
    most = max(len(its.sources) for its in gains.values())
    gains = {method: its for method, its in gains.items() if len(its.sources) == most}
    names = sorted(gains, key=lambda method: -gains[method].log_loss.mean())
    with figure(2, (9, 0.3 * len(names) + 1.2), sharey=True) as (canvas, panels):
        for place, name in enumerate(names):
            its = gains[name]
            _draw(panels[0], accuracy_interval(its), place, _colour(name))
            _draw(panels[1], loss_interval(its), place, _colour(name))
        panels[0].set_yticks(range(len(names)), names)
        panels[0].set_xlabel("gain in accuracy, points")
        panels[1].set_xlabel("log loss against the untouched one, %")
        for panel in panels:
            panel.axvline(0, color=INK, linewidth=1)
            panel.grid(axis="y", visible=False)
        save(canvas, folder, "gains")


def _draw(panel: Axes, interval: Sequence[float], place: int, colour: str) -> None:
    mean, *ends = interval
    panel.plot(ends, [place] * 2, color=colour, linewidth=1.6, alpha=0.6)
    panel.plot(mean, place, "o", color=colour, markersize=5)


def _colour(method: str) -> str:
    if "CAN" in method:
        return ORANGE
    return BLUE if method.startswith("altnorm") else GREY
