"""From everything that was tried to one line a classifier, choice, size and draw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from experiments.reference_choice.study import (
    ALL,
    CONFIDENT,
    DEFAULTS,
    NEAREST,
    WHOLE,
    Candidate,
    Design,
    Key,
    choose,
)

__all__ = ["NAIVE", "TUNED", "Results", "Summary", "collect", "suite_means", "summarise"]

NAIVE, TUNED = "naive_gain", "tuned_gain"


class Results(NamedTuple):
    """What was measured, as tables."""

    gains: list[dict[str, Any]]  # one row a classifier, choice, size, draw and prior
    classifiers: list[dict[str, Any]]


class Summary(NamedTuple):
    """Gains over the suite; each classifier counts once."""

    mean: float
    worst: float
    better: int
    worse: int


def collect(parts: Iterable[tuple[list[Candidate], dict[str, Any]]], design: Design) -> Results:
    """Choose a setting for each reference, and for confident and all rows together.

    Parameters
    ----------
    parts : iterable of (candidates, about)
        What :func:`experiments.reference_choice.study.measure` returned for each classifier.
    design : Design
        What was tried.

    Returns
    -------
    Results
        The tables.
    """
    gains, classifiers = [], []
    for candidates, about in parts:
        classifiers.append(about)
        groups = defaultdict(list)
        for one in candidates:
            groups[one.key].append(one)
        for key in _all_keys(groups, design):
            gains.append({"classifier": about["classifier"]} | _row(key, groups))
    return Results(gains, classifiers)


def _all_keys(groups: dict[Key, list[Candidate]], design: Design) -> list[Key]:
    """Keys that were tried, the library's pair of references, and what a size stands for."""
    keys = list(groups)
    keys += [key._replace(choice=DEFAULTS) for key in keys if key.choice == ALL]
    # All neighbours are all rows; a size that a small classifier does not have is all it has.
    for size in (*design.near_sizes, WHOLE):
        if Key(NEAREST, size, 0, "shrunk") not in groups:
            keys.append(Key(NEAREST, size, 0, "shrunk"))
    return keys


def _row(key: Key, groups: dict[Key, list[Candidate]]) -> dict[str, Any]:
    if key.choice == DEFAULTS:
        pair = [groups.get(key._replace(choice=choice), []) for choice in (CONFIDENT, ALL)]
        tried = [*pair[0], *pair[1]]
    else:
        source = key if key in groups else Key(ALL, WHOLE, 0, key.prior)
        tried = [one for one in groups.get(source, []) if one.smoothing == 0]
    naive = [one.gain for one in tried if (one.alpha, one.threshold) == (1.0, 0.75)]
    best = choose(tried)
    return {
        **key._asdict(),
        NAIVE: naive[0] if naive and key.choice != DEFAULTS else 0.0,
        TUNED: best.gain if best else 0.0,
        "expected": best.expected if best else 0.0,
        "alpha": best.alpha if best else "",
        "threshold": best.threshold if best else "",
        "smoothing": best.smoothing if best else "",
    }


def suite_means(
    gains: list[dict[str, Any]], choice: str, size: int, name: str, prior: str = "shrunk"
) -> np.ndarray:
    """Mean over the classifiers of one gain, for each draw."""
    wanted = (choice, size, prior)
    by_draw = defaultdict(list)
    for row in gains:
        if (row["choice"], row["size"], row["prior"]) == wanted:
            by_draw[row["draw"]].append(row[name])
    return np.array([np.mean(values) for values in by_draw.values()])


def summarise(
    gains: list[dict[str, Any]], choice: str, size: int, name: str, prior: str = "shrunk"
) -> Summary:
    """Mean, worst, and how many classifiers are better and worse by more than 0.05 points."""
    wanted = (choice, size, prior)
    by_classifier = defaultdict(list)
    for row in gains:
        if (row["choice"], row["size"], row["prior"]) == wanted:
            by_classifier[row["classifier"]].append(row[name])
    means = np.array([np.mean(values) for values in by_classifier.values()])
    better, worse = int((means > 0.05).sum()), int((means < -0.05).sum())
    return Summary(float(means.mean()), float(means.min()), better, worse)
