"""The tables of the blur study's page, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments._output import markdown_table
from experiments.blur.published import BEST as BEST_HERE, NAIVE as NAIVE_HERE, OWN
from experiments.blur.study import (
    BEST,
    FOLDS,
    HONEST,
    NAIVE,
    OTHER,
    PAPER_SHARES,
    SAME,
    SIGMAS,
    summarise,
)

__all__ = ["make_tables"]

Records = Sequence[dict[str, Any]]


def make_tables(
    gains: Records, references: Records, doubt: Records, published: Records
) -> dict[str, str]:
    """The tables of the page."""
    return {
        "doubt": _doubt_table(doubt),
        "published": _published_table(published),
        "gains": _gains_table(gains),
        "sources": _sources_table(references),
        "sizes": _sizes_table(references),
    }


def _doubt_table(doubt: Records) -> str:
    rows = [
        [
            str(row["sigma"]),
            f"{row['share']:.2f} %",
            f"{row['share_all_k']:.2f} %",
            f"{paper:.2f} %",
        ]
        for row, paper in zip(doubt, PAPER_SHARES, strict=True)
    ]
    return markdown_table(["σ", "in doubt", "k over all classes", "in the paper"], rows)


def _published_table(published: Records) -> str:
    by_key = {(row["sigma"], row["method"]): row for row in published}
    rows = []
    for sigma in SIGMAS:
        naive, own, best = (by_key[sigma, name] for name in (NAIVE_HERE, OWN, BEST_HERE))
        rows.append(
            [
                str(sigma),
                f"{naive['base_hard']:.2f}",
                _cell(naive, "_hard"),
                f"{_cell(own, '_hard')} ({_setting(own)})",
                f"{_cell(best, '_hard')} ({_setting(best)})",
                f"{best['gain']:+.2f}",
            ]
        )
    about = ["σ", "accuracy, hard rows"]
    methods = ["gain: alpha 1, d 1", "the paper's alpha, d", "best alpha, d", "best, on all rows"]
    return markdown_table([*about, *methods], rows)


def _setting(row: dict[str, Any]) -> str:
    return f"{row['alpha']:g}, {row['depth']}"


def _cell(row: dict[str, Any], name: str) -> str:
    return f"{row['gain' + name]:+.2f} ± {1.96 * row['se' + name]:.2f}"


def _gains_table(gains: Records) -> str:
    rows = []
    for sigma in SIGMAS:
        found = [summarise(gains, sigma, method) for method in (NAIVE, BEST, HONEST)]
        cells = [_cell(mean, "_hard") for mean in found] + [_cell(mean, "") for mean in found]
        adopted = [r["adopted"] for r in _select(gains, sigma=sigma, method=HONEST)]
        promised = f"{found[-1]['expected_gain']:+.2f}"
        rows.append([str(sigma), *cells, promised, f"{sum(adopted)} of {len(adopted)}"])
    methods = ["naive", "best (bound)", "honest"]
    header = [f"hard: {name}" for name in methods] + [f"all: {name}" for name in methods]
    return markdown_table(["σ", *header, "all: promised", "adopted"], rows)


def _sources_table(references: Records) -> str:
    sources = (OTHER, FOLDS, SAME)
    rows = []
    for sigma in SIGMAS:
        found = [
            np.array([r["gain_hard"] for r in _select(references, sigma=sigma, source=s, share=1)])
            for s in sources
        ]
        rows.append([str(sigma), *(f"{g.mean():+.2f} (sd {g.std():.2f})" for g in found)])
    return markdown_table(["σ", *(f"sure rows of {source}" for source in sources)], rows)


def _sizes_table(references: Records) -> str:
    shares = sorted({r["share"] for r in references if r["source"] == OTHER})[::2]
    rows = []
    for sigma in SIGMAS:
        cells = []
        for share in shares:
            chosen = _select(references, sigma=sigma, source=OTHER, share=share)
            n, gain = (np.mean([r[name] for r in chosen]) for name in ("n_reference", "gain_hard"))
            cells.append(f"{gain:+.1f} ({n:,.0f})")
        rows.append([str(sigma), *cells])
    return markdown_table(["σ", *(f"{share:.0%} of the sure rows" for share in shares)], rows)


def _select(records: Records, **values: Any) -> list[dict[str, Any]]:
    return [r for r in records if all(r[name] == value for name, value in values.items())]
