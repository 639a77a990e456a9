"""Which rows serve as reference: choices, sizes, and what each gains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import altnorm
from experiments.reference_choice.bench import THRESHOLDS, Bench, find_neighbours
from experiments.suite.files import Classifier, read_classifier

__all__ = [
    "ALL",
    "BALANCED",
    "CHOICES",
    "CONFIDENT",
    "DEFAULTS",
    "NEAREST",
    "PRIORS",
    "STRATIFIED",
    "WEIGHTED",
    "WHOLE",
    "Candidate",
    "Design",
    "Key",
    "choose",
    "draw_weights",
    "measure",
    "read_limited",
]

CONFIDENT, ALL, STRATIFIED, BALANCED, WEIGHTED, NEAREST = CHOICES = (
    "confident",
    "all",
    "stratified",
    "balanced",
    "weighted",
    "nearest",
)
DEFAULTS = "confident or all, smoothed"
PRIORS = ("shrunk", "uniform", "counted")
WHOLE = 0  # stands for a reference of all rows there are


class Design(NamedTuple):
    """What is tried."""

    sizes: tuple[int, ...]
    near_sizes: tuple[int, ...]  # of the nearest rows, which cost most
    n_draws: int
    alphas: tuple[float, ...]
    smoothings: tuple[float, ...]
    max_rows: int  # of validation and of test data
    search: dict[str, Any]  # options of AlternatingNormalizerCV; empty is its defaults


class Key(NamedTuple):
    """One reference."""

    choice: str
    size: int
    draw: int
    prior: str


class Candidate(NamedTuple):
    """One setting with one reference: what it gains in cross-fitting and on test data."""

    key: Key
    alpha: float
    threshold: float
    smoothing: float
    expected: float
    gain: float


def read_limited(path: Path, max_rows: int, seed: int) -> Classifier:
    """Read a classifier; of more than `max_rows` rows take a random part."""
    data = read_classifier(path, seed=seed)
    rng = np.random.default_rng(seed)
    val, test = (
        rng.permutation(len(y))[:max_rows] if len(y) > max_rows else np.arange(len(y))
        for y in (data.val_y, data.test_y)
    )
    return Classifier(
        data.name, data.val_proba[val], data.val_y[val], data.test_proba[test], data.test_y[test]
    )


def draw_weights(
    bench: Bench, choice: str, size: int, threshold: float, rng: np.random.Generator
) -> np.ndarray:
    """Weight of each validation row as reference; 0 where it does not serve.

    Parameters
    ----------
    bench : Bench
        The validation rows.
    choice : str
        "confident": rows that are not in doubt at `threshold`. "all": any rows. "stratified": as
        many of each predicted class as its share of all rows. "balanced": any rows, weighted such
        that every predicted class counts the same. "weighted": any rows, weighted by 1 minus
        their ambiguity.
    size : int
        How many rows; `WHOLE`, or more than there are, takes them all.
    threshold : float
        Ambiguity above which a row is in doubt.
    rng : numpy.random.Generator
        Source of the draw.

    Returns
    -------
    ndarray of shape (n_val,)
        Weights; all 0 if no row qualifies.
    """
    n = len(bench.folds)
    pool = np.flatnonzero(bench.ambiguity <= threshold) if choice == CONFIDENT else np.arange(n)
    size = min(size or n, pool.size)
    if choice == STRATIFIED:
        order = pool[np.lexsort((rng.random(n), bench.predicted))]
        chosen = order[((np.arange(size) + rng.random()) * n / size).astype(int) % n]
    else:
        chosen = rng.choice(pool, size, replace=False) if size else pool
    weight = np.zeros(n)
    weight[chosen] = 1.0
    if choice == WEIGHTED:
        weight *= 1 - bench.ambiguity
    if choice == BALANCED:
        weight /= np.maximum(np.bincount(bench.predicted, weight), 1)[bench.predicted]
        weight *= size / weight.sum()
    return weight


def measure(path: Path, design: Design, seed: int) -> tuple[list[Candidate], dict[str, Any]]:
    """Try all references on one classifier.

    Parameters
    ----------
    path : Path
        Its predictions.
    design : Design
        What to try.
    seed : int
        Of the folds and the draws.

    Returns
    -------
    candidates : list of Candidate
        All that was tried.
    about : dict
        Name, sizes, accuracy, and what AlternatingNormalizerCV gains.
    """
    data = read_limited(path, design.max_rows, seed)
    bench = Bench(data, seed)
    references = list(_references(bench, design, seed))
    sizes = tuple(k for k in design.near_sizes if k <= bench.outside.sum(axis=1).min())
    neighbours = find_neighbours(bench, sizes)
    priors = {kind: bench.priors(kind) for kind in PRIORS}
    found: list[Candidate] = []
    for alpha in design.alphas:
        power, reference = bench.rows.proba**alpha, data.val_proba**alpha
        for key, threshold, weight in references:
            masses = bench.outside * weight
            for kind in PRIORS if key.size == WHOLE else PRIORS[:1]:
                tried = _try(bench, power, masses, masses @ reference, priors[kind], design, key)
                for smoothing, gains in tried:
                    named = key._replace(prior=kind)
                    found += _candidates(named, alpha, smoothing, gains, threshold)
        for size, serves in neighbours.items():
            gains = bench.gains(power, serves @ reference, priors["shrunk"])
            found += _candidates(Key(NEAREST, size, 0, "shrunk"), alpha, 0.0, gains, None)
    return found, describe(data, design)


def _references(
    bench: Bench, design: Design, seed: int
) -> Iterator[tuple[Key, float | None, np.ndarray]]:
    """References that are the same for all rows; only confident ones depend on the threshold."""
    rng = np.random.default_rng(seed)
    for size in (*design.sizes, WHOLE):
        for draw in range(design.n_draws if size != WHOLE else 1):
            for choice in (CONFIDENT, ALL, STRATIFIED, BALANCED, WEIGHTED):
                key = Key(choice, size, draw, "shrunk")
                if choice == CONFIDENT:
                    for t in THRESHOLDS:
                        yield key, t, draw_weights(bench, choice, size, t, rng)
                else:
                    yield key, None, draw_weights(bench, choice, size, 1.0, rng)


def _try(
    bench: Bench,
    power: np.ndarray,
    masses: np.ndarray,
    sums: np.ndarray,
    priors: np.ndarray,
    design: Design,
    key: Key,
) -> Iterator[tuple[float, np.ndarray]]:
    """Gains for each smoothing; nothing where some span has no reference."""
    total = masses.sum(axis=1, keepdims=True)
    if not total.all():
        return
    for smoothing in design.smoothings if key.choice in (CONFIDENT, ALL) else (0.0,):
        yield smoothing, bench.gains(power, sums + smoothing * total * priors, priors)


def _candidates(
    key: Key, alpha: float, smoothing: float, gains: np.ndarray, threshold: float | None
) -> Iterator[Candidate]:
    for t, (expected, gain) in zip(THRESHOLDS, gains, strict=True):
        if threshold is None or t == threshold:
            yield Candidate(key, alpha, t, smoothing, float(expected), float(gain))


def describe(data: Classifier, design: Design) -> dict[str, Any]:
    """What the library itself gains, with references and settings chosen by its own search."""
    search = altnorm.AlternatingNormalizerCV(**design.search)
    search.fit(data.val_proba, data.val_y)
    after = search.transform(data.test_proba).argmax(axis=1) == data.test_y
    before = data.test_proba.argmax(axis=1) == data.test_y
    return {
        "classifier": data.name,
        "classes": data.val_proba.shape[1],
        "validation": len(data.val_y),
        "confident": int((altnorm.ambiguity(data.val_proba) <= max(THRESHOLDS)).sum()),
        "base": 100 * float(before.mean()),
        "library_gain": 100 * float(after.mean() - before.mean()),
        "library_adopted": search.verdict_.adopted,
    }


def choose(candidates: list[Candidate]) -> Candidate | None:
    """The best in cross-fitting; none unless it is better than doing nothing."""
    best = max(candidates, key=lambda one: one.expected, default=None)
    return None if best is None or best.expected <= 0 else best
