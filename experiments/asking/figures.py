"""The study in one picture: labels until the answer, asked for and at random."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, ORANGE, figure, save
from experiments.asking.study import BCTS, BUDGET, UNLABELLED, Summary

__all__ = ["draw_labels"]


def draw_labels(found: Sequence[Summary], folder: Path) -> None:
    """Median and 90th percentile of the labels until the answer, one line per classifier."""
    groups = [[one for one in found if one.adjustment == name] for name in (UNLABELLED, BCTS)]
    with figure(2, (11.8, 6.4), sharex=True) as (canvas, panels):
        for panel, group, name in zip(panels, groups, (UNLABELLED, BCTS), strict=True):
            _draw_group(panel, sorted(group, key=lambda one: one.median))
            panel.set_title(name)
        handles, labels = panels[0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=2)
        save(canvas, folder, "labels")


def _draw_group(panel: Axes, group: Sequence[Summary]) -> None:
    for place, one in enumerate(group):
        for colour, median, p90, shift in (
            (ORANGE, one.random_median, one.random_p90, -0.15),
            (BLUE, one.median, one.p90, 0.15),
        ):
            panel.plot([median, p90], [place + shift] * 2, color=colour, linewidth=1.4)
            panel.plot(median, place + shift, "o", color=colour, ms=4)
    panel.plot([], [], "o-", color=BLUE, ms=4, label="rows that `ask` asks for")
    panel.plot([], [], "o-", color=ORANGE, ms=4, label="rows at random")
    panel.axvline(BUDGET, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    names = [f"{one.classifier} ({one.gain:+.1f})" for one in group]
    panel.set_yticks(range(len(group)), names, fontsize=7.5)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.set_xlabel("labels until the answer: median to 90th percentile")
    panel.grid(axis="y", visible=False)
