"""The Markdown page of the simulation: sentences around numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from altnorm.simulation import Design, Estimate, Simulation, average
from experiments._output import interval_labels, markdown_table
from experiments.simulation import claims
from experiments.simulation.extensions import Depths, Variant
from experiments.simulation.rows import RARE, TOP, RowGains

__all__ = ["write_page"]

PAGE = """\
# Simulation: what one iteration does to random rows

`python -m experiments.simulation`: {n_adjusted:,} adjusted rows in {seconds:.0f} s with
{jobs} workers.{quick}

For each number of classes m in {{{sizes}}}
and each pair of ambiguity intervals, {n_draws} times: a reference A₀ of m − 1 rows, a prior q, and
{n_rows} rows b₀. For each alpha in {{{alphas}}}
one iteration gives b₁. The gain of a row is δ = q·(b₁ − b₀) / q·b₀; Δ is the share of rows with
δ > 0 whose largest class changed.

![Mean gain and share of switched rows for each pair of ambiguity intervals](heatmaps.png)

Means over all m, alpha, draws and rows, ± 1.96 standard errors (over draws: the rows of a draw
share their reference and prior). Every combination of m, intervals and alpha is in
[results.csv](results.csv).

## The paper's claims

{claims}

**(a)** {text_a}

**(b)** {text_b}

{rows}

(m in {{{depth_sizes}}}, {depth_draws} draws, alpha in {{{depth_alphas}}}; no test.)

**(c)** {text_c}

## What claim (b) depends on

The paper's description that we work from does not say how rows and priors were drawn. Mean δ by the
ambiguity of b₀, averaged over that of A₀, when something is changed; the last two columns ask
whether very ambiguous rows are surely the largest.

{variants}

"Ratio of means" divides the mean of q·b₁ by the mean of q·b₀ in each cell instead of averaging the
ratios of single rows. From the fourth line on: m in {{{variant_sizes}}}, {variant_draws} draws.
In all these ways of drawing, claim (b) can be read off the count Δ. For the gain it can be read off
the ratio of means and the median row, but in none of the other lines off the mean of δ.

## What the paper did not show

**Number of classes.** {text_size}

![Both metrics against the number of classes](by_size.png)

**Exponent.** {text_alpha}

![Both metrics against alpha](by_alpha.png)

**Depth.** m in {{{depth_sizes}}}, {depth_draws} draws; all combinations in [depth.csv](depth.csv).

{depths}

![Both metrics against the depth](by_depth.png)

## How the draws are made

- A row: a direction p, uniform on the simplex, and a target ambiguity, uniform in the interval. The
  row is p^s, divided by its sum, with s such that its ambiguity is the target. Tempering keeps the
  order of the classes, and the entropy of the k largest falls strictly with s, from 1 at s = 0 to 0
  as s grows; so does the maximum over k, and there is exactly one such s. Bisection finds it.
  Nothing is rejected, and every interval is filled for every m.
- The prior: uniform on the simplex, one for each draw. (If q were the uniform vector, every δ would
  be exactly 0.)
- Each combination of m and intervals has its own stream of random numbers (seed {seed}), so the
  numbers do not depend on the number of workers.
- "Surely" means simultaneous 95 % confidence intervals (Bonferroni). For (c): a two-way analysis of
  variance of the table of means, drawn again 20,000 times from its standard errors.
