"""The Markdown page of the geometry study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.geometry.study import CORNER, STILL, Fates, Rates

__all__ = ["write_page"]

PAGE = """\
# Geometry: what an iteration does, and where many lead

`python -m experiments.geometry`{quick}

## One iteration in two classes

![Three panels: the start, the columns divided, the rows divided](steps.png)

A row is a point [p, 1 − p]. Dividing the columns by their sums scales the two axes, and shrinks
most the class that the reference fills; dividing the rows by their sums carries every point back
to the line of sum 1 along its ray. The doubtful row [0.5, 0.5] moves towards the class that the
reference left empty. The paper's teaser **agrees**: b₀ = [.5, .5] and A₀ = [[0, 1]] give b₁ =
[{teaser[0]:g}, {teaser[1]:g}].

![New against old probability, and new probability against alpha](alpha.png)

As alpha falls to 0 the row is forgotten and b₁ tends to the prior, here [.5, .5]. As alpha grows
the curve becomes a step, and the largest entry of each reference column decides alone: b₁ tends to
[1, 0] where p / {peaks[0]:g} > (1 − p) / {peaks[1]:g}, that is, p > {threshold:.3f}.
([alpha.csv](alpha.csv))

## Convergence: two rows, two classes

{claim}

![Paths of b for alpha 1/2, 1 and 2](two_by_two.png)

At alpha = 1 the iteration is Sinkhorn's: it only scales rows and columns, so the difference of the
two rows' logits, logit p − logit p_A, never changes. For positive entries the matrix converges to
the one doubly stochastic matrix with that difference (Sinkhorn 1964). Hence

    b_d → [x, 1 − x],   logit x = (logit p − logit p_A) / 2,

which is no corner. On a grid of {grid_size} values for p and p_A from {grid_low:g} to
{grid_high:g}, b after {grid_depth} iterations differs from this by at most {grid_error:.1g}; the
largest probability reached is {grid_largest:.3f}. The distance to the limit shrinks by the factor
tanh²((logit p − logit p_A) / 4) with each iteration. ([two_by_two.csv](two_by_two.csv))

With a certain reference, as in the teaser, the limit is [1, 0], but the distance is 1 / (2d + 2):
after {certain_depth} iterations b = [{certain_first:.4f}, {certain_second:.4f}]. For other
exponents the difference of the logits is multiplied by alpha in each iteration. Below 1 it
vanishes and b_d tends to the prior; above 1 it grows without bound and b_d tends to a corner
whenever p_A ≠ p. So the statement describes alpha > 1, and alpha = 1 is the border.

![Distances to the limit](rates.png)

## Convergence: more classes

![Distances, rates and the largest probability](larger.png)

m rows and m classes, rows and prior uniform on the simplex.

- **alpha = 1** is Sinkhorn scaling to row sums 1 and column sums proportional to q; the limit is
  positive. The factor per iteration is σ₂², the squared second singular value of the limit matrix
  with its columns divided by the square roots of their sums. Over {n_rates} random problems the
  measured factor is within {rate_error:.3f} of it (median difference {rate_median:.4f}). Median
  σ₂²: {rate_medians}.
- **alpha < 1**: every row tends to the prior; alpha is the factor per iteration.
- **alpha > 1**: rows become sparse. Most end in a corner but not all: some stay split between
  classes, and a few have not settled.

After {depth} iterations (corner: largest probability above {corner:g}; still moving: the last step
changed the row by more than {still:g}; distance: total variation):

{fates}

All exponents are in [fates.csv](fates.csv), all rates in [rates.csv](rates.csv).
"""

_SAYS = "for alpha = 1, uniform q and 2×2, b_d converges to a unit vector whenever p_A ≠ p"
_HERE = (
    "**disagrees** where both rows are positive: the limit is not a corner; agrees where the "
    "reference is certain (p_A = 0 or 1), and for alpha > 1"
)


def write_page(
    *,
    teaser: np.ndarray,
    peaks: np.ndarray,
    grid: np.ndarray,
    grid_error: float,
    grid_largest: float,
    grid_depth: int,
    certain: np.ndarray,
    rates: Rates,
    fates: Fates,
    sizes: Sequence[int],
    alphas: np.ndarray,
    depth: int,
    quick: bool,
) -> str:
    """The page as text."""
    difference = np.abs(rates.measured - rates.predicted)
    medians = {int(m): np.median(rates.predicted[rates.m == m]) for m in np.unique(rates.m)}
    return PAGE.format(
        teaser=teaser,
        peaks=peaks,
        threshold=peaks[0] / peaks.sum(),
        claim=markdown_table(["the paper says", "here"], [[_SAYS, _HERE]]),
        grid_size=len(grid),
        grid_low=grid[0],
        grid_high=grid[-1],
        grid_depth=grid_depth,
        grid_error=grid_error,
        grid_largest=grid_largest,
        certain_depth=len(certain) - 1,
        certain_first=1 - certain[-1],
        certain_second=certain[-1],
        n_rates=len(rates.m),
        rate_error=difference.max(),
        rate_median=np.median(difference),
        rate_medians=", ".join(f"{x:.2f} at m = {m}" for m, x in medians.items()),
        depth=depth,
        corner=CORNER,
        still=STILL,
        fates=_fates_table(fates, sizes, alphas),
        quick=" (a quick run)" if quick else "",
    )


def _fates_table(fates: Fates, sizes: Sequence[int], alphas: np.ndarray) -> str:
    rows = []
    for i, m in enumerate(sizes):
        for j, alpha in enumerate(alphas):
            shares = (f"{x[i, j]:.0%}" for x in (fates.corner, fates.moving))
            distance, largest = fates.from_prior[i, j], fates.largest[i, j]
            rows.append([f"{m}", f"{alpha:g}", *shares, f"{largest:.2f}", f"{distance:.3f}"])
    header = ["m", "alpha", "in a corner", "still moving", "largest", "distance from q"]
    return markdown_table(header, rows)
