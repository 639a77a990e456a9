"""The figure of the study: drawn from records, nothing is measured here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments._figures import BLUE, INK, figure, ordered, save
from experiments.confident_reference.study import CONFIDENT, REFERENCES, Record
from experiments.confident_reference.tables import mean_and_error

__all__ = ["draw_gains"]


def draw_gains(records: Sequence[Record], folder: Path) -> None:
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
        save(canvas, folder, "gains")
