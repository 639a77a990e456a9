"""The tables of the study's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments._output import interval_labels, markdown_table
from experiments.simulation import claims
from experiments.simulation.extensions import Variant
from experiments.simulation.rows import RARE, TOP, RowGains
from experiments.simulation.study import Estimate, Simulation, average

__all__ = ["make_tables"]

_BOTH = ("δ", "Δ", "δ, the authors' prior", "Δ, the authors' prior")


def make_tables(
    result: Simulation,
    authors: Simulation,
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
        "rows": _rows_table(rows, labels),
        "shares": _shares_table(result, authors),
        "variants": _variants_table(others, labels),
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
    alphas = np.array(result.design.alphas)[surely.any(axis=(0, 1, 2))]
    rows = [
        [f"smallest of the {bounds.mean.size} mean δ", f"{bounds.mean.min():.3f}"],
        ["combinations of m, intervals and alpha", f"{negative.size:,}"],
        ["with a negative mean", f"{negative.sum()}"],
        ["surely negative", f"{surely.sum()}"],
        *([["these have alpha of at least", f"{alphas[0]:g}"]] if alphas.size else []),
        ["surest b₀, vaguest A₀, alpha ≥ 5: rows that become surer", f"{sharpened:.0%}"],
    ]
    return markdown_table(["", ""], rows)


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
                cells += [f"{shares.reference[0]:.0%}", f"{shares.rows[0]:.0%}"]
            rows.append([f"{prior}, {label}", *cells])
    header = ["share of the spread", "δ: A₀", "δ: b₀", "Δ: A₀", "Δ: b₀"]
    return markdown_table(header, rows)


def _variants_table(others: Sequence[Variant], labels: list[str]) -> str:
    rows = []
    for other in others:
        gain = average(other.gain, keep=(2,))
        cells = [f"{mean:.3g}" for mean in gain.mean]
        verdicts = [
            "–" if values is None else _largest_in_doubt(average(values, keep=(2,)))
            for values in (other.gain, other.switched)
        ]
        rows.append([other.name, *cells, *verdicts])
    return markdown_table(["δ", *(f"b₀ in {x}" for x in labels), "δ largest", "Δ largest"], rows)


def _largest_in_doubt(by_row: Estimate) -> str:
    contrast = claims.between_rows(Estimate(by_row.mean[None], by_row.se[None]))
    return {claims.AGREES: "yes", claims.DISAGREES: "no"}.get(contrast.verdict, "undecided")
