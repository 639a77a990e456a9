"""Gains on the rows in doubt, blur by blur; numbers only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import KFold

import altnorm
from experiments.blur.grid import predicted_classes, to_device
from experiments.suite.files import Classifier, read_classifier

__all__ = [
    "FOLDS",
    "METHODS",
    "OTHER",
    "PAPER_SETTINGS",
    "PAPER_SHARES",
    "SAME",
    "SIGMAS",
    "THRESHOLD",
    "Doubt",
    "Grid",
    "Measured",
    "best_setting",
    "blur_path",
    "deal_pairs",
    "gain_record",
    "measure_doubt",
    "measure_references",
    "measure_split",
    "other_readings",
    "summarise",
]

SIGMAS = (0, 2, 4, 8, 16, 32)
PAPER_SHARES = (26.97, 49.58, 68.84, 82.46, 91.44, 97.78)  # per cent of rows in doubt
PAPER_SETTINGS = ((0.6, 1), (0.7, 2), (0.9, 5), (0.9, 3), (0.5, 1), (0.6, 1))  # alpha, depth
THRESHOLD = 0.75
NAIVE, BEST, HONEST = METHODS = ("CAN-naive", "CAN-best", "honestly tuned")
OTHER, FOLDS, SAME = "other images", "other folds of the same images", "the same images"


class Grid(NamedTuple):
    """Settings that CAN-best may choose from, and options of the honest search."""

    alphas: tuple[float, ...]  # tried at depth 1
    deep_alphas: tuple[float, ...]  # tried at all depths up to `depth`
    depth: int
    search: dict[str, Any]  # of AlternatingNormalizerCV; empty is its defaults


def blur_path(folder: Path, sigma: int) -> Path:
    """The file of one blur."""
    path = folder / f"imagenet5k_lite0_blur{sigma:02d}.npz"
    if not path.exists():
        raise SystemExit(f"There is no {path.name} in {folder}. Pass its folder with --data.")
    return path


def read_whole(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and labels of all images."""
    data = read_classifier(path)
    proba = np.concatenate([data.val_proba, data.test_proba])
    return proba, np.concatenate([data.val_y, data.test_y])


class Doubt(NamedTuple):
    """How sure the classifier is about all images, in per cent."""

    share: float  # of rows in doubt
    share_all_k: float  # the same if the ambiguity looks at all classes, not at ten
    base_k: float  # and if the k largest are not renormalised, with logarithms of base k,
    base_k_all_k: float
    base_m: float  # or of base m, as the paper's equation 2 says
    base_m_all_k: float
    top_five: float  # share of the sure rows that fall into their five commonest classes
    right: float  # share of the sure rows that are right


class Measured(NamedTuple):
    """All that was measured."""

    gains: list[dict[str, Any]]  # one record a split and method
    references: list[dict[str, Any]]  # one record a deal and reference
    doubt: dict[int, Doubt]  # for each blur


def measure_doubt(path: Path) -> Doubt:
    """Count the rows in doubt, and where the sure ones are."""
    proba, labels = read_whole(path)
    hard = altnorm.ambiguity(proba) > THRESHOLD
    predicted = proba.argmax(axis=1)
    counts = np.sort(np.bincount(predicted[~hard], minlength=proba.shape[1]))
    right = (predicted == labels)[~hard]
    n_sure = max(right.size, 1)
    all_k = altnorm.ambiguity(proba, k_max=proba.shape[1]) > THRESHOLD
    others = [np.mean(reading > THRESHOLD) for reading in other_readings(proba)]
    parts = hard.mean(), all_k.mean(), *others, counts[-5:].sum() / n_sure, right.sum() / n_sure
    return Doubt(*(100 * float(part) for part in parts))


def other_readings(proba: np.ndarray) -> list[np.ndarray]:
    """The ambiguity if equation 2 did not renormalise: base k, then base m; ten k, then all."""
    n_classes = proba.shape[1]
    p = -np.sort(-proba, axis=1)
    entropy = np.cumsum(-p * np.log(np.maximum(p, np.finfo(float).tiny)), axis=1)[:, 1:]
    bases = np.arange(2, n_classes + 1), n_classes
    scaled = [entropy / np.log(base) for base in bases]
    return [of_k[:, :most].max(axis=1) for of_k in scaled for most in (9, n_classes)]


