"""What the displays share: matplotlib, found when it is needed, the palette, and a base."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from altnorm._base.normalizer import FittedNormalizer
from altnorm.method.kinds import kind_of
from altnorm.report.evaluation import Applied, apply

BEFORE, AFTER, FIXED, BROKEN, INK = "#868b93", "#3f4fc0", "#0b7f7c", "#c2560a", "#1d2024"


class Display:
    """Base of the displays: `plot` finds the axes, `_draw` of a subclass draws on them.

    Where it was drawn is in `ax_` afterwards.
    """

    def plot(self, ax: Any = None) -> Self:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to; None makes new axes.

        Returns
        -------
        self : object
            The display, with `ax_`.
        """
        self.ax_ = find_axes(ax)
        self._draw(self.ax_)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def find_axes(ax: Any) -> Any:
    """Return the axes given, or new ones, without the frame's top and right."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need the extra `display`: pip install 'altnorm[display]'"
        ) from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


class Labelled(NamedTuple):
    """Labelled rows, and what a fitted transformer makes of them."""

    truth: np.ndarray
    applied: Applied


def apply_labelled(normalizer: FittedNormalizer, proba: Any, y: Any) -> Labelled:
    """Apply a fitted transformer to labelled rows."""
    kind, applied = kind_of(normalizer), apply(normalizer, proba)
    labels = kind.check_labels(y, applied.before.shape)
    return Labelled(kind.encode(labels, normalizer.classes_), applied)
