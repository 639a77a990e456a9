"""Figures of the blur study: drawn from records, nothing is measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.ndimage import gaussian_filter

from experiments._figures import BLUE, GREY, INK, ORANGE, PURPLE, TEAL, figure, ordered, save
from experiments.blur import published
from experiments.blur.study import (
    BEST,
    FOLDS,
    HONEST,
    NAIVE,
    OTHER,
    PAPER_SHARES,
    SAME,
    SIGMAS,
    summarise,
)

__all__ = ["draw_example", "draw_gains", "draw_published", "draw_references"]

_GAIN_TITLES = ("Gain on the rows in doubt (points)", "Gain on all rows (points)")
_COLOURS = {NAIVE: ORANGE, BEST: GREY, HONEST: BLUE}
_LABELS = {
    NAIVE: "CAN-naive (alpha 1, depth 1)",
    BEST: "CAN-best (tuned on the test half: an upper bound)",
    HONEST: "honestly tuned (on the validation half)",
}


def draw_gains(records: list[dict[str, Any]], doubt: dict[int, float], folder: Path) -> None:
    """Rows in doubt, and gains on them and on all rows, against the blur."""
    with figure(3, (11.8, 4.1)) as (canvas, panels):
        _draw_shares(panels[0], records, doubt)
        _draw_methods(panels[1], records, "_hard")
        panels[1].set_title(_GAIN_TITLES[0])
        _draw_methods(panels[2], records, "")
        panels[2].set_title(_GAIN_TITLES[1])
        for panel in panels:
            panel.set_xticks(range(len(SIGMAS)), [str(sigma) for sigma in SIGMAS])
            panel.set_xlabel("blur σ")
        handles, labels = panels[1].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=3)
        save(canvas, folder, "gains")


def _draw_shares(panel: Axes, records: list[dict[str, Any]], doubt: dict[int, float]) -> None:
    ours = [doubt[sigma] for sigma in SIGMAS]
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


def draw_published(records: list[dict[str, Any]], folder: Path) -> None:
    """Gains as the paper measures them: the sure rest of the same images is the reference."""
    looks = {
        published.BEST: (GREY, "D", "best alpha and depth on these images"),
        published.OWN: (PURPLE, "s", "the paper's alpha and depth"),
        published.NAIVE: (ORANGE, "o", "alpha 1, depth 1"),
    }
    with figure(2, (9.6, 3.9)) as (canvas, panels):
        for panel, name, title in zip(panels, ("_hard", ""), _GAIN_TITLES, strict=True):
            panel.axhline(0, color=INK, lw=0.8)
            for i, (method, (colour, marker, label)) in enumerate(looks.items()):
                rows = [r for r in records if r["method"] == method]
                x = np.arange(len(rows)) + 0.1 * (i - 1)
                bars = [1.96 * r["se" + name] for r in rows]
                style = {"color": colour, "marker": marker, "ms": 5, "elinewidth": 1.3}
                panel.errorbar(x, [r["gain" + name] for r in rows], bars, label=label, **style)
            panel.set_xticks(range(len(SIGMAS)), [str(sigma) for sigma in SIGMAS])
            panel.set_xlabel("blur σ")
            panel.set_title(title)
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        save(canvas, folder, "published")


def draw_example(folder: Path) -> None:
    """A made-up picture at each blur."""
    picture = paint_scene(224)
    with figure(len(SIGMAS), (11.4, 2.3)) as (canvas, panels):
        for panel, sigma in zip(panels, SIGMAS, strict=True):
            blurred = gaussian_filter(picture, (sigma, sigma, 0), mode="nearest")
            panel.imshow(np.clip(blurred, 0, 1))
            panel.set_axis_off()
            panel.set_title(f"σ = {sigma}")
        save(canvas, folder, "example")


def paint_scene(size: int) -> np.ndarray:
    """A house with a tree under the sun, of shape (size, size, 3) with values from 0 to 1."""
    y, x = np.mgrid[0:size, 0:size] / size
    scene = np.stack([0.55 + 0.3 * y, 0.75 + 0.15 * y, 0.95 + 0 * y], axis=2)
    scene[y > 0.72 + 0.02 * np.sin(9 * x)] = (0.36, 0.55, 0.25)
    stripes = (0.5 + 0.5 * np.sign(np.sin(120 * y)))[..., None] * 0.06
    wall = (abs(x - 0.36) < 0.2) & (y > 0.45) & (y < 0.8)
    scene[wall] = (np.array([0.80, 0.70, 0.58]) - stripes)[wall]
    scene[(abs(x - 0.36) < 1.05 * (y - 0.22)) & (y > 0.22) & (y < 0.45)] = (0.62, 0.22, 0.16)
    for left, top, width, height, colour in _PARTS:
        part = (x >= left) & (x < left + width) & (y >= top) & (y < top + height)
        scene[part] = colour
    for cx, cy in ((0.78, 0.42), (0.71, 0.5), (0.85, 0.5), (0.78, 0.52)):
        scene[(x - cx) ** 2 + (y - cy) ** 2 < 0.1**2] = (0.16, 0.38, 0.17)
    scene[(x - 0.86) ** 2 + (y - 0.14) ** 2 < 0.07**2] = (0.98, 0.85, 0.35)
    return scene


# Of the picture: left, top, width, height and colour of the door, the windows and the trunk.
_PARTS = (
    (0.32, 0.62, 0.09, 0.18, (0.35, 0.20, 0.12)),
    (0.20, 0.54, 0.08, 0.09, (0.18, 0.26, 0.36)),
    (0.45, 0.54, 0.08, 0.09, (0.18, 0.26, 0.36)),
    (0.76, 0.50, 0.045, 0.31, (0.38, 0.26, 0.16)),
)


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
