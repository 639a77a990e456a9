"""The page of results: tables, and sentences that follow from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.evidence import findings
from experiments.evidence.study import PLAIN, REFINED, Design, Record
from experiments.evidence.summary import (
    NOMINAL,
    compare_share,
    count,
    has_room,
    honesty,
    mean,
    points,
    select,
)
from experiments.evidence.worlds import AGAINST, BIASED, NULL, SPREAD

__all__ = ["write_page"]

_PAGE = """\
# Does the verdict keep its word?

`python -m experiments.evidence`: {n_sets:,} simulated data sets, judged by
{n_fits:,} fits in {minutes:.1f} minutes with {jobs} workers.{quick}

`AlternatingNormalizerCV` with its default settings, and with `refine=True`, on predictions whose
truth is known. Adjustments are adopted at a p-value below 0.05, two-sided, and only if they gain,
so where there is nothing to gain at most {nominal} of data sets should see one. A *true* gain is
that of the fitted normalizer on {n_fresh:,} fresh rows of the same kind, averaged over their labels
instead of drawing them: the luck of labels has no part in it. Brackets are exact (Clopper-Pearson)
95 % intervals, ± is 1.96 standard errors, gains are in points of the score.

**In short**

{short}

![Adoption against the strength of the bias; reported against true gains](evidence.png)

Default settings; bars are 95 % intervals. Every data set is in [results.csv](results.csv).

## 1. Where there is nothing to gain

{n_null} data sets for each world and size; {n_many} with 100 classes, which take longer, and
{n_sharp} with unrelated labels, where every decision is as good as any other: nothing but the test
stands between chance and adoption there, whereas calibrated predictions lose by every change. "To
gain": what the best decisions there are would gain, those of someone who knows the true
probabilities but not the labels. The level is *kept* where the interval lies below {nominal},
*not kept* where it lies above.

{null}

{null_text}

## 2. Where there is something

The classifier is biased against {against} of ten classes: it takes 0.25 to 2 off their log-odds.
{n_biased} data sets for each strength and size.

{biased}

{biased_text}

## 3. Is the reported gain honest?

All data sets of part 2. The true gain is that of the best setting, whether it was adopted or not,
so that adoption selects nothing; the lines "adopted" and "not adopted" show what it selects.
"Below" and "above" count the data sets whose true gain lies below and above the interval.

{honest}

{honest_text}

## How the worlds are made

- Logits are normal with standard deviation {spread:g}. *Calibrated*: the classifier reports their
  softmax, and labels are drawn from it, so that no adjustment can raise the accuracy. *Uneven
  classes*: the logits of the ten classes are shifted by -1.5 to 1.5.
- *Labels unrelated to predictions*: the same predictions, ten equally probable classes drawn apart
  from them, so that every decision is as good as any other.
- *pairs*, *labelwise*: six labels a row, independent, with the logistic function of logits of mean
  -1 as their probability, reported as it is. For subset accuracy nothing is better than to say yes
  above 0.5; for micro-F1, the default, it is better to say yes from a lower probability on.
- Every data set has its own seed, made from `--seed`, the world, the size and its number.
"""


def write_page(
    records: Sequence[Record], design: Design, *, seconds: float, jobs: int, quick: bool
) -> str:
    """Render the page."""
    small = " A quick run: few data sets, few settings, other sizes." if quick else ""
    return _PAGE.format(
        n_sets=len({(r.world, r.n_rows, r.number) for r in records}),
        n_fits=len(records),
        minutes=seconds / 60,
        jobs=jobs,
        quick=small,
        nominal=f"{100 * NOMINAL:.1f} %",
        short=findings.in_short(records),
        null=_null_table(records, design),
        null_text=findings.text_null(records),
        against=AGAINST,
        biased=_biased_table(records, design),
        biased_text=findings.text_biased(records),
        honest=_honest_table(records, design),
        honest_text=findings.text_honest(records),
        spread=SPREAD,
        **vars(design),
    )


def _null_table(records: Sequence[Record], design: Design) -> str:
    rows = []
    for world in NULL:
        for variant in (PLAIN,) if world.multilabel else (PLAIN, REFINED):
            for n in design.sizes:
                group = select(records, world=world.name, variant=variant, n_rows=n)
                share = count([r.adopted for r in group])
                level = findings.LEVEL[compare_share(share, NOMINAL)]
                rows.append(
                    [
                        world.name,
                        variant,
                        f"{n:,}",
                        f"{np.mean([r.room for r in group]) * 100:.1f}",
                        f"{share.n} of {share.of}",
                        str(share),
                        "there is something to gain" if has_room(group) else level,
                        _if_adopted(group),
                    ]
                )
    header = "world, variant, rows, to gain, adopted, share, level, true gain if adopted"
    return markdown_table(header.split(", "), rows)


def _biased_table(records: Sequence[Record], design: Design) -> str:
    rows = []
    for world in BIASED:
        for variant in (PLAIN, REFINED):
            for n in design.sizes:
                group = select(records, world=world.name, variant=variant, n_rows=n)
                rows.append(
                    [
                        f"{world.bias:g}",
                        variant,
                        f"{n:,}",
                        f"{np.mean([r.room for r in group]) * 100:.1f}",
                        str(count([r.adopted for r in group])),
                        str(mean([r.gain for r in group])),
                        _if_adopted(group),
                        points(min(r.gain for r in group)),
                    ]
                )
    header = "bias, variant, rows, to gain, adopted, true gain, true gain if adopted, worst"
    return markdown_table(header.split(", "), rows)


def _if_adopted(group: Sequence[Record]) -> str:
    gains = [r.gain for r in group if r.adopted]
    return str(mean(gains)) if gains else ""


def _honest_table(records: Sequence[Record], design: Design) -> str:
    rows = []
    for variant in (PLAIN, REFINED):
        chosen = findings.biased(records, variant)
        groups = {"all": chosen}
        groups |= {f"{n:,} rows": select(chosen, n_rows=n) for n in design.sizes}
        groups |= {f"bias {w.bias:g}": select(chosen, world=w.name) for w in BIASED}
        groups |= {"adopted": select(chosen, adopted=True)}
        groups |= {"not adopted": select(chosen, adopted=False)}
        for name, group in groups.items():
            if group:
                found = honesty(group)
                means = [str(x) for x in found[:3]]
                numbers = [str(found.covered), str(found.below), str(found.above)]
                rows.append([variant, name, str(len(group)), *means, *numbers])
    header = "variant, data sets, number, reported, true, reported - true, covered, below, above"
    return markdown_table(header.split(", "), rows)
