"""The figure of the study: drawn from cases, nothing is measured here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, TEAL, figure, save
from experiments.label_shift.study import METHODS, SHIFTS, Case
from experiments.label_shift.summary import gains, resampled

__all__ = ["draw_gains"]

_MARKS = {
    "adapt": (BLUE, "o"),
    "em": (ORANGE, "s"),
    "informed": (TEAL, "^"),
    "oracle": (GREY, "D"),
}
_REASONS = {
    "adapted": BLUE,
    "no_shift": GREY,
    "small_shift": ORANGE,
    "not_label_shift": TEAL,
}


def draw_gains(cases: Sequence[Case], folder: Path) -> None:
    """Mean gains by kind of shift, and adapting against the oracle, case by case."""
    chosen = resampled(cases)
    with figure(2, (11.4, 4.3)) as (canvas, panels):
        _draw_means(panels[0], chosen)
        _draw_cases(panels[1], chosen)
        save(canvas, folder, "gains")


def _draw_means(panel: Axes, cases: Sequence[Case]) -> None:
    for i, (name, (colour, mark)) in enumerate(_MARKS.items()):
        means = [
            np.mean(gains([c for c in cases if c.shift == shift], name) or [0]) for shift in SHIFTS
        ]
        x = np.arange(len(SHIFTS)) + 0.12 * (i - 1.5)
        panel.plot(x, means, color=colour, marker=mark, ls="", ms=7, label=METHODS[name])
    panel.axhline(0, color=INK, lw=0.8)
    panel.set_xticks(range(len(SHIFTS)), [shift.replace(" ", "\n") for shift in SHIFTS])
    panel.set_title("Mean gain over not adapting (points)")
    panel.legend(loc="upper left")


def _draw_cases(panel: Axes, cases: Sequence[Case]) -> None:
    for reason, colour in _REASONS.items():
        own = [c for c in cases if c.reason == reason]
        if own:
            x, y = gains(own, "oracle"), gains(own, "adapt")
            label = reason.replace("_", " ")
            panel.plot(x, y, color=colour, marker="o", ls="", ms=4, alpha=0.6, label=label)
    panel.axline((0, 0), slope=1, color=INK, lw=0.9, ls=":")
    panel.axhline(0, color=INK, lw=0.6)
    panel.set_xlabel("gain of the oracle that knows the balance (points)")
    panel.set_title("Gain of adapting, case by case (points)")
    panel.legend(loc="upper left")
