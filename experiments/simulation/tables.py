"""The tables of the study's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments._output import interval_labels, markdown_table
from experiments.simulation import claims
from experiments.simulation.extensions import Depths, Variant
from experiments.simulation.rows import RARE, TOP, RowGains
from experiments.simulation.study import Estimate, Simulation, average

__all__ = ["make_tables"]

_BOTH = ("δ", "Δ", "δ, the authors' prior", "Δ, the authors' prior")


def make_tables(
    result: Simulation,
    authors: Simulation,
    depths: Depths,
    others: Sequence[Variant],
    rows: RowGains,
    sharpened: float,
) -> dict[str, str]:
    """The tables of the page."""
    labels = interval_labels(result.design.edges)
    gain = average(result.gain, keep=(1, 2))
    return {
        "claims": _claims_table(result, authors),
        "negative": _negative_table(result, gain, sharpened),
        "contrasts": _contrast_table(result, authors),
        "rows": _rows_table(rows, labels),
        "shares": _shares_table(result, authors),
        "variants": _variants_table(others, labels),
        "sizes": _axis_table(result, "m", result.design.sizes, axis=0),
        "alphas": _axis_table(result, "alpha", result.design.alphas, axis=4),
        "depths": _depth_table(depths),
    }


def _claims_table(*results: Simulation) -> str:
    """One line for each claim."""
    pairs = [pair for result in results for pair in _pairs(result)]
    large = np.array(results[0].design.alphas) >= 2
    sharp = [pair for result in results for pair in _pairs(result, large)]
    positive = ["–" if i % 2 else claims.lower_bounds(pair).verdict for i, pair in enumerate(pairs)]
    rows = [
        ["(a) mean δ is positive for every pair", *positive],
        ["(b) largest for very ambiguous b₀", *(claims.between_rows(x).verdict for x in pairs)],
        [
            "(b) more so with a confident A₀",
            *(claims.confident_reference(x).verdict for x in pairs),
        ],
        ["(c) depends little on A₀'s ambiguity", *(claims.spread_shares(x).verdict for x in pairs)],
        ["the same, for alpha ≥ 2 alone", *(claims.spread_shares(x).verdict for x in sharp)],
    ]
    return markdown_table(["the paper says", *_BOTH], rows)


def _pairs(result: Simulation, alphas: Any = slice(None)) -> list[Estimate]:
    """Means of both metrics for each pair of intervals."""
    return [average(x[..., alphas], keep=(1, 2)) for x in (result.gain, result.switched)]


def _negative_table(result: Simulation, gain: Estimate, sharpened: float) -> str:
    """How far claim (a) holds beyond the averages."""
    bounds = claims.lower_bounds(gain)
    negative, surely = claims.negative_cells(result)
    rows = [
        [f"smallest of the {bounds.mean.size} mean δ", f"{bounds.mean.min():.3f}"],
        ["smallest lower confidence limit of them", f"{bounds.low.min():.3f}"],
        ["combinations of m, intervals and alpha", f"{negative.size:,}"],
        ["with a negative mean", f"{negative.sum()}"],
        ["surely negative", f"{surely.sum()}"],
        *_ranges(result, surely),
        ["surest b₀, vaguest A₀, alpha ≥ 5: rows that become surer", f"{sharpened:.0%}"],
    ]
    return markdown_table(["", ""], rows)


def _ranges(result: Simulation, cells: np.ndarray) -> list[list[str]]:
    """What some combinations have in common."""
    if not cells.any():
        return []
    sizes, a, b, alphas = (sorted(set(x.tolist())) for x in np.nonzero(cells))
    labels = interval_labels(result.design.edges)
    m = [result.design.sizes[i] for i in sizes]
    return [
        ["these have alpha of at least", f"{result.design.alphas[alphas[0]]:g}"],
        ["A₀ in", ", ".join(labels[i] for i in a)],
        ["b₀ in", ", ".join(labels[i] for i in b)],
        ["m from, to", f"{min(m)}, {max(m)}"],
    ]


def _contrast_table(*results: Simulation) -> str:
    """Confidence limits behind claim (b)."""
    pairs = [pair for result in results for pair in _pairs(result)]
    rows = []
    for title, contrast in (
        ("very ambiguous b₀ minus the others", claims.between_rows),
        ("very ambiguous b₀: surest A₀ minus the others", claims.confident_reference),
    ):
        limits = [contrast(x) for x in pairs]
        rows.append([title, *(f"{x.low.min():.3g} to {x.high.max():.3g}" for x in limits)])
    return markdown_table(["lowest to highest limit", *_BOTH], rows)


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


def _shares_table(*results: Simulation) -> str:
    """How much of the spread between the pairs each ambiguity explains."""
    alphas = np.array(results[0].design.alphas)
    ranges = (("all alphas", alphas > 0), ("alpha ≤ 1", alphas <= 1), ("alpha ≥ 2", alphas >= 2))
    rows = []
    for prior, result in zip(("uniform prior", "the authors' prior"), results, strict=True):
        for label, kept in ranges:
            cells = []
            for pair in _pairs(result, kept):
                shares = claims.spread_shares(pair)
                cells += [_share(shares.reference), _share(shares.rows)]
            rows.append([f"{prior}, {label}", *cells])
    header = ["share of the spread", "δ: A₀", "δ: b₀", "Δ: A₀", "Δ: b₀"]
    return markdown_table(header, rows)


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


def _axis_table(result: Simulation, name: str, values: Sequence[float], *, axis: int) -> str:
    """Both metrics at the ends and in the middle of an axis."""
    shown = (0, len(values) // 2, len(values) - 1)
    gain, switched = (average(x, keep=(axis,)).mean for x in (result.gain, result.switched))
    by_row = average(result.gain, keep=tuple(sorted((2, axis)))).mean
    by_row = by_row if axis == 4 else by_row.T
    rows = [
        [f"{values[i]:g}", f"{gain[i]:.2f}", f"{switched[i]:.1%}"]
        + [f"{by_row[k, i]:.2f}" for k in (0, -1)]
        for i in shown
    ]
    return markdown_table([name, "δ", "Δ", "δ, surest b₀", "δ, vaguest b₀"], rows)


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
