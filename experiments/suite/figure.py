"""The suite in one picture: each classifier's gain, as published and ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments._figures import BLUE, GREY, ORANGE, figure, save

METHODS = ("CAN as published", "CAN")


def draw_gains(rows: list[dict[str, Any]], folder: Path) -> None:
    """Draw the single-label gains as dots, worst published result first."""
    rows = [row for row in rows if row["kind"] == "single-label"]
    gain = {(row["classifier"], row["method"]): row["gain"] for row in rows}
    names = sorted(
        {row["classifier"] for row in rows}, key=lambda name: gain[name, "CAN as published"]
    )
    with figure(1, (8.4, 4.6)) as (canvas, ax):
        ax.axvline(0, color=GREY, linewidth=1)
        for place, name in enumerate(names):
            published, ours = (gain[name, method] for method in METHODS)
            ax.plot([published, ours], [place, place], color=GREY, linewidth=1.2, zorder=1)
            ax.plot(published, place, "o", color=ORANGE, zorder=2)
            ax.plot(ours, place, "o", color=BLUE, zorder=3)
        ax.plot([], [], "o", color=ORANGE, label="as published: best setting on validation data")
        ax.plot([], [], "o", color=BLUE, label="altnorm: adopted only on evidence")
        ax.set_yticks(range(len(names)), names, fontsize=8)
        ax.set_xlabel("gain in test accuracy, points")
        ax.grid(axis="y", visible=False)
        ax.legend(loc="lower right")
        save(canvas, folder, "gains")
