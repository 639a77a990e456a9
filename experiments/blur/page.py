"""The Markdown page of the blur study."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._output import markdown_table
from experiments.blur.study import (
    BEST,
    FOLDS,
    HONEST,
    NAIVE,
    OTHER,
    PAPER_SETTINGS,
    PAPER_SHARES,
    SAME,
    SIGMAS,
    Doubt,
    Measured,
    summarise,
)

__all__ = ["write_page"]

PAGE = """\
# Blur: the gain against the share of rows in doubt

`python -m experiments.blur --data DIR`{quick}

EfficientNet-Lite0 on 5,000 ImageNet validation images, five for each of 1,000 classes, blurred with
a Gaussian of width σ. One half of the images (class by class) is validation: it gives the reference
and is used for tuning; the other is test. Then the halves change places; {n_seeds} seeds. A row is
in doubt at an ambiguity above 0.75. The prior is uniform.

- **CAN-naive**: alpha 1, depth 1, confident validation rows as reference.
- **CAN-best**: alpha and depth chosen on the test half itself. An upper bound for the paper's
  family of settings (confident reference, this threshold), not a result that anyone can have.
- **honestly tuned**: `AlternatingNormalizerCV` on the validation half. It may also take all rows as
  reference, smoothing and a lower threshold; where the evidence is too weak it changes nothing.

![Rows in doubt, gain on them and on all rows, against the blur](gains.png)

Bars: 95 % intervals over images; ticks: single splits. All splits are in [gains.csv](gains.csv).

{shares}

Gains in accuracy points, ± 1.96 standard errors over images:

{gains}

## The paper's claims

{claims}

**Rows in doubt.** {text_shares}

**Gain.** {text_gain}

## What the gain depends on, and the paper does not say

![CAN-naive against the number and source of reference rows](references.png)

**Where the reference comes from.** {text_source}

**How many rows.** {text_size}

**What the validation half promises.** {text_expected}

