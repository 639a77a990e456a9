"""Figures of evidence on matplotlib's axes; what they show is computed elsewhere."""

from __future__ import annotations

from typing import Any

from altnorm._base.words import Figures
from altnorm.evidence.promise import Coverage, percent_of

BEFORE, AFTER, FIXED, BROKEN, INK = "#868b93", "#3f4fc0", "#0b7f7c", "#c2560a", "#1d2024"
LOW = 1.8  # inches that a figure of one line is high


def find_axes(ax: Any = None, *, height: float | None = None) -> Any:
    """Return axes without a frame, new ones if none are given; needs the extra `display`."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Figures need the extra `display`: pip install 'altnorm[display]'"
        ) from error
    if ax is None:
        size = None if height is None else (plt.rcParams["figure.figsize"][0], height)
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_coverage(
    ax: Any,
    before: Coverage,
    after: Coverage | None = None,
    *,
    target: float | None = None,
    share: float | None = None,
) -> None:
    """Draw the accuracy among the rows decided against their share, with its interval.

    A target is a line; the share that is decided is a point on the last curve.
    """
    curves = [(before, "before", BEFORE), *([] if after is None else [(after, "after", AFTER)])]
    for curve, name, colour in curves:
        last = curve.thinned(curve.at(share or 0))
        ax.plot(last.share, last.accuracy, color=colour, label=name)
    ax.fill_between(last.share, last.lower(), last.upper(), color=AFTER, alpha=0.15, lw=0)
    if target is not None:
        label = f"target {percent_of(target)}"
        ax.axhline(target, color=INK, linestyle=":", linewidth=1, label=label)
    if share:
        k = last.at(share)
        ax.plot(last.share[k], last.accuracy[k], "o", color=FIXED, label="decided")
    lowest = min(curve.accuracy[-1] for curve, *_ in curves)
    ax.set(xlim=(0, 1), ylim=(max(0, 2 * lowest - 1), 1))
    ax.set_xlabel("share of the rows decided")
    ax.set_ylabel("share of them that is right")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.legend(frameon=False)


def draw_gain(ax: Any, figures: Figures, title: str, note: str) -> None:
    """Draw a change of a score as a point with its interval, beside a line at no change."""
    gain, low, high = figures.numbers
    colour = {"better": FIXED, "worse": BROKEN, "unclear": BEFORE}[figures.better]
    ax.axvline(0, color=INK, linestyle=":", linewidth=1)
    ax.plot([low, high], [0, 0], color=colour, linewidth=3, solid_capstyle="round")
    ax.plot(gain, 0, "o", color=colour, markersize=9)
    ax.set_title(title, loc="left")
    unit = f" in {figures.unit}" if figures.unit else ""
    lower = ", lower is better" if figures.lower else ""
    ax.set_xlabel(f"change of {figures.name}{unit}, with its 95% interval{lower}\n{note}".rstrip())
    ax.set(yticks=[], ylim=(-1, 1))
    ax.spines["left"].set_visible(False)