def measure_split(
    path: Path, sigma: int, seed: int, half: int, grid: Grid, device: str | None = None
) -> list[dict[str, Any]]:
    """All methods on one half of the images; reference and tuning come from the other half.

    Parameters
    ----------
    path : Path
        Predictions on all images.
    sigma, seed, half : int
        Blur; seed of the split; which half (0 or 1) is tested.
    grid : Grid
        Settings to choose from.
    device : str, optional
        Compute with PyTorch on this device, such as "cuda"; None is NumPy.

    Returns
    -------
    list of dict
        One record per method.
    """
    data = read_classifier(path, seed=seed)
    if half:
        data = Classifier(data.name, data.test_proba, data.test_y, data.val_proba, data.val_y)
    sure = altnorm.ambiguity(data.val_proba) <= THRESHOLD
    hard = altnorm.ambiguity(data.test_proba) > THRESHOLD
    before, labels = data.test_proba.argmax(axis=1), data.test_y[hard]
    val, test, reference, rows = to_device(
        device, data.val_proba, data.test_proba, data.val_proba[sure], data.test_proba[hard]
    )
    best, best_alpha, best_depth = best_setting(rows, labels, reference, grid)
    search = altnorm.AlternatingNormalizerCV(**grid.search)
    search.fit(val, data.val_y)
    found = {
        NAIVE: (_replaced(before, hard, altnorm.alternating_normalization(rows, reference)), {}),
        BEST: (_replaced(before, hard, best), {"alpha": best_alpha, "depth": best_depth}),
        HONEST: (predicted_classes(search.transform(test)), search.best_params_),
    }
    common = {"sigma": sigma, "seed": seed, "half": half, "n_reference": int(sure.sum())}
    verdict = search.verdict_
    adopted = {NAIVE: True, BEST: True, HONEST: verdict.adopted}
    return [
        common
        | {"method": method, "adopted": adopted[method]}
        | gain_record(before == data.test_y, after == data.test_y, hard)
        | _settings(params)
        | {"expected_gain": 100 * verdict.gain if method == HONEST else ""}
        for method, (after, params) in found.items()
    ]


def _replaced(before: np.ndarray, hard: np.ndarray, adjusted: Any) -> np.ndarray:
    after = before.copy()
    after[hard] = predicted_classes(adjusted)
    return after


def _settings(params: dict[str, Any]) -> dict[str, Any]:
    naive = {"alpha": 1.0, "depth": 1, "threshold": THRESHOLD}
    return naive | {"reference": "confident", "smoothing": 0.0} | params


def gain_record(before: np.ndarray, after: np.ndarray, hard: np.ndarray) -> dict[str, Any]:
    """Accuracies, gains and their standard errors, in points, on hard rows and on all rows.

    Parameters
    ----------
    before, after : ndarray of bool
        Whether each row is right before and after the adjustment.
    hard : ndarray of bool
        Whether it was in doubt.

    Returns
    -------
    dict
        ``base``, ``gain`` and ``se`` for all rows, the same with ``_hard`` for those in doubt.
    """
    record: dict[str, Any] = {"n_test": hard.size, "n_hard": int(hard.sum())}
    for name, rows in (("_hard", hard), ("", np.ones_like(hard))):
        n = max(int(rows.sum()), 1)
        step = after[rows].astype(float) - before[rows]
        record["base" + name] = 100 * float(before[rows].sum()) / n
        record["gain" + name] = 100 * float(step.sum()) / n
        record["se" + name] = 100 * float(step.std() / np.sqrt(n)) if rows.any() else 0.0
    return record


def best_setting(
    rows: Any, labels: np.ndarray, reference: Any, grid: Grid
) -> tuple[Any, float, int]:
    """The setting with the best score on the rows that it is judged by: an upper bound."""
    best, best_hits = (rows, 1.0, 1), -1
    for alpha in sorted({*grid.alphas, *grid.deep_alphas}):
        depth = grid.depth if alpha in grid.deep_alphas else 1
        steps = altnorm.trajectory(rows, reference, alpha=alpha, depth=depth)
        for d, step in enumerate(steps[1:], start=1):
            hits = int((predicted_classes(step) == labels).sum())
            if hits > best_hits:
                best, best_hits = (step, float(alpha), d), hits
    return best


