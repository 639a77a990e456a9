"""Figures of the blur study: drawn from records, nothing is measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, PURPLE, TEAL, figure, ordered, save
from experiments.blur.study import (
    BEST,
    FOLDS,
    HONEST,
    NAIVE,
    OTHER,
    PAPER_SHARES,
    SAME,
    SIGMAS,
    Doubt,
    summarise,
)

__all__ = ["draw_gains", "draw_references"]

_COLOURS = {NAIVE: ORANGE, BEST: GREY, HONEST: BLUE}
_LABELS = {
    NAIVE: "CAN-naive (alpha 1, depth 1)",
    BEST: "CAN-best (tuned on the test half: an upper bound)",
    HONEST: "honestly tuned (on the validation half)",
}


def draw_gains(records: list[dict[str, Any]], doubt: dict[int, Doubt], folder: Path) -> None:
    """Rows in doubt, and gains on them and on all rows, against the blur."""
    with figure(3, (11.8, 4.1)) as (canvas, panels):
        _draw_shares(panels[0], records, doubt)
        _draw_methods(panels[1], records, "_hard")
        panels[1].set_title("Gain on the rows in doubt (points)")
        _draw_methods(panels[2], records, "")
        panels[2].set_title("Gain on all rows (points)")
        for panel in panels:
            panel.set_xticks(range(len(SIGMAS)), [str(sigma) for sigma in SIGMAS])
            panel.set_xlabel("blur σ")
        handles, labels = panels[1].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=3)
        save(canvas, folder, "gains")


def _draw_shares(panel: Axes, records: list[dict[str, Any]], doubt: dict[int, Doubt]) -> None:
    ours = [doubt[sigma].share for sigma in SIGMAS]
    x = range(len(SIGMAS))
    panel.plot(x, ours, color=BLUE, marker="o", ms=4)
    panel.plot(x, PAPER_SHARES, color=INK, marker="D", ms=4, ls=(0, (4, 3)), lw=1.2)
    base = [summarise(records, sigma, HONEST)["base"] for sigma in SIGMAS]
    panel.plot(x, base, color=TEAL, marker="o", ms=4)
    panel.text(3.05, 96, "in doubt, here", color=BLUE, ha="right")
    panel.text(2.5, 70, "in doubt, in the paper", color=INK, va="top")
    panel.text(3.15, 8, "accuracy", color=TEAL)
    panel.set(ylim=(-3, 104))
    panel.set_title("Rows in doubt, and accuracy (%)")


def _draw_methods(panel: Axes, records: list[dict[str, Any]], name: str) -> None:
    panel.axhline(0, color=INK, lw=0.8)
    for i, method in enumerate((BEST, NAIVE, HONEST)):
        colour, x = _COLOURS[method], np.arange(len(SIGMAS)) + 0.12 * (i - 1)
        rows = [summarise(records, sigma, method) for sigma in SIGMAS]
        mean = [row["gain" + name] for row in rows]
        bars = [1.96 * row["se" + name] for row in rows]
        panel.errorbar(
            x, mean, bars, color=colour, marker="o", ms=5, elinewidth=1.3, label=_LABELS[method]
        )
        for at, sigma in zip(x, SIGMAS, strict=True):
            chosen = [r for r in records if r["sigma"] == sigma and r["method"] == method]
            splits = [r["gain" + name] for r in chosen]
            panel.plot([at] * len(splits), splits, "_", color=colour, ms=7, alpha=0.6)


def draw_references(references: list[dict[str, Any]], folder: Path) -> None:
    """CAN-naive against the number and the source of the sure rows that serve as reference."""
    with figure(2, (11, 4.2), sharey=True) as (canvas, panels):
        for panel in panels:
            panel.axhline(0, color=INK, lw=0.8)
        _draw_sizes(panels[0], [r for r in references if r["source"] == OTHER])
        for source, colour, marker in (
            (SAME, PURPLE, "D"),
            (FOLDS, TEAL, "s"),
            (OTHER, ORANGE, "o"),
        ):
            full = [r for r in references if r["source"] == source and r["share"] == 1]
            gains = [[r["gain_hard"] for r in full if r["sigma"] == s] for s in SIGMAS]
            mean, spread = (np.array([f(g) for g in gains]) for f in (np.mean, np.std))
            label = f"{source}"
            panels[1].errorbar(
                range(len(SIGMAS)), mean, spread, color=colour, marker=marker, ms=5, label=label
            )
        panels[1].set_xticks(range(len(SIGMAS)), [str(sigma) for sigma in SIGMAS])
        panels[1].set_xlabel("blur σ")
        panels[1].set_title("Where the reference comes from")
        panels[1].legend(title="reference: sure rows of", loc="lower right", alignment="left")
        panels[0].set_ylabel("gain on the rows in doubt (points)")
        save(canvas, folder, "references")


def _draw_sizes(panel: Axes, records: list[dict[str, Any]]) -> None:
    for colour, sigma in zip(ordered(len(SIGMAS)), SIGMAS, strict=True):
        rows = [r for r in records if r["sigma"] == sigma]
        groups = [[r for r in rows if r["share"] == s] for s in sorted({r["share"] for r in rows})]
        n = [np.mean([r["n_reference"] for r in group]) for group in groups]
        gains = [[r["gain_hard"] for r in group] for group in groups]
        mean, spread = (np.array([f(g) for g in gains]) for f in (np.mean, np.std))
        panel.fill_between(n, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0)
        panel.plot(n, mean, color=colour, marker="o", ms=4, label=str(sigma))
    panel.set_xscale("log")
    panel.set_xticks((1, 10, 100, 1000), ("1", "10", "100", "1,000"))
    panel.minorticks_off()
    panel.set_xlabel("sure rows of other images (for 1,000 classes)")
    panel.set_title("How many serve as reference")
    panel.legend(title="blur σ", loc="lower left", alignment="left", ncols=2)
