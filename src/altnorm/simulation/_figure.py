"""The figure of the paper's Monte Carlo study, as the installed package can draw it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from altnorm.simulation._study import Estimate, Simulation, average


def draw_simulation(result: Simulation, path: Path, form: str = "png") -> None:
    """Draw mean gain and share of switched rows for each pair of ambiguity intervals.

    Parameters
    ----------
    result : Simulation
        The study.
    path : pathlib.Path
        Where to.
    form : {"png", "svg", "pdf"}
        Format of the file.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "The figure needs the extra `display`: pip install 'altnorm[display]'"
        ) from error
    canvas = Figure(figsize=(9.4, 3.9), layout="constrained")
    panels = canvas.subplots(1, 2)
    names = interval_names(result.design.edges)
    gain, switched = (average(x, keep=(1, 2)) for x in (result.gain, result.switched))
    _draw_pairs(panels[0], gain, names, "{:.2f}")
    _draw_pairs(panels[1], switched, names, "{:.1%}")
    panels[0].set_title("Mean gain δ", loc="left")
    panels[1].set_title("Share of switched rows Δ", loc="left")
    panels[0].set_ylabel("ambiguity of the reference $A_0$")
    canvas.savefig(path, dpi=150, format=form)


def interval_names(edges: Sequence[float]) -> list[str]:
    """Neighbouring edges as text, the last interval closed."""
    ends = [f"{edge:g}" for edge in edges]
    closing = [")"] * (len(ends) - 2) + ["]"]
    return [f"[{a}, {b}{c}" for a, b, c in zip(ends[:-1], ends[1:], closing, strict=True)]


def _draw_pairs(panel: Any, pairs: Estimate, names: Sequence[str], form: str) -> None:
    """A small matrix as coloured squares with a text in each."""
    top = pairs.mean.max()
    panel.imshow(pairs.mean, cmap="Blues", vmin=min(0.0, pairs.mean.min()), vmax=top * 1.15)
    panel.set_aspect("auto")
    panel.spines[:].set_visible(False)
    panel.tick_params(length=0)
    panel.set_xticks(range(len(names)), names)
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel("ambiguity of the row $b_0$")
    for i, means in enumerate(pairs.mean):
        for j, mean in enumerate(means):
            colour = "white" if mean > 0.6 * top else "black"
            panel.text(j, i, form.format(mean), ha="center", va="center", color=colour)
