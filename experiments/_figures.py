"""One look for all figures: palette, type and how they are saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

__all__ = ["BLUE", "GREY", "INK", "ORANGE", "PURPLE", "TEAL", "figure", "heat", "ordered", "save"]

# Okabe and Ito's colours, which stay apart for colour-blind readers.
BLUE, ORANGE, TEAL, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
INK, GREY = "#222222", "#9A9A9A"

# From light to dark, monotone in lightness, so that it also reads in grey.
HEAT = LinearSegmentedColormap.from_list(
    "heat", ["#F4F8FB", "#BFDCEB", "#6FB3D2", "#2A7FB0", "#0B4A75"]
)
_ORDERED = LinearSegmentedColormap.from_list(
    "ordered", ["#E8A33D", "#CF5C4A", "#8E3A7E", "#2B2A6B"]
)

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.titlesize": 11,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.dpi": 150,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@contextmanager
def figure(n_columns: int, size: tuple[float, float], **options: Any) -> Iterator[tuple[Any, Any]]:
    """A figure of one row of panels in the house style, closed afterwards."""
    with mpl.rc_context(_STYLE):
        canvas, panels = plt.subplots(1, n_columns, figsize=size, layout="constrained", **options)
        try:
            yield canvas, panels
        finally:
            plt.close(canvas)


def save(canvas: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG, the same bytes each time."""
    canvas.savefig(folder / f"{name}.png", metadata={"Software": None})


def ordered(n: int) -> list[Any]:
    """Colours for `n` ordered series, from light to dark."""
    return [_ORDERED(i / max(n - 1, 1)) for i in range(n)]


def heat(panel: Axes, values: Any, texts: Sequence[Sequence[str]], *, low: float = 0.0) -> None:
    """A small matrix as coloured squares with a text in each."""
    high = values.max()
    panel.imshow(values, cmap=HEAT, vmin=low, vmax=high, aspect="auto")
    panel.grid(visible=False)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    for (i, j), value in np.ndenumerate(values):
        dark = (value - low) / (high - low) > 0.6
        panel.text(j, i, texts[i][j], ha="center", va="center", color="white" if dark else INK)
