"""What the displays share: matplotlib, found when it is needed, and the palette."""

from __future__ import annotations

from typing import Any

__all__ = ["AFTER", "BEFORE", "BROKEN", "DEPTHS", "FIXED", "INK", "find_axes"]

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
