"""What the displays share: matplotlib, found when it is needed, the palette, and a base."""

from __future__ import annotations

from typing import Any, Self

BEFORE, AFTER, FIXED, BROKEN, INK = "#8b9098", "#3f4fc0", "#0b7f7c", "#c2560a", "#1d2024"
DEPTHS = ("#3f4fc0", "#8f2fb0", "#c23b7c", "#cf5f38", "#a87800")


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
