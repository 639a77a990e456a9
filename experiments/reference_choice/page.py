"""The Markdown page of the study of references."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._output import markdown_table
from experiments.reference_choice.results import NAIVE, TUNED, Results, Summary, summarise
from experiments.reference_choice.study import (
    ALL,
    BALANCED,
    CHOICES,
    CONFIDENT,
    DEFAULTS,
    NEAREST,
    PRIORS,
    STRATIFIED,
    WEIGHTED,
    WHOLE,
    Design,
)

__all__ = ["paired", "standard_error", "write_page"]

TIE = 0.05  # points: a smaller difference counts as none

PAGE = """\
# Which rows should serve as reference?

`python -m experiments.reference_choice --data DIR`{quick}

The paper takes the confident validation rows as A₀ and leaves open how best to choose it. Here six
choices and sizes from {smallest} rows to all are tried on {n_classifiers} real single-label
classifiers, at depth 1. The reference always comes from validation data, the gain is measured on
test data. {n_draws} random draws for each size.

- **confident**: rows that are not in doubt at the threshold.
- **all**: any rows.
- **stratified**: as many rows of each predicted class as its share of all rows.
- **balanced**: any rows, weighted such that all predicted classes count the same.
- **weighted**: any rows, weighted by 1 − ambiguity.
- **nearest**: for each row in doubt the rows with the smallest Hellinger distance to it.
- **{defaults}**: both of the first two compete, with smoothing {smoothings}: what
  `AlternatingNormalizerCV` tries.

*Naive* is alpha 1 and threshold 0.75. *Tuned* takes the alpha in {{{alphas}}} and the threshold in
{{0.25, 0.5, 0.75}} with the best cross-fitted accuracy on validation, and changes nothing if that
is no better than before.

![Mean gain against the size of the reference](sizes.png)

Bars: 95 % intervals over draws. A choice that has fewer rows than the size takes all it has. All
numbers are in [gains.csv](gains.csv) and [classifiers.csv](classifiers.csv).

## All rows that a choice has

{whole}

## Only {few} rows

{small}

## The prior

Tuned, all rows that a choice has: mean gain (worst).

{priors}

## Conclusion

{conclusion}

## By classifier

Tuned, all rows that a choice has. The last column is `AlternatingNormalizerCV` itself, with depths
to 5 and its test for evidence; 0 means that it changed nothing.

