"""The gains of all methods, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments._figures import BLUE, GREY, INK, ORANGE, figure, save

__all__ = ["draw_gains"]


def draw_gains(
    gains: Mapping[str, Mapping[str, np.ndarray]],
    paper: Mapping[str, Sequence[float]],
    folder: Path,
    name: str,
) -> None:
    """One panel per score, one line per method: a dot per seed, the mean, what the paper reports.

    Parameters
    ----------
    gains : mapping of mapping of ndarray
        Gains over the base in points, by score and by method, one entry per seed.
    paper : mapping of sequence of float
        The paper's gains, by score.
    folder, name
        Where to write, without ending.
    """
    methods = list(next(iter(gains.values())))
    size = (2.0 + 2.7 * len(gains), 0.9 + 0.38 * len(methods))
    with figure(len(gains), size, sharey=True) as (canvas, panels):
        for panel, (score, by_method) in zip(panels, gains.items(), strict=True):
            panel.axvline(0, color=INK, linewidth=0.8)
            for i, value in enumerate(paper.get(score, ())):
                label = "the paper's gains" if i == 0 and panel is panels[0] else None
                panel.axvline(value, color=ORANGE, linestyle=":", linewidth=1.4, label=label)
            for at, values in enumerate(by_method.values()):
                seeds = "one seed" if at == 0 and panel is panels[0] else None
                mean = "mean over the seeds" if at == 0 and panel is panels[0] else None
                spread = at + np.linspace(-0.16, 0.16, len(values)) if len(values) > 1 else [at]
                panel.plot(values, spread, "o", color=GREY, markersize=4, alpha=0.7, label=seeds)
                panel.plot(values.mean(), at, "D", color=BLUE, markersize=6.5, label=mean)
            panel.set(title=score, xlabel="gain over the base, points")
            panel.grid(visible=False, axis="y")
        panels[0].set_yticks(range(len(methods)), methods)
        panels[0].invert_yaxis()
        canvas.legend(loc="outside lower center", ncols=3)
        save(canvas, folder, name)
