"""Figures of the corruption study: drawn from records, nothing is measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, PURPLE, TEAL, figure, save
from experiments.blur.corruption.study import (
    BEST,
    CLEAN,
    MODELS,
    NAIVE,
    RENEWED,
    SAME,
    Design,
    select,
    summarise,
)

__all__ = ["draw_gains", "figure_name"]

_LOOK = {
    BEST: (GREY, "o", "CAN-best (tuned on test: an upper bound)"),
    NAIVE: (ORANGE, "o", "CAN-naive (alpha 1, depth 1)"),
    SAME: (BLUE, "o", "tuned on validation text corrupted like test"),
    CLEAN: (PURPLE, "s", "tuned on clean validation text"),
    RENEWED: (TEAL, "^", "the same, reference renewed without labels"),
}


def figure_name(kind: str) -> str:
    """File name of the figure of one kind of corruption."""
    return kind.replace(" ", "_")


def draw_gains(records: list[dict[str, Any]], design: Design, kind: str, folder: Path) -> None:
    """Gain on the rows in doubt against the rate, one panel a data set and classifier."""
    size = (1.4 + 3.6 * len(design.corpora), 7.4)
    with figure(1, size) as (canvas, _):
        canvas.clear()
        panels = canvas.subplots(len(MODELS), len(design.corpora), sharey="row", squeeze=False)
        for line, model in zip(panels, MODELS, strict=True):
            for panel, corpus in zip(line, design.corpora, strict=True):
                chosen = select(records, corpus=corpus, model=model, kind=kind)
                _draw_methods(panel, chosen)
                panel.set_title(f"{corpus}, {model}")
            _label_ticks(line[0])
            line[0].set_ylabel("gain on the rows in doubt (points)")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=len(design.corpora))
        save(canvas, folder, figure_name(kind))


def _draw_methods(panel: Axes, records: list[dict[str, Any]]) -> None:
    panel.axhline(0, color=INK, lw=0.8)
    rates = sorted({r["rate"] for r in records})
    for i, (method, (colour, marker, label)) in enumerate(_LOOK.items()):
        rows = [summarise(select(records, rate=rate, method=method)) for rate in rates]
        x = np.arange(len(rates)) + 0.06 * (i - 2)
        mean = np.array([row["gain_hard"] for row in rows])
        bars = [1.96 * row["se_hard"] for row in rows]
        style = {"color": colour, "marker": marker, "ms": 4.5, "lw": 1.6}
        panel.errorbar(x, mean, bars, elinewidth=0.9, label=label, **style)
    about = [summarise(select(records, rate=rate, method=NAIVE)) for rate in rates]
    texts = [
        f"{rate:.0%}\n{row['share']:.0f}\n{row['base']:.0f}"
        for rate, row in zip(rates, about, strict=True)
    ]
    panel.set_xticks(range(len(rates)), texts)


def _label_ticks(panel: Axes) -> None:
    """Say at the left what the lines below the axis are."""
    legend = "rate\nin doubt, %\naccuracy, %"
    offset = {"xytext": (-6, -5.5), "textcoords": "offset points"}
    panel.annotate(legend, (0, 0), xycoords="axes fraction", ha="right", va="top", **offset)
