"""The page of results: tables, and sentences that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments._output import markdown_table
from experiments.label_shift.study import (
    FEWEST_ROWS,
    METHODS,
    SHIFTS,
    Case,
    Design,
    Simulated,
)
from experiments.label_shift.summary import gain, other_people, resampled, share_of_oracle
from experiments.label_shift.worlds import WORLDS

__all__ = ["write_page"]

_SIZES = ("up to 250", "251 to 1,000", "more")
_PAGE = """\
# Another class balance: adapt?

`python -m experiments.label_shift --data DIR`: {n_cases:,} sets of new rows from {n_classifiers}
real classifiers and {n_simulated:,} simulated ones, {minutes:.1f} minutes on one core.{quick}

Test rows of real classifiers are re-sampled to other class balances: Dirichlet distributions around
uniform of concentration 5 (weak), 1 (medium) and 0.3 (strong) for each class, one class left out,
one class half of all rows; {repeats} sets of each kind and size, {unshifted} without a shift. No
row comes twice in a set, so sets have {sizes} rows where the test set has as many of each class,
and fewer otherwise; those below {fewest} are left out. A class that has fewer than 20 test rows is
not drawn by the Dirichlet distributions. "None" is `Adjuster(("bias",))`, fitted on the validation
rows; "adapt" what its `adapt` makes of it; "EM" is expectation maximisation on calibrated
predictions, "bare" on the predictions as they are; "BBSE" solves for the balance from predicted
classes. The oracle knows the balance that the rows were drawn from. Gains are in points of accuracy
over "none".

The numbers in the rules (levels, the quarter that may stay unexplained, pseudo-counts) were settled
on simulated data. But this is not a first look: after earlier runs on these files, confidences were
added to the test for a change (checked in the simulated worlds before this run), and a bad fit now
has to be significant as well. Rows were at first drawn with replacement, which is no label shift
where few rows are repeated often. So the shares below may be optimistic.

**In short**

{short}

![Mean gains by kind of shift, and adapting against the oracle](gains.png)

Every set is in [cases.csv](cases.csv) and [simulated.csv](simulated.csv).

## 1. By kind of shift

{by_shift}

## 2. By number of new rows: strong shifts, and one class that dominates

{by_size}

## 3. By classifier: the same shifts

{by_classifier}

## 4. Other people, no label shift

Validation and test rows of these classifiers are of other people. Subsets of the test rows, and all
of them:

{people}

## 5. Simulated, with known truth

{n_each} sets for each world and number of classes; "coverage" is the share of classes whose
interval holds the true share.