{classifiers}
"""


def write_page(results: Results, design: Design, *, quick: bool) -> str:
    """The page as text."""
    gains = results.gains
    few = design.near_sizes[1]
    return PAGE.format(
        quick="\n\n**A quick run: too small to judge.**" if quick else "",
        smallest=design.sizes[0],
        n_classifiers=len(results.classifiers),
        n_draws=design.n_draws,
        defaults=DEFAULTS,
        smoothings=" or ".join(f"{x:g}" for x in design.smoothings),
        alphas=", ".join(f"{x:g}" for x in design.alphas),
        whole=_choices_table(gains, WHOLE),
        few=few,
        small=_choices_table(gains, few),
        priors=_priors_table(gains),
        conclusion=_conclusion(results, few),
        classifiers=_classifiers_table(results),
    )


def _choices_table(gains: list[dict[str, Any]], size: int) -> str:
    rows = []
    for choice in (*CHOICES, DEFAULTS):
        if choice == NEAREST and size == WHOLE:
            continue  # all neighbours are all rows
        tuned = _cells(summarise(gains, choice, size, TUNED))
        naive = _cells(summarise(gains, choice, size, NAIVE))
        rows.append([choice, *(naive if choice != DEFAULTS else ["–"] * 3), *tuned])
    names = ("mean", "worst", "better / worse")
    header = [f"{kind}: {name}" for kind in ("naive", "tuned") for name in names]
    return markdown_table(["reference", *header], rows)


def _cells(one: Summary) -> list[str]:
    return [f"{one.mean:+.2f}", f"{one.worst:+.2f}", f"{one.better} / {one.worse}"]


def _priors_table(gains: list[dict[str, Any]]) -> str:
    rows = []
    for choice in (CONFIDENT, ALL, DEFAULTS):
        found = [summarise(gains, choice, WHOLE, TUNED, prior) for prior in PRIORS]
        rows.append([choice, *(f"{one.mean:+.2f} ({one.worst:+.2f})" for one in found)])
    return markdown_table(["reference", *PRIORS], rows)


def _classifiers_table(results: Results) -> str:
    shown = (CONFIDENT, ALL, BALANCED, WEIGHTED, DEFAULTS)
    rows = []
    for about in results.classifiers:
        mine = [r for r in results.gains if r["classifier"] == about["classifier"]]
        cells = [f"{summarise(mine, choice, WHOLE, TUNED).mean:+.2f}" for choice in shown]
        library = f"{about['library_gain']:+.2f}" if about["library_adopted"] else "0"
        counts = [f"{about[name]}" for name in ("classes", "validation", "confident")]
        rows.append([about["classifier"], *counts, f"{about['base']:.2f}", *cells, library])
    about = ["classifier", "classes", "validation rows", "confident at 0.75", "accuracy"]
    return markdown_table([*about, *shown, "library"], rows)


def _conclusion(results: Results, few: int) -> str:
    gains = results.gains
    tuned = {c: summarise(gains, c, WHOLE, TUNED) for c in (*CHOICES, DEFAULTS)}
    naive = {c: summarise(gains, c, WHOLE, NAIVE) for c in CHOICES}
    small = {c: summarise(gains, c, few, NAIVE) for c in CHOICES}
    lines = [
        f"**More rows are better.** CAN-naive with {few} rows and with all that there are: "
        + ", ".join(f"{c} {small[c].mean:+.2f} and {naive[c].mean:+.2f}" for c in (CONFIDENT, ALL))
        + ". Nothing is gained by leaving rows out of a reference, and depth 1 does not get slower "
        "with its size.",
        f"**Nearest rows fail** ({small[NEAREST].mean:+.2f} points with {few}, naive): they lean "
        "towards the same class as the row itself, so its first choice is divided away. What the "
        "reference has to show is how the classifier uses the classes as a whole.",
        f"**Stratifying helps small references** ({small[STRATIFIED].mean:+.2f} against "
        f"{small[ALL].mean:+.2f} with {few} rows, naive), since it takes the luck of the draw out "
        "of the column sums; a reference that must be small should be drawn so. With all rows it "
        "is the same as all. "
        f"**Balancing** the predicted classes ({tuned[BALANCED].mean:+.2f} tuned) takes away the "
        "very imbalance that the method corrects.",
        f"**Confident or all?** Tuned, {CONFIDENT} gains {tuned[CONFIDENT].mean:+.2f} (worst "
        f"{tuned[CONFIDENT].worst:+.2f}), {ALL} {tuned[ALL].mean:+.2f} "
        f"({tuned[ALL].worst:+.2f}), {WEIGHTED}, which lies between, {tuned[WEIGHTED].mean:+.2f} "
        f"({tuned[WEIGHTED].worst:+.2f}). Confident minus all: "
        f"{_told(paired(results, CONFIDENT, ALL))}. Confident rows run out where a classifier is "
        "hardly ever sure.",
        _defaults_text(results, few),
    ]
    return "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1))


def paired(results: Results, first: str, second: str) -> np.ndarray:
    """Tuned gain of one choice minus that of another, for each classifier."""
    margins = []
    for about in results.classifiers:
        mine = [r for r in results.gains if r["classifier"] == about["classifier"]]
        a, b = (summarise(mine, c, WHOLE, TUNED).mean for c in (first, second))
        margins.append(a - b)
    return np.array(margins)


def standard_error(margins: np.ndarray) -> float:
    """Of the mean over classifiers."""
    return float(margins.std(ddof=1) / np.sqrt(margins.size)) if margins.size > 1 else 0.0


def _told(margins: np.ndarray) -> str:
    """Mean difference, its standard error over classifiers, and who wins."""
    wins = int((margins > TIE).sum()), int((margins < -TIE).sum())
    return (
        f"{margins.mean():+.2f} ± {standard_error(margins):.2f} on average, better on {wins[0]} "
        f"classifiers and worse on {wins[1]}"
    )


def _verdict(rivals: list[np.ndarray], summaries: dict[str, Summary]) -> str:
    """Whether the defaults are better than their rivals, as good, or not even that."""
    best_prior = max(one.mean for one in summaries.values())
    if any(m.mean() < -TIE for m in rivals) or summaries["shrunk"].mean < best_prior - TIE:
        return "**The defaults do not follow:** something simpler does better."
    if all(m.mean() > 2 * standard_error(m) for m in rivals):
        return "**The defaults follow.**"
    return (
        "**The defaults are in line with this, though the suite alone does not prove them:** no "
        "rival does better, and not all differences exceed two standard errors."
    )


def _defaults_text(results: Results, few: int) -> str:
    summaries = {p: summarise(results.gains, DEFAULTS, WHOLE, TUNED, p) for p in PRIORS}
    small = {c: summarise(results.gains, c, few, TUNED).mean for c in (DEFAULTS, ALL)}
    both = summaries["shrunk"]
    rivals = [paired(results, DEFAULTS, choice) for choice in (CONFIDENT, ALL)]
    listed = ", ".join(
        f"{prior} {one.mean:+.2f} (worst {one.worst:+.2f})" for prior, one in summaries.items()
    )
    library = np.array([about["library_gain"] for about in results.classifiers])
    return (
        f"{_verdict(rivals, summaries)} Letting both references compete, with smoothing, gains "
        f"{both.mean:+.2f} (worst {both.worst:+.2f}); against confident rows alone that is "
        f"{_told(rivals[0])}; against all rows alone, {_told(rivals[1])}. The prior, with both: "
        f"{listed}. The more settings compete, the more of the best is luck: with {few} rows both "
        f"together gain {small[DEFAULTS]:+.2f}, all rows alone {small[ALL]:+.2f}. That is why "
        "`AlternatingNormalizerCV` also asks for evidence: it gains "
        f"{library.mean():+.2f} (worst {library.min():+.2f})."
    )
