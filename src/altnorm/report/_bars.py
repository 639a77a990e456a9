"""Charts of horizontal bars: a name, a bar in parts, and the numbers as text.

Places are in per cent of the width, so that a bar is drawn by the page's template, whatever screen
or paper it is on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from altnorm._base.words import plural
from altnorm.report.measures import ClassChanges, Confusions, Flows

MOST = 16  # bars of a chart


class Part(NamedTuple):
    """A stretch of a bar."""

    kind: str
    start: float
    width: float


class Bar(NamedTuple):
    """One line of a chart."""

    name: str
    parts: list[Part]
    text: str


def flow_bars(flows: Flows, names: list[str]) -> list[Bar]:
    """Rows from one class to another, and what became of them."""
    unit, bars = 100 / max(1, int(flows.n_rows.max(initial=0))), []
    for i in range(min(MOST, flows.n_rows.size)):
        n, to_person = int(flows.n_rows[i]), flows.target[i] == len(names) - 1
        text, counts = plural(n, "row"), [("other", n)]
        if flows.fixed is not None and flows.broken is not None:
            fixed, broken = int(flows.fixed[i]), int(flows.broken[i])
            text = f"{text}, {broken:,} had been right" if to_person else _outcome(fixed, broken, n)
            if not to_person:
                counts = [("fixed", fixed), ("broken", broken), ("other", n - fixed - broken)]
        name = f"{names[flows.source[i]]} → {names[flows.target[i]]}"
        bars.append(Bar(name, _stack(counts, unit), text))
    return bars


def _outcome(fixed: int, broken: int, n: int) -> str:
    other = n - fixed - broken
    return f"{fixed:,} fixed, {broken:,} broken" + (f", {other:,} still wrong" if other else "")


def _stack(counts: list[tuple[str, int]], unit: float) -> list[Part]:
    parts, at = [], 0.0
    for kind, n in counts:
        if n:
            parts.append(Part(kind, at, n * unit))
            at += n * unit
    return parts


def change_bars(changes: ClassChanges, names: list[str], multilabel: bool) -> list[Bar]:
    """Rows fixed to the right and broken to the left; without labels, gained and lost."""
    (more, less), order = changes.sides, changes.ends(MOST)
    kinds = words = ("fixed", "broken")
    if changes.fixed is None:
        kinds = ("after", "other")
        words = ("added", "removed") if multilabel else ("gained", "lost")
    left, right = (int(side[order].max(initial=0)) for side in (less, more))
    unit = 100 / max(1, left + right)
    return [
        Bar(
            names[j],
            [
                Part(kinds[1], (left - less[j]) * unit, less[j] * unit),
                Part(kinds[0], left * unit, more[j] * unit),
            ],
            f"{more[j]:,} {words[0]}, {less[j]:,} {words[1]}",
        )
        for j in order
    ]


def confusion_bars(found: Confusions, names: list[str]) -> list[Bar]:
    """Confusions that were repaired, and what is left of them."""
    most, bars = max(1, int(found.before.max(initial=0))), []
    for i in range(min(MOST, int((found.fixed > 0).sum()))):
        before, fixed = int(found.before[i]), int(found.fixed[i])
        counts = [("fixed", fixed), ("other", before - fixed)]
        name = f"{names[found.truth[i]]} taken for {names[found.taken_for[i]]}"
        text = f"{before:,} before, {found.after[i]:,} after; {fixed:,} fixed"
        bars.append(Bar(name, _stack(counts, 100 / most), text))
    return bars


def factor_bars(factors: np.ndarray, names: list[str]) -> list[Bar]:
    """How much classes are favoured, on a logarithmic scale around 1."""
    log_f = np.log(factors)
    order = np.argsort(-log_f, kind="stable")
    if order.size > MOST:
        order = np.concatenate([order[: MOST // 2], order[-(MOST // 2) :]])
    unit = 50 / max(1e-9, float(np.abs(log_f[order]).max()))
    return [
        Bar(
            names[j],
            [
                Part(
                    "fixed" if log_f[j] > 0 else "broken",
                    50 + min(0.0, log_f[j]) * unit,
                    abs(log_f[j]) * unit,
                )
            ],
            _times(float(factors[j])),
        )
        for j in order
    ]


def _times(factor: float) -> str:
    # Beyond a thousand either way the digits say nothing.
    if factor > 1000:
        return "× >1000"
    return "× <0.001" if factor < 0.001 else f"× {float(f'{factor:.2g}'):g}"