{worlds}
"""


def write_page(
    cases: Sequence[Case],
    simulated: Sequence[Simulated],
    design: Design,
    *,
    seconds: float,
    quick: bool,
) -> str:
    """Put the page together."""
    real, strong = resampled(cases), strong_cases(cases)
    return _PAGE.format(
        n_cases=len(cases),
        n_classifiers=len({case.classifier for case in cases}),
        n_simulated=len(simulated),
        minutes=seconds / 60,
        quick=" A quick run: too small to conclude from." if quick else "",
        repeats=design.n_repeats,
        unshifted=design.n_unshifted,
        sizes=" or ".join(f"{n:,}" for n in design.sizes),
        fewest=FEWEST_ROWS,
        short=_short(cases, simulated),
        by_shift=_gains(real, "shift", SHIFTS, lambda c: c.shift),
        by_size=_gains(strong, "rows", _SIZES, lambda c: _size(c.n_new)),
        by_classifier=_gains(
            strong, "classifier", sorted({c.classifier for c in strong}), lambda c: c.classifier
        ),
        people=_people(other_people(cases)),
        n_each=design.n_simulated,
        worlds=_worlds(simulated),
    )


def strong_cases(cases: Sequence[Case]) -> list[Case]:
    """Re-sampled sets with a strong shift, or in which one class dominates."""
    return [c for c in resampled(cases) if c.shift in ("strong", "one class dominates")]


def _short(cases: Sequence[Case], simulated: Sequence[Simulated]) -> str:
    real, strong, people = resampled(cases), strong_cases(cases), other_people(cases)
    adapted = [case for case in strong if case.reason == "adapted"] or strong
    still = [case for case in real if case.shift == "no shift"]
    null = [one.p_value for one in simulated if one.world == WORLDS[0].name]
    lines = [
        f"Where the shift is strong, adapting gains {gain(strong, 'adapt'):.1f} points and the "
        f"oracle {gain(strong, 'oracle'):.1f}: {share_of_oracle(strong):.0%} of it, and "
        f"{share_of_oracle(adapted):.0%} in the {len(adapted)} of {len(strong)} sets in which the "
        f"data said that there was a shift. EM without asking first reaches "
        f"{share_of_oracle(strong, 'EM'):.0%}, BBSE {share_of_oracle(strong, 'BBSE'):.0%}.",
        f"Without a shift, adapting changes {gain(still, 'adapt'):+.2f} points on average, at "
        f"worst {worst(still, 'adapt'):+.2f}; EM {gain(still, 'EM'):+.2f}, at worst "
        f"{worst(still, 'EM'):+.2f}.",
        f"Of {len(null)} simulated sets without a change, {share(np.less(null, 0.05))} have a "
        f"p-value below 0.05 and {share(np.less(null, 0.001))} one below 0.001, the level that "
        "counts.",
    ]
    if people:
        left = [case.reason != "adapted" for case in people]
        lines.append(
            f"On other people's rows {sum(left)} of {len(left)} sets are left alone; adapting "
            f"changes {gain(people, 'adapt'):+.2f} points on average, at worst "
            f"{worst(people, 'adapt'):+.2f}, EM {gain(people, 'EM'):+.2f}."
        )
    return "\n".join(f"- {line}" for line in lines)


def _size(n: int) -> str:
    return next(name for name, most in zip(_SIZES, (250, 1000, np.inf), strict=True) if n <= most)


def share(values: Any) -> str:
    """A share in per cent."""
    return f"{np.mean(values):.1%}"


def worst(cases: Sequence[Case], method: str) -> float:
    """The lowest gain of all."""
    return min(case.scores[method] - case.scores["none"] for case in cases)


def _gains(
    cases: Sequence[Case], title: str, keys: Sequence[Any], key: Callable[[Case], Any]
) -> str:
    rows = []
    for value in keys:
        chosen = [case for case in cases if key(case) == value]
        if not chosen:
            continue
        adapted = np.mean([case.reason == "adapted" for case in chosen])
        cells = [f"{gain(chosen, method):+.2f}" for method in METHODS[1:]]
        label = f"{value:,}" if isinstance(value, int) else value
        rows.append([label, str(len(chosen)), f"{adapted:.0%}", *cells])
    return markdown_table([title, "sets", "adapted", *METHODS[1:]], rows)


def _people(cases: Sequence[Case]) -> str:
    rows = []
    for name in sorted({case.classifier for case in cases}):
        own = [case for case in cases if case.classifier == name]
        whole = max(own, key=lambda case: case.n_new)
        adapted = sum(case.reason == "adapted" for case in own)
        rows.append(
            [
                name,
                f"{adapted} of {len(own)}",
                f"{whole.reason} (p = {whole.p_value:.2g}, {whole.unexplained:.0%} left)",
                *(f"{gain(own, method):+.2f}" for method in ("adapt", "EM", "EM, bare", "BBSE")),
            ]
        )
    head = ["classifier", "adapted", "all test rows", "adapt", "EM", "EM, bare", "BBSE"]
    return markdown_table(head, rows)


def _worlds(simulated: Sequence[Simulated]) -> str:
    rows = []
    for world in dict.fromkeys(one.world for one in simulated):
        for m in sorted({one.n_classes for one in simulated}):
            own = [one for one in simulated if (one.world, one.n_classes) == (world, m)]
            reasons = [
                share([one.reason == reason for one in own])
                for reason in ("adapted", "no_shift", "not_label_shift")
            ]
            rows.append(
                [
                    world,
                    str(m),
                    *reasons,
                    f"{np.mean([one.gain for one in own]):+.2f}",
                    share([one.covered for one in own]),
                ]
            )
    head = ["world", "classes", "adapted", "no shift", "not label shift", "gain", "coverage"]
    return markdown_table(head, rows)
