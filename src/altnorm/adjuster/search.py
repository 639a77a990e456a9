"""The search for a setting of alternating normalization: coarse first, then near the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from altnorm.adjuster.attribution import Contribution
from altnorm.adjuster.evidence import best_setting
from altnorm.adjuster.settings import Grid, Setting

COARSE = 3  # every third exponent is tried first
BEST = 3  # near so many of the best exponents the others are tried
DEEPER = 5  # so many of the best exponents are iterated further

Tried = list[tuple[Setting, Contribution]]


class SearchPlan(NamedTuple):
    """Which settings to try: whole grids at depth 1, and some settings deeper."""

    alphas: tuple[float, ...]
    deeper: tuple[Setting, ...]


def plan_search(grid: Grid, try_first: Callable[[Sequence[float]], Tried]) -> SearchPlan:
    """Search depth 1 coarsely, then near the best, and say what is worth iterating further.

    Scores change slowly with the exponent: every third is tried, and those on the menu, then the
    neighbours of the best.
    Deeper iterations mostly act like another exponent, so only the best exponents, each with the
    threshold, reference and smoothing that suit it best, are worth iterating further.

    Parameters
    ----------
    grid : Grid
        Settings to choose from.
    try_first : callable
        Tries the grid at depth 1 for some exponents.

    Returns
    -------
    SearchPlan
        What was tried at depth 1, and what to try deeper.
    """
    order = sorted({float(alpha) for alpha in grid.alphas})
    # Those of the menu, whatever the best turns out to be: the evidence rests on all of it. And the
    # last one, as the best may lie at the end of the grid.
    menu = {order.index(float(alpha)) for alpha in grid.menu().alphas}
    coarse = sorted({*range(0, len(order), COARSE), len(order) - 1, *menu})
    tried = try_first([order[i] for i in coarse])
    best = _best_by_alpha(tried, BEST)
    near = {
        j
        for i in coarse
        if order[i] in best
        for j in range(max(0, i - COARSE + 1), min(len(order), i + COARSE))
    }
    tried += try_first([order[i] for i in sorted(near - set(coarse))])
    alphas = tuple(sorted({setting.alpha for setting, _ in tried}))
    deeper = tuple(_best_by_alpha(tried, DEEPER).values()) if max(grid.depths) > 1 else ()
    return SearchPlan(alphas, deeper)


def _best_by_alpha(tried: Tried, n: int) -> dict[float, Setting]:
    """The best setting of each of the `n` best exponents."""
    left, found = list(tried), dict[float, Setting]()
    while left and len(found) < n:
        settings, contributions = zip(*left, strict=True)
        gains = np.array([one.gain for one in contributions])
        top = settings[best_setting(gains, [c.n_changed for c in contributions], settings)]
        found[top.alpha] = top
        left = [pair for pair in left if pair[0].alpha != top.alpha]
    return found
