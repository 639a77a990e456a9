"""The figure of the study: drawn from records, nothing is measured here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, figure, save
from experiments.evidence.study import PLAIN, Record
from experiments.evidence.summary import NOMINAL, count, select
from experiments.evidence.worlds import BIASED, CALIBRATED, STRENGTHS

__all__ = ["draw_evidence"]

_COLOURS = (ORANGE, BLUE)


def draw_evidence(records: Sequence[Record], folder: Path) -> None:
    """Adoption against the strength of the bias, and reported against true gains."""
    plain = select(records, variant=PLAIN)
    sizes = sorted({r.n_rows for r in plain})
    with figure(2, (11.4, 4.3)) as (canvas, panels):
        _draw_shares(panels[0], plain, sizes)
        _draw_gains(panels[1], select(plain, world=tuple(w.name for w in BIASED)), sizes)
        entries = panels[1].get_legend_handles_labels()
        canvas.legend(*entries, loc="outside right center", handletextpad=0.4)
        save(canvas, folder, "evidence")


def _draw_shares(panel: Axes, records: Sequence[Record], sizes: Sequence[int]) -> None:
    worlds = (CALIBRATED, *BIASED)
    for i, (colour, n) in enumerate(zip(_COLOURS, sizes, strict=True)):
        shares = [
            count([r.adopted for r in select(records, world=w.name, n_rows=n)]) for w in worlds
        ]
        value = np.array([share.value for share in shares])
        bars = np.array([(s.value - s.low, s.high - s.value) for s in shares]).T.clip(min=0)
        x = np.arange(len(worlds)) + 0.08 * (2 * i - 1)
        label = f"{n:,} validation rows"
        panel.errorbar(x, value, bars, color=colour, lw=1.6, elinewidth=1, capsize=2)
        panel.plot(x, value, color=colour, marker="o", ms=5, lw=1.6, label=label)
    panel.axhline(NOMINAL, color=INK, lw=0.9, ls=":", label=f"nominal level, {NOMINAL:.1%}")
    panel.set_xticks(range(len(worlds)), ["0\n(no effect)", *(f"{s:g}" for s in STRENGTHS)])
    panel.set_xlabel("strength of the bias (log-odds)")
    panel.set_ylim(-0.02, 1.02)
    panel.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    panel.set_title("Share of data sets with an adopted adjustment")
    panel.legend(loc="upper left")


def _draw_gains(panel: Axes, records: Sequence[Record], sizes: Sequence[int]) -> None:
    panel.axline((0, 0), slope=1, color=GREY, lw=1, zorder=1, label="reported = true")
    panel.axhline(0, color=INK, lw=0.6)
    panel.axvline(0, color=INK, lw=0.6)
    for colour, n in zip(_COLOURS, sizes, strict=True):
        for adopted, fill in ((False, "none"), (True, colour)):
            chosen = select(records, n_rows=n, adopted=adopted)
            told = f"{n:,} rows, {'adopted' if adopted else 'not adopted'}"
            x, y = ([100 * getattr(r, name) for r in chosen] for name in ("best", "reported"))
            panel.scatter(x, y, 16, facecolors=fill, edgecolors=colour, alpha=0.75, label=told)
    panel.set_xlabel("true gain of the best setting (points of accuracy)")
    panel.set_ylabel("gain that the verdict reports (points)")
    panel.set_title("Reported against true gain, biased classifiers")