def deal_pairs(labels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of rows with equally many of each class, the same number in both."""
    order = np.lexsort((rng.random(labels.size), labels))
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    ends = np.append(starts[1:], labels.size)
    halves = [
        (order[a : a + (b - a) // 2], a + (b - a) // 2, (b - a) // 2)
        for a, b in zip(starts, ends, strict=True)
    ]
    first = np.concatenate([rows for rows, _, _ in halves])
    second = np.concatenate([order[at : at + n] for _, at, n in halves])
    return first, second


def measure_references(
    path: Path, sigma: int, shares: tuple[float, ...], n_seeds: int, seed: int
) -> list[dict[str, Any]]:
    """CAN-naive with sure rows of other images as reference, and with those of the same images.

    Both sets hold equally many images of each class. Among the same images the sure rows are the
    complement of those in doubt, and so tell how many of each class are left, without any label.
    Cross-fitting, where the reference comes from other folds, is in between.
    """
    proba, labels = read_whole(path)
    sure = altnorm.ambiguity(proba) <= THRESHOLD
    records = []
    for number in range(n_seeds):
        rng = np.random.default_rng([seed, number])  # the same images for all blurs
        sets = deal_pairs(labels, rng)
        for half, (test, other) in enumerate((sets, sets[::-1])):
            pool, hard = other[sure[other]], test[~sure[test]]
            key = {"sigma": sigma, "seed": number, "half": half}
            for share in shares:
                used = rng.choice(pool, max(1, round(share * pool.size)), replace=False)
                record = _naive_gain(proba, labels, [(hard, used)])
                records.append(key | {"source": OTHER, "share": share} | record)
            for source, parts in _same_images(test, sure, seed + number).items():
                record = _naive_gain(proba, labels, parts)
                records.append(key | {"source": source, "share": 1.0} | record)
    return records


def _same_images(
    test: np.ndarray, sure: np.ndarray, seed: int
) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Rows in doubt and their references, if these are found among the same images."""
    folds = KFold(5, shuffle=True, random_state=seed)
    dealt = [(test[inside], test[outside]) for outside, inside in folds.split(test)]
    sources = {FOLDS: dealt, SAME: [(test, test)]}
    return {
        source: [(rows[~sure[rows]], used[sure[used]]) for rows, used in parts]
        for source, parts in sources.items()
    }


def _naive_gain(
    proba: np.ndarray, labels: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray]]
) -> dict[str, Any]:
    """Gain of CAN-naive on rows in doubt, part by part with its own reference."""
    rows = np.concatenate([hard for hard, _ in parts])
    after = [
        altnorm.alternating_normalization(proba[hard], proba[used]).argmax(axis=1)
        for hard, used in parts
    ]
    right = proba[rows].argmax(axis=1) == labels[rows]
    record = gain_record(right, np.concatenate(after) == labels[rows], np.ones_like(right))
    n_reference = round(np.mean([used.size for _, used in parts]))
    names = ("n_hard", "base_hard", "gain_hard", "se_hard")
    return {"n_reference": n_reference} | {name: record[name] for name in names}


def summarise(records: list[dict[str, Any]], sigma: int, method: str) -> dict[str, float]:
    """Means over the splits, and a standard error over images.

    The two halves of a seed are different images, so their errors average out; further seeds
    deal the same images anew, and only remove the luck of the split.
    """
    chosen = [r for r in records if r["sigma"] == sigma and r["method"] == method]
    names = ("n_hard", "n_test", "n_reference", "base", "base_hard", "gain", "gain_hard")
    mean = {name: float(np.mean([r[name] for r in chosen])) for name in names}
    n_halves = len({r["half"] for r in chosen})
    for name in ("se", "se_hard"):
        mean[name] = float(np.sqrt(np.mean([r[name] ** 2 for r in chosen]) / n_halves))
    expected = [r["expected_gain"] or 0.0 for r in chosen]
    adopted = float(np.mean([r["adopted"] for r in chosen]))
    return mean | {"adopted": adopted, "expected_gain": float(np.mean(expected))}
