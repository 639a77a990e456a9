"""What the displays share: matplotlib, found when it is needed, and the palette."""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm._estimator import as_proba
from altnorm.display.measures import doubt

__all__ = ["AFTER", "BEFORE", "BROKEN", "DEPTHS", "FIXED", "INK", "before_and_after", "find_axes"]

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


def before_and_after(normalizer: Any, proba: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities before and after a fitted normalizer, and the ambiguity before."""
    several = normalizer.multilabel is not None
    before = as_proba(np.asarray(proba), normalizer.input, multilabel=several)
    after = np.asarray(normalizer.transform(proba))
    return before, after, doubt(before, multilabel=several, k_max=getattr(normalizer, "k_max", 10))
