"""Numbers, names and settings as people read them: shares in per cent, their differences in points.

Losses are losses, lower is better; a difference is that of the rounded numbers beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

VISIBLE = 0.005
"""Share that rounds to one per cent."""

DO_NOTHING = "do nothing"
"""What leaving the predictions alone is called among methods."""

NAMES = {
    "f1_macro": "macro-F1",
    "f1_micro": "micro-F1",
    "f1_weighted": "weighted F1",
    "f1_samples": "F1 of a row",
    "subset_accuracy": "exact-match accuracy",
    "top_k_accuracy": "top-2 accuracy",
    "matthews_corrcoef": "Matthews correlation",
    "neg_brier_score": "Brier score",
    "roc_auc": "ROC AUC",
}

FAMILY_NAMES = {
    "alternating": "alternating normalization",
    "bias": "bias family",
    "matrix": "matrix family",
    "curves": "curve family",
    "temperature": "temperature",
    "none": "predictions as they came",
}

_DOES = {
    "alternating": "adjusts rows in doubt",
    "bias": "multiplies each class by a factor",
    "matrix": "repairs confusions of pairs of classes",
    "curves": "corrects each class along a bent curve",
    "temperature": "changes decisions",
}


@dataclass(frozen=True)
class Figures:
    """A comparison of two scores as text: shares in per cent, differences with a sign."""

    name: str  # of the score
    before: str
    after: str
    change: str
    low: str  # ends of the interval of the change
    high: str
    unit: str  # "points" or ""
    p_value: str
    lower: bool  # whether lower is better
    better: str  # "better", "worse" or "unclear": what the interval says
    numbers: tuple[float, float, float]  # change, low and high, in `unit`

    @property
    def change_and_unit(self) -> str:
        """The difference with its unit."""
        return f"{self.change} {self.unit}".rstrip()

    @property
    def changed(self) -> bool:
        """Whether the rounded scores differ."""
        return self.before != self.after


def figures(
    scoring: str,
    before: float,
    after: float,
    interval: tuple[float, float],
    p_value: float,
    *,
    in_points: bool,
    multilabel: bool = False,
    beside: float = 0.0,
) -> Figures:
    """Turn scores, of which larger is better, into text; "neg_" names begin those of losses.

    `beside` is the largest difference in the same table, whose lines are rounded alike.
    """
    lower = scoring.startswith("neg_")
    scale = (-1.0 if lower else 1.0) * (100.0 if in_points else 1.0)
    # No share can change by more than all of it; a correlation can, by twice that.
    most = math.inf if not in_points else 200.0 if scoring == "matthews_corrcoef" else 100.0
    bounds = sorted(min(max(scale * bound, -most), most) for bound in interval)
    gain = scale * (after - before)
    largest = max(abs(v) for v in (gain, *bounds, scale * beside) if not math.isnan(v))
    digits = (2 if 0 < largest < 1 else 1) if in_points else 3
    first, last = (round(scale * v, digits) for v in (before, after))
    unit = "%" if in_points else ""
    return Figures(
        name=score_name(scoring, multilabel),
        before=_fixed(first, digits) + unit,
        after=_fixed(last, digits) + unit,
        change=_fixed(last - first, digits, sign=True),
        low=_fixed(bounds[0], digits, sign=True),
        high=_fixed(bounds[1], digits, sign=True),
        unit="points" if in_points else "",
        p_value=p_words(p_value),
        lower=lower,
        better="better" if interval[0] > 0 else "worse" if interval[1] < 0 else "unclear",
        numbers=(gain, bounds[0], bounds[1]),
    )


def _fixed(value: float, digits: int, *, sign: bool = False) -> str:
    if not math.isfinite(value):
        return "unknown"
    rounded = round(value, digits) + 0.0  # no negative zero
    return f"{rounded:{'+' if sign and rounded else ''}.{digits}f}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun: "1 row", "1,200 rows"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent."""
    return _fixed(100 * share, digits) + "%"


def p_words(p_value: float) -> str:
    """A p-value with its sign of relation."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def score_name(scoring: str, multilabel: bool = False) -> str:
    """Name of a score for people; that of a loss without its sign."""
    if multilabel and scoring == "accuracy":  # which counts rows that have every label right
        scoring = "subset_accuracy"
    return NAMES.get(scoring, scoring.removeprefix("neg_").replace("_", " "))


def setting_words(params: Mapping[str, Any]) -> str:
    """Tell a setting of alternating normalization, given its parameters, in words."""
    words = [
        FAMILY_NAMES["alternating"],
        f"exponent {params['alpha']:g}",
        plural(params["depth"], "iteration"),
        f"rows with an ambiguity above {params['threshold']:g}",
        f"{params['reference']} rows as reference",
    ]
    if params.get("smoothing"):
        words.append(f"smoothing {params['smoothing']:g}")
    return ", ".join(words)


def model_words(tuned: Any) -> str:
    """Say in a few words what a fitted Adjuster does."""
    if tuned.mixture_.log_ratio is not None:
        does = "adapts predictions to another class balance"
    elif tuned.decision_.counts_costs_alone:
        does = "decides by your costs"
    elif tuned.family_ is None:
        return "changes nothing"
    elif tuned.verdict_.adopted or tuned.verdict_.insisted:
        does = _DOES[tuned.family_]
    else:
        does = "changes no decision" if tuned.target_accuracy is None else "changes no class"
    calibrates = tuned.calibrate and tuned.family_ is not None
    return f"{does} and calibrates probabilities" if calibrates else does


def mixture_words(weights: Sequence[float]) -> str:
    """Say which parts make up the probabilities of an Adjuster, those that can be seen."""
    names = (
        "the corrected row",
        "the row at a temperature",
        "the row as it came",
        "the uniform distribution",
    )
    parts = zip(names, weights, strict=True)
    return ", ".join(f"{percent(share, 0)} {name}" for name, share in parts if share >= VISIBLE)


def text_table(rows: Sequence[Sequence[str]], n_left: int = 1) -> str:
    """Return a table as text, the first columns to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<" if j < n_left else ">" for j in range(len(widths))]
    cells = [[f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)] for row in rows]
    return "\n".join("  ".join(row).rstrip() for row in cells)


# Notebooks.

_CELL = "text-align:{};padding:.15em .8em .15em 0"


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, the first column to the left and the others to the right."""

    def line(cells: Sequence[str], tag: str) -> str:
        styled = (
            f'<{tag} style="{_CELL.format("right" if j else "left")}">{escape(cell)}</{tag}>'
            for j, cell in enumerate(cells)
        )
        return f"<tr>{''.join(styled)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def html_card(sentence: str, cautions: Sequence[str] = (), *parts: str) -> str:
    """Return a sentence, bold up to its colon, more HTML, and cautions."""
    start, colon, details = sentence.partition(":")
    opening = f"<b>{escape(start)}{colon}</b>{escape(details)}" if colon else escape(sentence)
    listed = "".join(f"<li>Caution: {escape(text)}</li>" for text in cautions)
    listed = f"<ul>{listed}</ul>" if listed else ""
    return f'<div class="altnorm"><p>{opening}</p>{"".join(parts)}{listed}</div>'
