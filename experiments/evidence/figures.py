"""The figure of the study: drawn from records, nothing is measured here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, figure, save
from experiments.evidence.plan import BIASED, CALIBRATED
from experiments.evidence.study import ADJUSTER, ALTERNATING, Record
from experiments.evidence.summary import NOMINAL, count, select
from experiments.evidence.worlds import STRENGTHS

__all__ = ["draw_evidence"]

_COLOURS = (ORANGE, BLUE)
_LINES = {ALTERNATING: "--", ADJUSTER: "-"}
BIASES = tuple(world.name for world in BIASED)


def draw_evidence(records: Sequence[Record], folder: Path) -> None:
    """Adoption against the strength of the bias, and reported against true gains."""
    chosen = select(records, part=("nothing", "something"), world=(CALIBRATED.name, *BIASES))
    estimators = [name for name in _LINES if select(chosen, estimator=name)]
    with figure(2, (11.4, 4.3)) as (canvas, panels):
        _draw_shares(panels[0], chosen, estimators)
        _draw_gains(panels[1], select(chosen, world=BIASES), estimators[-1])
        entries = panels[1].get_legend_handles_labels()
        canvas.legend(*entries, loc="outside right center", handletextpad=0.4)
        save(canvas, folder, "evidence")


def _draw_shares(panel: Axes, records: Sequence[Record], estimators: Sequence[str]) -> None:
    worlds = (CALIBRATED.name, *BIASES)
    sizes = sorted({r.n_rows for r in records})
    for i, (colour, n) in enumerate(zip(_COLOURS, sizes, strict=True)):
        for j, estimator in enumerate(estimators):
            groups = [select(records, world=w, n_rows=n, estimator=estimator) for w in worlds]
            shares = [count([r.adopted for r in group]) for group in groups]
            value = np.array([share.value for share in shares])
            bars = np.array([(s.value - s.low, s.high - s.value) for s in shares]).T.clip(min=0)
            x = np.arange(len(worlds)) + 0.06 * (2 * i + j - 1.5)
            panel.errorbar(x, value, bars, color=colour, lw=0, elinewidth=0.8, capsize=2)
            label = f"{estimator}, {n:,} rows"
            panel.plot(x, value, color=colour, marker="o", ms=4, ls=_LINES[estimator], label=label)
    panel.axhline(NOMINAL, color=INK, lw=0.9, ls=":", label=f"nominal level, {NOMINAL:.1%}")
    panel.set_xticks(range(len(worlds)), ["0\n(calibrated)", *(f"{s:g}" for s in STRENGTHS)])
    panel.set_xlabel("strength of the bias (log-odds)")
    panel.set_ylim(-0.02, 1.02)
    panel.yaxis.set_major_formatter(lambda y, _: f"{y:.0%}")
    panel.set_title("Share of data sets with an adopted adjustment")
    panel.legend(loc="upper left", handlelength=3, fontsize="small")


def _draw_gains(panel: Axes, records: Sequence[Record], estimator: str) -> None:
    panel.axline((0, 0), slope=1, color=GREY, lw=1, zorder=1, label="reported = true")
    panel.axhline(0, color=INK, lw=0.6)
    panel.axvline(0, color=INK, lw=0.6)
    for colour, n in zip(_COLOURS, sorted({r.n_rows for r in records}), strict=True):
        for adopted, fill in ((False, "none"), (True, colour)):
            chosen = select(records, n_rows=n, adopted=adopted, estimator=estimator)
            label = f"{n:,} rows, {'adopted' if adopted else 'not adopted'}"
            x, y = ([100 * getattr(r, name) for r in chosen] for name in ("best", "reported"))
            panel.scatter(x, y, 16, facecolors=fill, edgecolors=colour, alpha=0.75, label=label)
    panel.set_xlabel("true gain of the best setting (points of accuracy)")
    panel.set_ylabel("gain that the verdict reports (points)")
    panel.set_title(f"Reported against true gain, biased classifiers, {estimator}")
