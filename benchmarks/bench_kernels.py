"""Many classes: the kernel beside a loop, bare products, softmax and partition."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from altnorm import alternating_normalization, ambiguity
from altnorm.method import paper
from benchmarks.data import IN_DOUBT, SURE, class_prior, classifier_rows
from benchmarks.harness import Row, alternate, at_most, benchmark

N_REFERENCE, N_CLASSES, N_ROWS, DEPTH = 5_000, 1_000, 2_000, 5
N_LOOP = 2  # rows that the loop is timed on
N_FEW = 400
N_WIDE = 50_000


@benchmark
def depth_five() -> list[Row]:
    """Depth 5 against the row-by-row loop and against the products it cannot do without."""
    rng = np.random.default_rng(0)
    reference = classifier_rows(rng, N_REFERENCE, N_CLASSES, SURE)
    proba = classifier_rows(rng, N_ROWS, N_CLASSES, IN_DOUBT)
    prior = class_prior(rng, N_CLASSES)
    rows: list[Row] = []
    for alpha in (1.0, 0.7):
        rows += _depth_five(proba, reference, prior, alpha)
    return rows


def _depth_five(
    proba: np.ndarray, reference: np.ndarray, prior: np.ndarray, alpha: float
) -> list[Row]:
    wide = np.random.default_rng(1).random((N_ROWS, N_REFERENCE))
    sample = proba[:N_LOOP]

    def ours() -> np.ndarray:
        return np.asarray(
            alternating_normalization(proba, reference, prior=prior, alpha=alpha, depth=DEPTH)
        )

    def products() -> None:
        for _ in range(DEPTH - 1):
            _ = proba @ reference.T
            _ = wide @ reference

    def loop() -> np.ndarray:
        return np.array([paper.adjust(b0, reference, prior, alpha, DEPTH) for b0 in sample])

    error = np.abs(ours()[:N_LOOP] - loop()).max()
    fast, bare, slow = alternate(ours, products, loop, repeats=3)
    what = f"{N_ROWS:,} rows, {N_REFERENCE:,} references, {N_CLASSES:,} classes, depth {DEPTH}"
    what += f", alpha {alpha:g}"
    per_row, loop_per_row = fast / N_ROWS, slow / N_LOOP
    detail = f"{1e3 * per_row:.2f} ms per row, loop {loop_per_row:.2f} s, differ by {error:.0e}"
    return [
        at_most(
            "products",
            f"{what}: time over that of the {2 * (DEPTH - 1)} bare products",
            fast / bare,
            1.5,
            f"{fast:.2f} s, products {bare:.2f} s",
        ),
        # No target: it depends on the machine, whose memory bounds the loop.
        Row(
            "loop",
            f"{what}: faster per row than the loop",
            f"{loop_per_row / per_row:.0f}x ({detail})",
        ),
    ]


@benchmark
def large_exponents() -> list[Row]:
    """Depth 5 with exponents at which most entries of the products underflow."""
    rng = np.random.default_rng(0)
    reference = classifier_rows(rng, N_REFERENCE, N_CLASSES, SURE)
    proba = classifier_rows(rng, N_FEW, N_CLASSES, IN_DOUBT)
    prior = class_prior(rng, N_CLASSES)
    rows = []
    for alpha in (5.0, 35.0):
        options = {"alpha": alpha, "depth": DEPTH}
        fast, slow = alternate(
            lambda o=options: alternating_normalization(proba, reference, prior=prior, **o),
            lambda a=alpha: [paper.adjust(b, reference, prior, a, DEPTH) for b in proba[:N_LOOP]],
            repeats=2,
        )
        per_row, loop_per_row = fast / N_FEW, slow / N_LOOP
        what = f"{N_FEW:,} rows, {N_REFERENCE:,} references, {N_CLASSES:,} classes, depth {DEPTH}"
        measured = f"{loop_per_row / per_row:,.0f}x ({1e3 * per_row:.1f} ms per row)"
        rows.append(Row("loop", f"{what}, alpha {alpha:g}: faster per row than the loop", measured))
    return rows


@benchmark
def depth_one() -> list[Row]:
    """Depth 1 of a whole prediction matrix against SciPy's softmax of it."""
    rng = np.random.default_rng(2)
    proba = classifier_rows(rng, N_WIDE, N_CLASSES, IN_DOUBT)
    reference = classifier_rows(rng, N_REFERENCE, N_CLASSES, SURE)
    prior = class_prior(rng, N_CLASSES)
    rows = []
    for alpha in (1.0, 0.7):
        ours, peer = alternate(
            lambda alpha=alpha: alternating_normalization(  # type: ignore[misc]
                proba, reference, prior=prior, alpha=alpha
            ),
            lambda: softmax(proba, axis=1),
        )
        what = f"{N_WIDE:,} x {N_CLASSES:,}, depth 1, alpha {alpha:g}: time over SciPy's softmax"
        detail = f"{ours:.2f} s, softmax {peer:.2f} s"
        rows.append(at_most("depth 1", what, ours / peer, 4, detail))
    return rows


@benchmark
def doubt() -> list[Row]:
    """Ambiguity of a whole prediction matrix against NumPy's partition of it."""
    proba = classifier_rows(np.random.default_rng(3), N_WIDE, N_CLASSES, IN_DOUBT)
    ours, peer = alternate(
        lambda: ambiguity(proba),
        lambda: np.partition(proba, N_CLASSES - 10, axis=1)[:, -10:],
    )
    what = f"{N_WIDE:,} x {N_CLASSES:,}, ambiguity: time over np.partition for the top 10"
    detail = f"{ours:.2f} s, partition {peer:.2f} s"
    return [at_most("ambiguity", what, ours / peer, 3, detail)]