All deals are in [references.csv](references.csv).
"""

AGREES, PARTLY, DISAGREES = "agrees", "agrees in part", "disagrees"


def write_page(measured: Measured, *, quick: bool) -> str:
    """The page as text."""
    gains, references = measured.gains, measured.references
    return PAGE.format(
        quick="\n\n**A quick run: too small to judge the claims.**" if quick else "",
        n_seeds=len({r["seed"] for r in gains}),
        shares=_shares_table(measured),
        gains=_gains_table(gains),
        claims=_claims_table(measured),
        text_shares=_text_shares(measured.doubt),
        text_gain=_text_gain(gains),
        text_source=_text_source(references),
        text_size=_text_size(references),
        text_expected=_text_expected(gains),
    )


def _shares_table(measured: Measured) -> str:
    rows = []
    for sigma, paper in zip(SIGMAS, PAPER_SHARES, strict=True):
        mean = summarise(measured.gains, sigma, NAIVE)
        counts = f"{mean['n_hard']:.0f} of {mean['n_test']:.0f}", f"{mean['n_reference']:.0f}"
        accuracy = f"{mean['base']:.2f}", f"{mean['base_hard']:.2f}"
        doubt = f"{measured.doubt[sigma].share:.2f} %", f"{paper:.2f} %"
        rows.append([str(sigma), *doubt, *counts, *accuracy])
    header = ["σ", "in doubt", "in the paper", "hard test rows", "confident validation rows"]
    return markdown_table([*header, "accuracy", "accuracy, hard rows"], rows)


def _gains_table(records: list[dict[str, Any]]) -> str:
    rows = []
    for sigma, (alpha, depth) in zip(SIGMAS, PAPER_SETTINGS, strict=True):
        found = [summarise(records, sigma, method) for method in (NAIVE, BEST, HONEST)]
        cells = [_cell(mean, "_hard") for mean in found] + [_cell(mean, "") for mean in found]
        chosen = _commonest(records, sigma)
        settings = [chosen, f"{alpha:g}, {depth}", f"{found[2]['adopted']:.0%}"]
        rows.append([str(sigma), *cells, *settings])
    methods = ["naive", "best (bound)", "honest"]
    header = [f"hard: {name}" for name in methods] + [f"all: {name}" for name in methods]
    settings = ["best: alpha, d", "in the paper", "honest: adopted"]
    return markdown_table(["σ", *header, *settings], rows)


def _cell(mean: dict[str, float], name: str) -> str:
    return f"{mean['gain' + name]:+.2f} ± {1.96 * mean['se' + name]:.2f}"


def _commonest(records: list[dict[str, Any]], sigma: int) -> str:
    """The setting that CAN-best took most often."""
    chosen = [r for r in records if r["sigma"] == sigma and r["method"] == BEST]
    settings = [(r["alpha"], r["depth"]) for r in chosen]
    return "{:g}, {}".format(*max(sorted(set(settings)), key=settings.count))


def gain_curve(records: list[dict[str, Any]], method: str) -> np.ndarray:
    """Mean gain on the rows in doubt for each blur."""
    return np.array([summarise(records, sigma, method)["gain_hard"] for sigma in SIGMAS])


def rises_then_falls(curve: np.ndarray) -> bool:
    """Whether a curve rises to its peak, which is not the first point, and falls from there."""
    peak = int(curve.argmax())
    rising, falling = np.diff(curve[: peak + 1]), np.diff(curve[peak:])
    return peak > 0 and bool((rising > 0).all() and (falling <= 0).all())


def _claims_table(measured: Measured) -> str:
    doubt = np.array([measured.doubt[sigma].share for sigma in SIGMAS])
    grows = AGREES if (np.diff(doubt) > 0).all() else PARTLY
    rows = [["blur puts more rows in doubt", grows]]
    text = "gain on the rows in doubt grows with blur until the classifier breaks down"
    for method in (NAIVE, BEST, HONEST):
        agrees = rises_then_falls(gain_curve(measured.gains, method))
        rows.append([f"{text}: {method}", AGREES if agrees else DISAGREES])
    return markdown_table(["the paper says", "here"], rows)


def _text_shares(doubt: dict[int, Doubt]) -> str:
    ours = np.array([doubt[sigma].share for sigma in SIGMAS])
    gap = ours - np.array(PAPER_SHARES)
    text = (
        f"Within {np.abs(gap).max():.1f} points of the paper's shares at every blur; ours are "
        f"{gap.mean():.1f} points higher on average, for another network and fewer images."
    )
    falls = [i for i in range(1, len(ours)) if ours[i] < ours[i - 1]]
    if falls:
        steps = ", ".join(
            f"from {ours[i - 1]:.1f} % at σ = {SIGMAS[i - 1]} to {ours[i]:.1f} % at {SIGMAS[i]}"
            for i in falls
        )
        found = doubt[SIGMAS[falls[0]]]
        text += (
            f" One difference: the share falls {steps}. There {found.top_five:.0f} % of the sure "
            f"rows fall into five classes, and {found.right:.0f} % are right: the network is sure "
            "of nothing real."
        )
    return text


def _text_gain(records: list[dict[str, Any]]) -> str:
    parts = []
    for method in (HONEST, BEST, NAIVE):
        curve = gain_curve(records, method)
        values = ", ".join(f"{x:+.1f}" for x in curve)
        parts.append(f"{method} {values} (largest at σ = {SIGMAS[int(curve.argmax())]})")
    at = SIGMAS[int(gain_curve(records, HONEST).argmax())]
    after = SIGMAS[min(SIGMAS.index(at) + 1, len(SIGMAS) - 1)]
    base, low = (summarise(records, sigma, HONEST)["base"] for sigma in (at, after))
    clear = summarise(records, 0, NAIVE)
    return (
        f"Points on the rows in doubt from σ = 0 to 32: {'; '.join(parts)}. Up to σ = {at} "
        f"(accuracy {base:.1f} %) the gain follows the blur; from σ = {after} (accuracy "
        f"{low:.1f} %) there is less and less left to gain. On clear images there is next to "
        "nothing to be had, even with the test labels at hand, and CAN-naive changes the accuracy "
        f"of hard rows by {clear['gain_hard']:+.1f} points: with {clear['n_reference'] / 1000:.1f} "
        "sure rows per class, chance decides much of the column sums."
    )


def _source_gain(references: list[dict[str, Any]], sigma: int, source: str) -> np.ndarray:
    return np.array(
        [
            r["gain_hard"]
            for r in references
            if (r["sigma"], r["source"], r["share"]) == (sigma, source, 1.0)
        ]
    )


def _text_source(references: list[dict[str, Any]]) -> str:
    sources = (OTHER, FOLDS, SAME)
    header = ["σ", *(f"sure rows of {source}" for source in sources)]
    rows = []
    for sigma in SIGMAS:
        found = [_source_gain(references, sigma, source) for source in sources]
        rows.append([str(sigma), *(f"{g.mean():+.2f} (sd {g.std():.2f})" for g in found)])
    other, same = (_source_gain(references, 0, source).mean() for source in (OTHER, SAME))
    return (
        "ImageNet's validation images are exactly balanced. If the sure rows of the *same* images "
        "serve as reference, they are the complement of the rows in doubt: where a class has few "
        "sure rows, more of its images must be among the doubtful. No label is looked at, and yet "
        f"the balance of the test set leaks: on clear images CAN-naive gains {same:+.1f} points "
        f"with the same images and {other:+.1f} with as many others (two images a class to test, "
        "two for reference). The description that we work from does not say which the paper used; "
        "a user, whose test data are not balanced by design, has the second. In the halves above "
        "a little of this is left, since of five images two are on one side and three on the "
        "other.\n\n" + markdown_table(header, rows)
    )


def _text_size(references: list[dict[str, Any]]) -> str:
    other = [r for r in references if r["source"] == OTHER]
    shares = sorted({r["share"] for r in other})
    parts = []
    for sigma in SIGMAS[:3]:
        ends = []
        for share in (shares[0], shares[-1]):
            rows = [r for r in other if (r["sigma"], r["share"]) == (sigma, share)]
            n, gain = (np.mean([r[name] for r in rows]) for name in ("n_reference", "gain_hard"))
            ends.append(f"{gain:+.1f} with {n:.0f} rows")
        parts.append(f"σ = {sigma}: {ends[0]}, {ends[1]}")
    return (
        f"{'; '.join(parts)}. A handful of rows is enough where the network is strongly biased "
        "towards a few classes (blurred images), and all that we have is too little where it is "
        "not. The paper has ten times as many images a class."
    )


def _text_expected(records: list[dict[str, Any]]) -> str:
    found = {sigma: summarise(records, sigma, HONEST) for sigma in SIGMAS}
    pairs = [
        f"{mean['expected_gain']:+.1f} and {mean['gain']:+.1f} at σ = {sigma} (adopted in "
        f"{mean['adopted']:.0%} of the splits)"
        for sigma, mean in found.items()
        if mean["adopted"] > 0
    ]
    return (
        f"Cross-fitted gain on validation, and gain on test (all rows): {', '.join(pairs)}. It "
        "promises a little more than is kept. Within a balanced set the other folds are short of "
        "just the class of the row that was taken out; with two images a class, cross-fitted "
        "CAN-naive looks almost as good as with the leak (middle column of the table)."
    )
