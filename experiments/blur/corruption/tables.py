"""The tables of the corruption study's page."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from experiments._output import markdown_table
from experiments.blur.corruption.study import (
    BEST,
    METHODS,
    MODELS,
    NAIVE,
    SAME,
    Design,
    select,
    summarise,
)

__all__ = ["FALLS", "GROWS", "OPEN", "Change", "find_changes", "make_tables"]

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


def make_tables(records: list[dict[str, Any]], design: Design) -> dict[str, str]:
    """The tables of the page."""
    changes = {method: find_changes(records, design, method) for method in (SAME, BEST, NAIVE)}
    return {
        "halved": _halved_table(changes),
        "rates": _rates_table(records, design),
        "methods": _methods_table(records),
    }


def _halved_table(changes: dict[str, list[Change]]) -> str:
    """What happens where corruption has halved the accuracy, for each classifier and method."""
    rows = []
    for model in MODELS:
        for method, found in changes.items():
            mine = [c for c in found if c.model == model]
            counts = [sum(c.verdict == verdict for c in mine) for verdict in (GROWS, FALLS, OPEN)]
            clean, halved = (np.mean([getattr(c, x) for c in mine]) for x in ("clean", "halved"))
            biases = np.mean([c.biases for c in mine], axis=0)
            gains = [f"{clean:+.2f}", f"{halved:+.2f}"]
            text = "{:.0f} %, {:.0f} %".format(*biases)
            rows.append([f"{model}, {method}", *gains, *map(str, counts), text])
    header = ["classifier, method", "clean", "accuracy halved", "grows", "falls", "unclear"]
    return markdown_table([*header, "bias: clean, halved"], rows)


_SHORT = ("CAN-naive", "CAN-best (bound)", "corrupted like test", "clean", "renewed")


def _rates_table(records: list[dict[str, Any]], design: Design) -> str:
    """Gain on the rows in doubt; clean text is the same for both kinds of corruption."""
    cases = [
        (f"{kind}, {rate:.0%}", kind, rate) for kind in design.rates for rate in design.rates[kind]
    ]
    rows = []
    for name, kind, rate in (("clean", next(iter(design.rates)), 0.0), *cases):
        chosen = select(records, kind=kind, rate=rate)
        found = [summarise(select(chosen, method=method)) for method in METHODS]
        about = [f"{found[0]['share']:.0f} %", f"{found[0]['base']:.1f}"]
        rows.append([name, *about, *(f"{row['gain_hard']:+.2f}" for row in found)])
    return markdown_table(["corruption", "in doubt", "accuracy", *_SHORT], rows)


def _methods_table(records: list[dict[str, Any]]) -> str:
    """Gain on all rows over all corruptions: mean, worst, and how often adopted."""
    rows = []
    for method, name in zip(METHODS, _SHORT, strict=True):
        chosen = [r for r in select(records, method=method) if r["rate"] > 0]
        gains = np.array([r["gain"] for r in chosen])
        adopted = f"{sum(r['adopted'] for r in chosen)} of {len(chosen)}"
        text = "always" if method in (NAIVE, BEST) else adopted
        rows.append([name, f"{gains.mean():+.2f}", f"{gains.min():+.2f}", text])
    return markdown_table(["corrupted text, all rows", "mean", "worst", "adopted"], rows)
