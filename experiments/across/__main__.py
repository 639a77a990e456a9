"""``python -m experiments.across``: from the numbers of the other studies, in a moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments._figures import BLUE, INK, ORANGE, figure, save
from experiments._output import fill_page, markdown_table, parse_arguments
from experiments.across import study
from experiments.across.study import METHODS, PAPER_DEPTHS, Point

PAGE = Path(__file__).parent / "results" / "README.md"
LOOK = {METHODS[0]: (ORANGE, "s"), METHODS[1]: (BLUE, "o")}


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("across", "Many classes, good classifiers, small depths?", argv)
    points = study.read_points()
    draw(points, arguments.output)
    tables = {"trends": trends_table(points), "depths": depths_table()}
    fill_page(PAGE, arguments.output, tables)
    print(f"results in {arguments.output}")


def trends_table(points: Sequence[Point]) -> str:
    """Rank correlations of the gain, one line per method."""
    rows = []
    for method in METHODS:
        chosen = [p for p in points if p.method == method]
        found = [
            study.trend(chosen, lambda p: p.classes),
            study.trend(chosen, lambda p: p.base),
        ]
        cells = [f"{t.rho:+.2f} [{t.low:+.2f}, {t.high:+.2f}]" for t in found]
        rows.append([method, str(found[0].n), *cells])
    header = ["gain of", "classifiers", "with the number of classes", "with the base accuracy"]
    return markdown_table(header, rows)


def depths_table() -> str:
    """How many of the chosen settings have depth 1 or 2."""
    here, theirs = study.chosen_depths(), dict(PAPER_DEPTHS)
    for depths in (here, theirs):
        depths["all"] = [d for group in depths.values() for d in group]
    rows = [
        [name, _share(ours), _share(theirs[name]) if name in theirs else ""]
        for name, ours in here.items()
    ]
    return markdown_table(["settings with d ≤ 2", "here", "in the paper's tables"], rows)


def _share(depths: Sequence[int]) -> str:
    small = sum(depth <= 2 for depth in depths)
    return f"{small} of {len(depths)} ({small / len(depths):.0%})"


def draw(points: Sequence[Point], folder: Path) -> None:
    """Gain of each classifier against classes and accuracy."""
    with figure(2, (10.4, 4.2), sharey=True) as (canvas, panels):
        for method, (colour, marker) in LOOK.items():
            chosen = [p for p in points if p.method == method]
            gain = np.array([p.gain for p in chosen])
            bars = np.array([[p.gain - p.ci_low, p.ci_high - p.gain] for p in chosen]).T
            style = {"fmt": marker, "ms": 5, "color": colour, "elinewidth": 0.8, "alpha": 0.85}
            shift = 1.04 if method == METHODS[0] else 0.96
            x = np.array([p.classes for p in chosen]) * shift
            panels[0].errorbar(x, gain, bars, label=method, **style)
            panels[1].errorbar([p.base for p in chosen], gain, bars, **style)
        for panel in panels:
            panel.axhline(0, color=INK, lw=0.8)
        ticks = (3, 10, 30, 100, 300, 1000)
        panels[0].set(xscale="log", xlabel="classes", ylabel="gain (accuracy points)")
        panels[0].set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        panels[0].minorticks_off()
        panels[1].set_xlabel("accuracy before (%)")
        panels[0].set_title("Do many classes help?")
        panels[1].set_title("Do better classifiers gain less?")
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        save(canvas, folder, "trends")


if __name__ == "__main__":
    main()
