"""The suite in one picture: each classifier's gain, with its interval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments._figures import BLUE, GREY, INK, ORANGE, figure, save
from experiments.suite.names import plain_name

METHODS = {"CAN as published": ORANGE, "Adjuster": BLUE}
_LABELS = {
    "CAN as published": "the paper's method, tuned as published",
    "Adjuster": "altnorm: adopted only on evidence",
}


def draw_gains(rows: list[dict[str, Any]], folder: Path) -> None:
    """Draw the single-label gains as dots with intervals, the largest gain on top."""
    rows = [row for row in rows if row["kind"] == "single-label" and row["method"] in METHODS]
    by_key = {(row["classifier"], row["method"]): row for row in rows}
    names = sorted(
        {row["classifier"] for row in rows},
        key=lambda name: tuple(by_key[name, method]["gain"] for method in reversed(METHODS)),
    )
    with figure(1, (9.2, 0.34 * len(names) + 1.6)) as (canvas, ax):
        ax.axvline(0, color=INK, linewidth=1)
        for method, colour in METHODS.items():
            shift = 0.14 if method == "Adjuster" else -0.14
            for place, name in enumerate(names):
                row = by_key[name, method]
                ends = [row["ci_low"], row["ci_high"]]
                ax.plot(ends, [place + shift] * 2, color=colour, linewidth=1.3, alpha=0.55)
                ax.plot(row["gain"], place + shift, "o", color=colour, markersize=5)
            ax.plot([], [], "o-", color=colour, label=_LABELS[method])
        ax.set_yticks(range(len(names)), [plain_name(name) for name in names], fontsize=10)
        ax.set_xscale("symlog", linthresh=2)
        ticks = [-5, -2, -1, 0, 1, 2, 5, 10, 20]
        ax.set_xticks(ticks, [f"{t:+d}" if t else "0" for t in ticks], fontsize=10)
        ax.set_xlabel("gain in test accuracy, points (bars: 95 % intervals)", fontsize=10)
        ax.grid(axis="y", visible=False)
        ax.spines["left"].set_color(GREY)
        # Above the rows: below them it would cover some.
        ax.legend(loc="lower center", bbox_to_anchor=(0.25, 1.0), ncols=2, fontsize=10)
        save(canvas, folder, "gains")
