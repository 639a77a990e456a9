"""The page of the study: what was done, what came out, all numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.asking.study import BUDGET, Summary

__all__ = ["write_page"]

CLEAR = 0.2  # of the changed decisions that fix or break: how far from a draw


def write_page(found: Sequence[Summary]) -> str:
    """The page in Markdown."""
    return f"""# Labels until the answer

How many labels does it take to know whether an adjustment helps? For each classifier the test rows
are the pool. `altnorm.ask` draws rows whose decision changes, `altnorm.judge` looks after each
label, and the run stops at the first answer ("adopt" or "do not adopt", at the level 0.05). The
truth is known here: the sign of the gain over the whole pool. Each line is {found[0].runs} runs
with different seeds.

Two adjustments. *CAN, no labels* is `AlternatingNormalizer(prior=balance).fit(pool)`, as
`altnorm tune --no-labels` fits it: the pool's own predictions, and a class balance counted on the
validation labels (for several labels per row `multilabel="labelwise"`). *BCTS* is a temperature and
class biases fitted on the validation labels. Both are applied whether they help or not. Where one
changes no decision, there is nothing to ask, and no line.

"At random" labels any rows of the pool, and judges those of them that change in the same way: a
test set that grows.

![Labels until the answer, asked for and at random](labels.png)

Blue: asked for; orange: rows at random; behind each name the true gain in points (accuracy, or
share of right label decisions). The dashed line is at {BUDGET} labels.

## What came out

{_findings(found)}

## All numbers

Rows: the pool, and how many of them change. Fixed, broken: decisions. Labels: median and 90th
percentile until the answer. In {BUDGET}: runs that ended within {BUDGET} labels. All numbers:
[asking.csv](asking.csv).

{_table(found)}
"""


def _findings(found: Sequence[Summary]) -> str:
    runs = sum(one.runs for one in found)
    wrong, covered = (
        sum(getattr(one, name) * one.runs for one in found) / runs for name in ("wrong", "covered")
    )
    worst = max(found, key=lambda one: one.wrong)
    least = min(found, key=lambda one: one.covered)
    ratios = [one.random_median / one.median for one in found]
    clear = [one for one in found if _lead(one) >= CLEAR]
    close = [one for one in found if _lead(one) < CLEAR]
    return f"""- **Errors.** {wrong:.1f} % of {runs:,} runs stopped at a wrong answer; the most on
  one line are {worst.wrong:.1f} % ({worst.classifier}, {worst.adjustment}). Promised: at most 5 %.
- **Coverage.** In {covered:.1f} % of the runs the interval held the true gain after each of the
  first 90 % of the labels, all at once; the fewest on one line are {least.covered:.1f} %
  ({least.classifier}, {least.adjustment}). Promised: at least 95 %.
- **Labels.** Labelling at random takes {np.median(ratios):.1f} times as many labels (median over
  the {len(found)} lines; from {min(ratios):.1f} to {max(ratios):.0f} times).
- **Clear cases**, where at least {50 + 50 * CLEAR:.0f} % of the decisions that are fixed or broken
  are of one kind: {_labels(clear)}
- **Close to a draw**, all others: {_labels(close)} Nearly all changed rows may be
  needed; the interval says early that the gain is small."""


def _labels(group: Sequence[Summary]) -> str:
    """Labels until the answer on some lines, as a sentence."""
    if not group:
        return "there is no such line."
    median, p90, at_random, budget = (
        float(np.median([getattr(one, name) for one in group]))
        for name in ("median", "p90", "random_median", "in_budget")
    )
    return (
        f"{len(group)} lines. {median:.0f} labels until the answer, 90th percentile\n"
        f"  {p90:.0f}, against {at_random:.0f} at random; {budget:.0f} % of the runs end within "
        f"{BUDGET} labels\n  (medians over these lines)."
    )


def _lead(one: Summary) -> float:
    """How far fixed and broken are from a draw, from 0 to 1."""
    return abs(one.fixed - one.broken) / max(1, one.fixed + one.broken)


def _table(found: Sequence[Summary]) -> str:
    rows = [
        [
            one.classifier,
            one.adjustment,
            f"{one.rows:,}",
            f"{one.changed:,}",
            f"{one.fixed:,}",
            f"{one.broken:,}",
            f"{one.gain:+.2f}",
            f"{one.median:.0f}",
            f"{one.p90:.0f}",
            f"{one.random_median:.0f}",
            f"{one.random_p90:.0f}",
            f"{one.in_budget:.0f} %",
            f"{one.wrong:.1f} %",
            f"{one.covered:.1f} %",
        ]
        for one in found
    ]
    header = (
        "classifier, adjustment, rows, changed, fixed, broken, gain, labels, 90 %, at random, "
        f"90 %, in {BUDGET}, wrong, covered"
    )
    return markdown_table(header.split(", "), rows)
