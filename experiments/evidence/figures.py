"""The figure of the study: drawn from records, nothing is measured here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, figure, save
from experiments.evidence.plan import INTERVAL_CASES, NOTHING, SIZES
from experiments.evidence.summary import Record, count, of_cases, select

__all__ = ["draw_evidence"]

_WORLDS = ("bias 1", "bias 2", "confused pairs")
_LOOKS = ((ORANGE, "s"), (BLUE, "^"), (INK, "D"))
_SHOWN = 40  # data sets of each world and size: more would hide each other


def draw_evidence(worlds: Sequence[Record], intervals: Sequence[Record], folder: Path) -> None:
    """Adoption against the number of rows, and reported against true gains."""
    with figure(2, (11.4, 4.3)) as (canvas, panels):
        _draw_shares(panels[0], worlds)
        _draw_gains(panels[1], intervals)
        save(canvas, folder, "evidence")


def _draw_shares(panel: Axes, records: Sequence[Record]) -> None:
    for world, (colour, mark) in zip(_WORLDS, _LOOKS, strict=True):
        groups = [select(records, world=world, n_rows=n, purpose="accuracy") for n in SIZES]
        known = [
            (n, count([r["adopted"] for r in g])) for n, g in zip(SIZES, groups, strict=True) if g
        ]
        if not known:
            continue
        x = [n for n, _ in known]
        value = np.array([share.value for _, share in known])
        bars = np.array([(s.value - s.low, s.high - s.value) for _, s in known]).T.clip(min=0)
        panel.errorbar(
            x, value, bars, color=colour, lw=1, elinewidth=0.8, capsize=2, marker=mark, label=world
        )
    nothing = of_cases(records, NOTHING)
    if nothing:
        share = np.mean([r["adopted"] for r in nothing])
        panel.axhline(share, color=INK, lw=0.9, ls=":", label="nothing to gain, all such worlds")
    panel.set_xlabel("validation rows")
    panel.set_ylim(-0.02, 1.02)
    panel.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    panel.set_title("Share of data sets with an adopted adjustment")
    panel.legend(loc="center right", fontsize="small")


def _draw_gains(panel: Axes, records: Sequence[Record]) -> None:
    panel.axline((0, 0), slope=1, color=GREY, lw=1, zorder=1, label="reported = true")
    panel.axhline(0, color=INK, lw=0.6)
    panel.axvline(0, color=INK, lw=0.6)
    few = [r for case in INTERVAL_CASES for r in of_cases(records, [case])[:_SHOWN]]
    for adopted, fill in ((False, "none"), (True, BLUE)):
        chosen = select(few, adopted=adopted)
        x, y = ([r[name] for r in chosen] for name in ("true", "reported"))
        label = "adopted" if adopted else "not adopted"
        panel.scatter(x, y, 14, facecolors=fill, edgecolors=BLUE, alpha=0.6, label=label)
    panel.set_xlabel("true gain of the candidate (points of accuracy)")
    panel.set_ylabel("gain that the verdict reports (points)")
    panel.set_title("Reported against true gain")
    panel.legend(loc="upper left", fontsize="small")
