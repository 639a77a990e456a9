"""Why gains fall on handwritten digits: ``python -m experiments.benchmark.forms``, half a minute.

The description of scikit-learn's digits says that 13 people wrote them, not who wrote which. But
everybody filled in the same form: the classes of the first rows come again wherever a form begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from experiments._output import markdown_table
from experiments.benchmark.classifiers import KINDS, train
from experiments.benchmark.measure import measure
from experiments.benchmark.methods import METHODS
from experiments.benchmark.sources import SOURCES, read_thirds

__all__ = ["compare_orders", "describe", "form_starts"]

N_FIRST = 20
N_MISSING = 3  # of the first rows of a form, which may be another class or left out


def form_starts(classes: np.ndarray) -> np.ndarray:
    """The rows at which a form begins."""
    windows = np.lib.stride_tricks.sliding_window_view(classes, N_FIRST)
    alike = (windows == classes[:N_FIRST]).sum(axis=1) >= N_FIRST - N_MISSING
    starts = np.flatnonzero(alike)
    return starts[np.diff(starts, prepend=-N_FIRST) >= N_FIRST]


def describe(classes: np.ndarray) -> str:
    """How many rows of the last third are of a form that has rows in an earlier third, too."""
    starts = form_starts(classes)
    third = np.array_split(np.arange(len(classes)), 3)[2][0]
    later = starts[starts >= third]
    return (
        f"{len(starts)} forms, of {np.diff(starts).min()} to {np.diff(starts).max()} rows. "
        f"Of the {len(classes) - third} rows of the last third {later[0] - third} belong to a form "
        f"that begins in the second third, the others to {len(later)} forms of their own."
    )


def compare_orders() -> str:
    """Accuracy of the classifiers, and what `Adjuster` adds: thirds by the file, and at random."""
    rows = zip(KINDS, _found(in_order=True), _found(in_order=False), strict=True)
    header = ("classifier", "file order", "gain", "at random", "gain")
    return markdown_table(header, [[kind, *ours, *drawn] for kind, ours, drawn in rows])


def _found(*, in_order: bool) -> Iterator[tuple[str, str]]:
    digits = next(source for source in SOURCES if source.name == "scikit-learn/digits")
    adjuster = next(method for method in METHODS if method.name == "Adjuster")
    thirds = read_thirds(replace(digits, ordered=in_order), Path())
    for kind in KINDS:
        classifier = train(thirds, kind)
        before, after = (measure(classifier, m)[-1]["accuracy"] for m in (None, adjuster))
        yield f"{before:.1f} %", f"{after - before:+.1f}"


if __name__ == "__main__":
    print(describe(load_digits().target), compare_orders(), sep="\n\n")
