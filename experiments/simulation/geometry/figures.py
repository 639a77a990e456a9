"""Figures of the geometry study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, figure, ordered, save
from experiments.simulation.geometry.study import Fates, Rates, Steps

__all__ = [
    "draw_alpha",
    "draw_larger",
    "draw_paths",
    "draw_powers",
    "draw_rates",
    "draw_steps",
]

_GAP = 0.1  # inches around panels that have their own vertical axis


def draw_steps(steps: Steps, folder: Path, name: str) -> None:
    """The start, the division of columns and the division of rows, as moves in the plane."""
    with figure(3, (11.4, 4.2), sharey=True) as (canvas, panels):
        for panel in panels:
            panel.plot([0, 1], [1, 0], color=GREY, lw=1.2, zorder=1)
            panel.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
            panel.set_xlabel("first class")
        panels[0].set_ylabel("second class")
        _draw_start(panels[0], steps.start)
        _draw_columns(panels[1], steps)
        _draw_rows(panels[2], steps)
        save(canvas, folder, name)


def _draw_start(panel: Axes, start: np.ndarray) -> None:
    panel.set_title("1  Rows start on the line of sum 1")
    _draw_points(panel, start)
    x, y = start[:-1].mean(axis=0)
    panel.text(x + 0.1, min(y + 0.08, 0.95), "reference A₀", color=BLUE, va="center")
    x, y = start[-1]
    panel.text(x + 0.05, y + 0.06, "doubtful row b₀", color=ORANGE, va="center")


def _draw_columns(panel: Axes, steps: Steps) -> None:
    panel.set_title("2  Columns are divided by their sums")
    sums = steps.start.sum(axis=0)
    panel.plot([0, 1 / sums[0]], [1 / sums[1], 0], color=INK, lw=1, ls=(0, (4, 3)), zorder=1)
    _draw_points(panel, steps.start, faint=True)
    _draw_arrows(panel, steps.start, steps.columns_divided)
    _draw_points(panel, steps.columns_divided)
    text = f"column sums {sums[0]:.1f} and {sums[1]:.1f}:\nthe crowded class\nshrinks more"
    panel.text(1.0, 0.98, text, ha="right", va="top")


def _draw_rows(panel: Axes, steps: Steps) -> None:
    panel.set_title("3  Rows are divided by their sums")
    for point in steps.rows_divided:
        panel.plot([0, point[0]], [0, point[1]], color=GREY, lw=0.8, ls=":", zorder=1)
    _draw_points(panel, steps.columns_divided, faint=True)
    _draw_arrows(panel, steps.columns_divided, steps.rows_divided)
    _draw_points(panel, steps.rows_divided)
    _draw_points(panel, steps.start[-1:], faint=True)
    x, y = steps.rows_divided[-1]
    panel.text(1.02, y + 0.16, f"b₁ = [{x:.3f}, {y:.3f}]", ha="right", color=ORANGE)


def _draw_points(panel: Axes, points: np.ndarray, *, faint: bool = False) -> None:
    colours = [BLUE] * (len(points) - 1) + [ORANGE]
    alpha = 0.28 if faint else 1
    panel.scatter(*points.T, c=colours, s=42, alpha=alpha, lw=0, zorder=3)


def _draw_arrows(panel: Axes, start: np.ndarray, end: np.ndarray) -> None:
    for i, (a, b) in enumerate(zip(start, end, strict=True)):
        colour = ORANGE if i == len(start) - 1 else BLUE
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1.1, "shrinkA": 4, "shrinkB": 4}
        panel.annotate("", b, xytext=a, arrowprops=arrow, zorder=2)


def draw_alpha(
    first: np.ndarray,
    curves: dict[float, np.ndarray],
    alphas: np.ndarray,
    rows: dict[float, np.ndarray],
    folder: Path,
) -> None:
    """New against old probability for some alphas, and against alpha for some rows."""
    with figure(2, (10, 4.2), sharey=True) as (canvas, panels):
        panels[0].plot([0, 1], [0, 1], color=GREY, lw=1.2, ls=(0, (4, 3)))
        slant = {"rotation": 45, "transform_rotates_text": True, "rotation_mode": "anchor"}
        panels[0].text(0.43, 0.35, "unchanged", color="#6F6F6F", **slant)
        for colour, (alpha, curve) in zip(ordered(len(curves)), curves.items(), strict=True):
            panels[0].plot(first, curve, color=colour, label=f"{alpha:g}")
        panels[0].legend(title="alpha", loc="lower right", alignment="left")
        panels[0].set(xlabel="first class in b₀", ylabel="first class in b₁", xlim=(0, 1))
        panels[0].set_title("One iteration as a curve")
        for colour, (start, curve) in zip(ordered(len(rows)), rows.items(), strict=True):
            panels[1].plot(alphas, curve, color=colour, label=f"{start:g}")
        panels[1].set(xscale="log", xlabel="alpha", ylim=(0, 1.02), xlim=(alphas[0], alphas[-1]))
        ticks = (0.1, 0.5, 1, 2, 5, 10, 35)
        panels[1].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panels[1].minorticks_off()
        panels[1].legend(title="first class in b₀", loc="lower left", alignment="left")
        panels[1].set_title("From the prior to a corner")
        save(canvas, folder, "alpha")


def draw_powers(curves: dict[float, np.ndarray], middle: np.ndarray, folder: Path) -> None:
    """Where the line of sum 1 goes when columns are divided; a dot is the row [.5, .5]."""
    with figure(1, (4.8, 4.4)) as (canvas, panel):
        panel.plot([0, 1], [1, 0], color=GREY, lw=1.2, label="start")
        lines = zip(ordered(len(curves)), curves.items(), middle, strict=True)
        for colour, (alpha, curve), point in lines:
            panel.plot(*curve.T, color=colour, label=f"{alpha:g}")
            panel.plot([0, point[0]], [0, point[1]], color=colour, lw=0.8, ls=":")
            panel.plot(*point, "o", color=colour, ms=5)
        panel.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        panel.set(xlabel="first class", ylabel="second class")
        panel.legend(title="alpha", loc="upper right", alignment="left")
        save(canvas, folder, "powers")


def draw_paths(
    starts: np.ndarray, reference: float, paths: dict[float, np.ndarray], folder: Path
) -> None:
    """Two rows, two classes: the path of b for alpha below, at and above 1."""
    titles = ("back to the prior", "an interior limit", "a corner, unless $p = p_A$")
    with figure(3, (12.4, 3.9), sharey=True) as (canvas, panels):
        for panel, title, (alpha, path) in zip(panels, titles, paths.items(), strict=True):
            for colour, start, line in zip(ordered(len(starts)), starts, path.T, strict=True):
                tied = np.isclose(start, reference)
                style = (0, (2, 1.5)) if tied else "-"
                name = f"{start:g}, as $p_A$" if tied else f"{start:g}"
                look = {"color": colour, "ls": style, "marker": "o", "ms": 2.6, "lw": 1.6}
                panel.plot(line, label=name, **look)
            panel.set_title(f"alpha = {alpha:g}: {title}")
            panel.set(xlabel="depth d", ylim=(-0.02, 1.02), xlim=(-0.2, len(path) - 0.8))
            panel.set_xticks(range(0, len(path), 2))
        panels[0].set_ylabel("first class in $b_d$")
        handles, labels = panels[0].get_legend_handles_labels()
        place = {"loc": "outside right center", "alignment": "left"}
        canvas.legend(handles[::-1], labels[::-1], title="first class\nin $b_0$: $p$", **place)
        save(canvas, folder, "two_by_two")


def draw_rates(
    distances: dict[str, np.ndarray], rates: dict[str, float], certain: np.ndarray, folder: Path
) -> None:
    """Distance to the limit: a geometric sequence, or 1/d where the reference is certain."""
    with figure(2, (10, 4)) as (canvas, panels):
        canvas.get_layout_engine().set(w_pad=_GAP)
        for colour, (name, distance) in zip(
            ordered(len(distances)), distances.items(), strict=True
        ):
            shown = distance > 1e-14
            depth = np.arange(len(distance))[shown]
            panels[0].semilogy(depth, distance[shown], "o", ms=3, color=colour, label=name)
            line = distance[2] * rates[name] ** (depth - 2.0)
            panels[0].semilogy(depth, line, lw=1, color=colour)
        panels[0].legend(title="$p$", loc="upper right", alignment="left", ncols=2)
        panels[0].set(xlabel="depth d", ylabel="distance to the limit", ylim=(1e-14, 1))
        panels[0].set_title("$p_A = 0.2$: geometric, at the predicted rate")
        depth = np.unique(np.geomspace(1, len(certain) - 1, 25).round().astype(int))
        panels[1].loglog(depth, certain[depth], "o", ms=3.5, color=ORANGE, label="b = [.5, .5]")
        panels[1].loglog(depth, 1 / (2 * depth + 2), lw=1, color=INK, label="1 / (2d + 2)")
        panels[1].legend(loc="lower left")
        panels[1].set(xlabel="depth d", ylabel="distance to [1, 0]")
        panels[1].set_title("$p_A = 0$: a corner, but slowly")
        save(canvas, folder, "rates")


def draw_larger(
    rates: Rates, fates: Fates, sizes: Sequence[int], alphas: np.ndarray, folder: Path
) -> None:
    """More classes: distances at alpha = 1, predicted rates, and the largest probability."""
    with figure(3, (12.4, 4)) as (canvas, panels):
        canvas.get_layout_engine().set(w_pad=_GAP)
        values = sorted(set(rates.m.tolist()))
        for colour, m in zip(ordered(len(values)), values, strict=True):
            of_size = rates.m == m
            distance = np.median(rates.distance[of_size], axis=0)
            shown = distance > 1e-14
            panels[0].semilogy(np.arange(len(distance))[shown], distance[shown], color=colour)
            panels[1].plot(
                rates.predicted[of_size], rates.measured[of_size], "o", ms=3.5, mew=0, color=colour
            )
        panels[0].set(xlabel="depth d", ylabel="median distance to the limit", ylim=(1e-14, 1))
        panels[0].set_title("alpha = 1: geometric")
        panels[1].axline((0, 0), slope=1, color=GREY, lw=1, ls=(0, (4, 3)), zorder=1)
        panels[1].set(xlabel="σ₂² of the limit matrix", ylabel="measured factor per iteration")
        panels[1].set_title("… at the predicted rate")
        for colour, m, largest in zip(ordered(len(sizes)), sizes, fates.largest, strict=True):
            panels[2].plot(alphas, largest, "o-", ms=3, color=colour, label=f"{m}")
        panels[2].set(xscale="log", xlabel="alpha", ylim=(0, 1.02))
        panels[2].set_xticks((0.25, 0.5, 1, 2, 4), ("0.25", "0.5", "1", "2", "4"))
        panels[2].minorticks_off()
        panels[2].set_title("Largest probability at depth 50")
        canvas.legend(
            *panels[2].get_legend_handles_labels(),
            title="classes m",
            loc="outside right center",
            alignment="left",
        )
        save(canvas, folder, "larger")
