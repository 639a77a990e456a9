"""Draw the picture of the idea: ``python -m experiments.demo_data.idea``.

One query of the demo, before and after: the classifier is in doubt between two intents, and one of
them it predicts far more often than it occurs.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from altnorm import Adjuster, load_demo
from altnorm.io.datasets import Demo
from experiments._figures import BLUE, GREY, INK, ORANGE, figure, save

QUERY = "how do i report that i lost my card"
SHOWN = 3


class Idea(NamedTuple):
    """What the picture shows."""

    query: str
    names: list[str]
    before: np.ndarray
    after: np.ndarray
    overuse: float  # how many times as often as it occurs the favourite is predicted


def find_idea(data: Demo, query: str = QUERY) -> Idea:
    """Adjust the demo's predictions and look one query up."""
    validation, test = data.validation, data.test
    adjuster = Adjuster().fit(validation.proba, validation.codes)
    row = list(data.queries).index(query)
    before = test.proba[row]
    after = adjuster.transform(test.proba[row : row + 1])[0]
    top = np.argsort(-np.maximum(before, after))[:SHOWN]
    top = top[np.argsort(-before[top])]
    favourite = before.argmax()
    predicted = (validation.proba.argmax(axis=1) == favourite).mean()
    occurs = (validation.codes == favourite).mean()
    names = [str(test.classes[j]).replace("_", " ") for j in top]
    return Idea(query, names, before[top], after[top], float(predicted / occurs))


def draw_idea(idea: Idea, folder: Path) -> None:
    """Draw two panels of bars with one order of the classes."""
    with figure(2, (6.2, 2.5)) as (canvas, panels):
        for panel, values, title in (
            (panels[0], idea.before, "what the classifier says"),
            (panels[1], idea.after, "after altnorm"),
        ):
            places = np.arange(len(idea.names))[::-1]
            top = values.argmax()
            colours = [
                (ORANGE, BLUE)[title.startswith("after")] if i == top else GREY
                for i in range(len(values))
            ]
            panel.barh(places, values, color=colours, height=0.62)
            panel.set_yticks(places, idea.names, fontsize=12)
            panel.set_xlim(0, 1.12)
            panel.set_xticks([])
            panel.grid(visible=False)
            panel.spines["bottom"].set_visible(False)
            for place, value in zip(places, values, strict=True):
                panel.text(value + 0.02, place, _share(value), va="center", fontsize=12, color=INK)
            panel.set_title(title, fontsize=12)
        panels[1].set_yticklabels([])
        canvas.suptitle(f"“{idea.query}”", fontsize=14, x=0.01, ha="left")
        save(canvas, folder, "idea")


def _share(value: float) -> str:
    return f"{value:.0%}" if value >= 0.01 else "under 1%"


def main() -> None:
    """Write ``docs/images/idea.png``."""
    idea = find_idea(load_demo())
    draw_idea(idea, Path(__file__).parents[2] / "docs" / "images")
    print(idea)


if __name__ == "__main__":
    main()
