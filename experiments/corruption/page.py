"""The Markdown page of the corruption study."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from experiments._output import markdown_table
from experiments.corruption.figures import figure_name
from experiments.corruption.study import (
    BEST,
    CLEAN,
    METHODS,
    MODELS,
    NAIVE,
    RENEWED,
    SAME,
    Design,
    select,
    summarise,
)

__all__ = ["Change", "find_changes", "write_page"]

PAGE = """\
# Corruption: the blur study on language

`python -m experiments.corruption --data DIR`{quick}

The paper leaves open whether, as with blurred images, the gain on language grows as the input gets
worse. Here classifiers of TF-IDF weighted words ({models}) are trained on clean text ({corpora})
and then read corrupted text. Typos: each letter is, with the given rate, deleted, replaced, or
exchanged with its neighbour. Dropped words: each word is left out with the given rate. Rows are in
doubt at an ambiguity above 0.75; the classes of validation and test data are balanced, and the
prior is uniform. Draws of each corruption: {n_seeds}.

- **CAN-naive** (alpha 1, depth 1) and **CAN-best** (tuned on the test data: an upper bound for the
  paper's family of settings): confident rows of validation text corrupted like test as reference.
- **tuned, corrupted like test**: `AlternatingNormalizerCV` on validation text corrupted in the same
  way.
- **tuned, clean**: the same on clean validation text, applied to corrupted test text. This is what
  happens to a user whose data get worse after deployment.
- **renewed**: settings from clean validation, but the reference replaced by predictions on
  corrupted text, which needs no labels.

{figures}

Bars: 95 % intervals over test texts. All numbers are in [gains.csv](gains.csv).

## Does the gain follow the corruption?

{answer}

{changes}

## Means over the classifiers

Gain on the rows in doubt, in points (in brackets: on all rows).

{means}

{findings}
"""

GROWS, FALLS, OPEN = "grows", "falls", "no clear change"


class Change(NamedTuple):
    """Gain on the rows in doubt on clean text, and where corruption has halved the accuracy."""

    corpus: str
    model: str
    kind: str
    rate: float
    clean: float
    halved: float
    margin: float
    biases: tuple[float, float]  # on clean text and where the accuracy is halved

    @property
    def verdict(self) -> str:
        """Whether the gain surely changed."""
        if abs(self.halved - self.clean) <= self.margin:
            return OPEN
        return GROWS if self.halved > self.clean else FALLS


def find_changes(records: list[dict[str, Any]], design: Design, method: str) -> list[Change]:
    """Compare clean text with the rate at which accuracy is nearest to half of what it was."""
    found = []
    for corpus, model, kind in product(design.corpora, MODELS, design.rates):
        chosen = select(records, corpus=corpus, model=model, kind=kind, method=method)
        clean, *others = (
            summarise(select(chosen, rate=rate)) for rate in (0.0, *design.rates[kind])
        )
        gaps = [abs(row["base"] - clean["base"] / 2) for row in others]
        at = int(np.argmin(gaps))
        margin = 1.96 * float(np.hypot(clean["se_hard"], others[at]["se_hard"]))
        gains = clean["gain_hard"], others[at]["gain_hard"]
        biases = clean["bias"], others[at]["bias"]
        found.append(Change(corpus, model, kind, design.rates[kind][at], *gains, margin, biases))
    return found


def write_page(records: list[dict[str, Any]], design: Design, *, quick: bool) -> str:
    """The page as text."""
    figures = [
        f"![Gain on the rows in doubt against the rate of {kind}]({figure_name(kind)}.png)"
        for kind in design.rates
    ]
    changes = {method: find_changes(records, design, method) for method in (SAME, BEST, NAIVE)}
    return PAGE.format(
        quick="\n\n**A quick run: too small to judge the claims.**" if quick else "",
        models=" and ".join(MODELS),
        corpora=", ".join(design.corpora),
        n_seeds=design.n_seeds,
        figures="\n\n".join(figures),
        answer=_answer(changes),
        changes=_changes_table(changes[SAME]),
        means=_means_table(records, design),
        findings=_findings(records),
    )


def _answer(changes: dict[str, list[Change]]) -> str:
    """What happens where corruption has halved the accuracy, for each classifier and method."""
    rows, growing = [], {}
    for model in MODELS:
        for method, found in changes.items():
            mine = [c for c in found if c.model == model]
            counts = [sum(c.verdict == verdict for c in mine) for verdict in (GROWS, FALLS, OPEN)]
            clean, halved = (np.mean([getattr(c, x) for c in mine]) for x in ("clean", "halved"))
            gains = [f"{clean:+.2f}", f"{halved:+.2f}"]
            rows.append([f"{model}, {method}", *gains, *map(str, counts)])
            growing[model, method] = halved - clean
    ups = [model for model in MODELS if growing[model, SAME] > 0 and growing[model, BEST] > 0]
    downs = [model for model in MODELS if growing[model, SAME] < 0 and growing[model, BEST] < 0]
    header = ["classifier, method", "clean", "accuracy halved", "grows", "falls", "unclear"]
    pairs = {m: np.mean([c.biases for c in changes[SAME] if c.model == m], axis=0) for m in MODELS}
    biases = {model: "{:.0f} % and {:.0f} %".format(*pair) for model, pair in pairs.items()}
    return _verdict(ups, downs, biases) + "\n\n" + markdown_table(header, rows)


def _verdict(ups: list[str], downs: list[str], biases: dict[str, str]) -> str:
    if ups and downs:
        text = (
            f"**It depends on the classifier.** For {' and '.join(ups)} the gain on the rows in "
            "doubt behaves as in the paper's blur study: small on clean text, larger on corrupted "
            f"text, smaller again when little can be read. For {' and '.join(downs)} it is "
            "largest on clean text and falls from there. More doubt alone does not make the "
            "method gain more. What differs is the bias, the total variation between mean "
            "prediction and prior, on clean text and where the accuracy is halved: "
            f"{'; '.join(f'{model} {told}' for model, told in biases.items())}. This suggests that "
            "the gain follows where corruption makes the bias; where the bias was there before, "
            "corruption mostly adds rows that nothing can put right. Two kinds of classifier do "
            "not prove it."
        )
    else:
        text = f"**The gain {'grows' if ups else 'does not grow'}** with corruption."
    return (
        text + " Mean gain on the rows in doubt, on clean text and where corruption has halved the "
        "accuracy, and in how many cases it surely grows or falls:"
    )


def _changes_table(changes: list[Change]) -> str:
    rows = [
        [
            f"{c.corpus}, {c.model}, {c.kind}",
            f"{c.rate:.0%}",
            f"{c.clean:+.2f}",
            f"{c.halved:+.2f}",
            f"{c.halved - c.clean:+.2f} ± {c.margin:.2f}",
            c.verdict,
            "{:.0f} %, {:.0f} %".format(*c.biases),
        ]
        for c in changes
    ]
    header = ["tuned on validation corrupted like test", "rate", "clean", "halved", "change", ""]
    header += ["bias: clean, halved"]
    return markdown_table(header, rows)


def _means_table(records: list[dict[str, Any]], design: Design) -> str:
    rows = []
    for kind, rates in design.rates.items():
        for rate in (0.0, *rates):
            chosen = select(records, kind=kind, rate=rate)
            found = [summarise(select(chosen, method=method)) for method in METHODS]
            about = [f"{found[0]['share']:.0f} %", f"{found[0]['base']:.1f}"]
            cells = [f"{row['gain_hard']:+.2f} ({row['gain']:+.2f})" for row in found]
            rows.append([f"{kind}, {rate:.0%}", *about, *cells])
    names = ["CAN-naive", "CAN-best (bound)", "corrupted like test", "clean", "renewed"]
    return markdown_table(["corruption", "in doubt", "accuracy", *names], rows)


def _findings(records: list[dict[str, Any]]) -> str:
    corrupted = [r for r in records if r["rate"] > 0]
    gains = {m: [r["gain"] for r in select(corrupted, method=m)] for m in METHODS}
    mean = {method: np.mean(values) for method, values in gains.items()}
    worst = {method: np.min(values) for method, values in gains.items()}
    same = select(corrupted, method=SAME)
    by_corpus = [
        f"{corpus} {np.mean([r['gain'] for r in select(same, corpus=corpus)]):+.2f}"
        for corpus in dict.fromkeys(r["corpus"] for r in corrupted)
    ]
    return (
        f"- All rows, mean over all corruptions (and the worst case): tuned on validation "
        f"corrupted like test {mean[SAME]:+.2f} ({worst[SAME]:+.2f}), tuned on clean validation "
        f"{mean[CLEAN]:+.2f} ({worst[CLEAN]:+.2f}), the latter with a renewed reference "
        f"{mean[RENEWED]:+.2f} ({worst[RENEWED]:+.2f}); CAN-naive {mean[NAIVE]:+.2f} "
        f"({worst[NAIVE]:+.2f}), CAN-best {mean[BEST]:+.2f}.\n"
        f"- By data set, tuned on validation corrupted like test: {', '.join(by_corpus)}. The gain "
        "comes from a bias against the prior, and a classifier that was trained on imbalanced data "
        "has one from the start."
    )