"""


def write_page(
    result: Simulation,
    depths: Depths,
    others: Sequence[Variant],
    variant_design: Design,
    rows: RowGains,
    sharpened: float,
    *,
    seconds: float,
    jobs: int,
    quick: bool,
) -> str:
    """The page as text."""
    design = result.design
    gain, switched = (average(x, keep=(1, 2)) for x in (result.gain, result.switched))
    return PAGE.format(
        n_adjusted=design.n_adjusted,
        seconds=seconds,
        jobs=jobs,
        quick="\n\n**A quick run: too small to judge the claims.**" if quick else "",
        sizes=_listed(design.sizes),
        alphas=_listed(design.alphas),
        n_draws=design.n_draws,
        n_rows=design.n_rows,
        seed=design.random_state,
        claims=_claims_table(result, gain, switched),
        text_a=_text_a(result, gain, sharpened),
        text_b=_text_b(gain, switched, rows),
        rows=_rows_table(rows, interval_labels(design.edges)),
        text_c=_text_c(result),
        variants=_variants_table(others, interval_labels(design.edges)),
        variant_sizes=_listed(variant_design.sizes),
        variant_draws=variant_design.n_draws,
        text_size=_text_size(result),
        text_alpha=_text_alpha(result),
        depths=_depth_table(depths),
        depth_sizes=_listed(depths.design.sizes),
        depth_draws=depths.design.n_draws,
        depth_alphas=_listed(depths.design.alphas),
    )


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _claims_table(result: Simulation, gain: Estimate, switched: Estimate) -> str:
    """One line a claim."""
    both = (gain, switched)
    large = np.array(result.design.alphas) >= 2
    sharp = [average(x[..., large], keep=(1, 2)) for x in (result.gain, result.switched)]
    rows = [
        ["(a) mean δ is positive for every pair", claims.lower_bounds(gain).verdict, "–"],
        ["(b) largest for very ambiguous b₀", *(claims.between_rows(x).verdict for x in both)],
        ["(b) more so with a confident A₀", *(claims.confident_reference(x).verdict for x in both)],
        ["(c) depends little on A₀'s ambiguity", *(claims.spread_shares(x).verdict for x in both)],
        ["the same, for alpha ≥ 2 alone", *(claims.spread_shares(x).verdict for x in sharp)],
    ]
    return markdown_table(["the paper says", "δ", "Δ"], rows)


def _text_a(result: Simulation, gain: Estimate, sharpened: float) -> str:
    bounds = claims.lower_bounds(gain)
    negative, surely = claims.negative_cells(result)
    return (
        f"The smallest of the {bounds.mean.size} means is {bounds.mean.min():.3f}; the smallest "
        f"lower confidence limit is {bounds.low.min():.3f}. It is a statement about averages: of "
        f"the {negative.size:,} combinations of m, intervals and alpha, {negative.sum()} have a "
        f"negative mean, {surely.sum()} of them surely{_where(result, surely)}. There an exponent "
        "above 1 sharpens rows that are already sure: with b₀ in the surest interval, A₀ in the "
        f"vaguest and alpha ≥ 5, {sharpened:.0%} of rows keep their class and become surer of it."
    )


def _where(result: Simulation, cells: np.ndarray) -> str:
    """The ranges that some cells span."""
    if not cells.any():
        return ""
    sizes, a, b, alphas = np.nonzero(cells)
    labels = interval_labels(result.design.edges)
    reference, rows = (" or ".join(labels[i] for i in sorted(set(x.tolist()))) for x in (a, b))
    m = [result.design.sizes[i] for i in sizes]
    return (
        f" (alpha ≥ {min(result.design.alphas[i] for i in alphas):g}, A₀ in {reference}, "
        f"b₀ in {rows}, m from {min(m)} to {max(m)})"
    )


def _text_b(gain: Estimate, switched: Estimate, rows: RowGains) -> str:
    contrasts = [claims.between_rows(x) for x in (switched, gain)]
    in_doubt = [claims.confident_reference(x) for x in (switched, gain)]
    limits = [f"{x.low.min():.2f} to {x.high.max():.2f}" for x in (*contrasts, *in_doubt)]
    text = (
        f"Very ambiguous rows minus each other interval, for each A₀: Δ differs by {limits[0]}, δ "
        f"by {limits[1]} (confidence limits). Among very ambiguous rows, the surest A₀ minus each "
        f"other: Δ {limits[2]}, δ {limits[3]}."
    )
    if contrasts[1].verdict == claims.DISAGREES:
        text += (
            " Why it disagrees: δ is a ratio. A row that is sure of a rare class has q·b₀ close to "
            f"0, and leaving that class multiplies it. The top {TOP:.0%} of sure rows carry "
            f"{rows.top_share[0]:.0%} of their sum; the median row gains most where it is in doubt:"
        )
    return text


def _rows_table(rows: RowGains, labels: list[str]) -> str:
    """How the gains of single rows are spread."""
    names = {
        "mean δ": rows.mean,
        "median δ": rows.median,
        f"mean δ, first class rare (prior below {RARE:g}/m)": rows.rare,
        "mean δ, first class not rare": rows.common,
        f"part of the sum carried by the top {TOP:.0%} of rows": rows.top_share,
    }
    cells = [[name, *(f"{x:.3g}" for x in values)] for name, values in names.items()]
    return markdown_table(["single rows", *(f"b₀ in {x}" for x in labels)], cells)


def _text_c(result: Simulation) -> str:
    alphas = np.array(result.design.alphas)
    ranges = (("all alphas", alphas > 0), ("alpha ≤ 1", alphas <= 1), ("alpha ≥ 2", alphas >= 2))
    rows = []
    for label, kept in ranges:
        cells = []
        for values in (result.gain, result.switched):
            shares = claims.spread_shares(average(values[..., kept], keep=(1, 2)))
            cells += [_share(shares.reference), _share(shares.rows)]
        rows.append([label, *cells])
    header = ["share of the spread", "δ: A₀", "δ: b₀", "Δ: A₀", "Δ: b₀"]
    return (
        f"We call it little if A₀ explains less than {claims.SMALL_SHARE:.0%} of the spread "
        "between the pairs, a limit of our own, set after a first look at the means; the rest is "
        "b₀ and their interaction. The exponent decides: for alpha ≥ 2 the ambiguity of A₀ counts "
        "for much more.\n\n" + markdown_table(header, rows)
    )


def _share(limits: tuple[float, float, float]) -> str:
    return "{:.0%} [{:.0%}, {:.0%}]".format(*limits)


def _variants_table(others: Sequence[Variant], labels: list[str]) -> str:
    rows = []
    for other in others:
        gain = average(other.gain, keep=(2,))
        cells = [f"{mean:.3g} ± {1.96 * se:.2g}" for mean, se in zip(*gain, strict=True)]
        verdicts = [
            "–" if values is None else _largest_in_doubt(average(values, keep=(2,)))
            for values in (other.gain, other.switched)
        ]
        rows.append([other.name, *cells, *verdicts])
    return markdown_table(["δ", *(f"b₀ in {x}" for x in labels), "δ largest", "Δ largest"], rows)


def _largest_in_doubt(by_row: Estimate) -> str:
    contrast = claims.between_rows(Estimate(by_row.mean[None], by_row.se[None]))
    return {claims.AGREES: "yes", claims.DISAGREES: "no"}.get(contrast.verdict, "undecided")


def _text_size(result: Simulation) -> str:
    sizes = result.design.sizes
    middle = len(sizes) // 2
    gain, switched = (average(x, keep=(0,)).mean for x in (result.gain, result.switched))
    steps = [f"{gain[i]:.2f} and {switched[i]:.1%} at m = {sizes[i]}" for i in (0, middle, -1)]
    return f"δ and Δ are {steps[0]}, {steps[1]}, {steps[2]}."


def _text_alpha(result: Simulation) -> str:
    alphas = result.design.alphas
    gain, switched = (average(x, keep=(4,)).mean for x in (result.gain, result.switched))
    by_row = average(result.gain, keep=(2, 4)).mean
    crossing = [alpha for alpha, x in zip(alphas, by_row.T, strict=True) if x[-1] > x[0]]
    where = f"for alpha ≥ {crossing[0]:g}" if crossing else "for no alpha"
    return (
        f"δ goes from {gain[0]:.2f} at alpha = {alphas[0]:g} to {gain[-1]:.2f} at {alphas[-1]:g}, "
        f"Δ from {switched[0]:.1%} to {switched[-1]:.1%}: a small exponent forgets the row and "
        "returns little but the prior. Very ambiguous rows have a larger mean δ than sure rows "
        f"{where}."
    )


def _depth_table(depths: Depths) -> str:
    """Both metrics after one, two and five iterations."""
    shown = (0, 1, len(depths.gain) - 1)
    gain = [average(depths.gain[d], keep=(4,)).mean for d in shown]
    switched = [average(depths.switched[d], keep=(4,)).mean for d in shown]
    rows = [
        [f"{alpha:g}", *(f"{x[i]:.2f}" for x in gain), *(f"{x[i]:.1%}" for x in switched)]
        for i, alpha in enumerate(depths.design.alphas)
    ]
    header = [f"{name}, depth {d + 1}" for name in ("δ", "Δ") for d in shown]
    return markdown_table(["alpha", *header], rows)
