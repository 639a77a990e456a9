"""Whether rows were seen before: a sketch of those that a model was fitted to."""

from __future__ import annotations

import numpy as np

N_KEPT = 256
_DECIMALS = (6, 5, 4, 3, 2)  # that rows are compared by: single precision has no more
_ALIKE_BY_ROUNDING = 0.01  # share of rows
_SAMPLE_ROWS = 2**13  # that show how many decimals tell rows apart
_DISTINCT = 0.95  # share of rows that must differ, or equal rows prove nothing
SURE = 1 - 1e-6  # rows that are surer look alike without being the same
_FEWEST = 5
_MOST = 0.5  # share of rows
_BLOCK = 2**17  # entries that are hashed at a time, so that they stay in the cache


def sketch_rows(proba: np.ndarray) -> np.ndarray:
    """Keep the smallest hashes of rows of probabilities, rising; none where too many are alike.

    Of rows that were seen, those with a hash below the largest one kept are found again, whatever
    their order and whichever others are missing. Rows are rounded to as few decimals as tell them
    apart, so that they are found again in a file of fewer digits, too. How many these are stands
    before the hashes.
    """
    decimals = _fewest_decimals(proba)
    hashes = _hash_rows(proba, decimals)
    distinct = np.unique(hashes)
    if distinct.size < max(_DISTINCT * hashes.size, 1):
        return distinct[:0]
    return np.concatenate([np.array([decimals], dtype=np.uint64), distinct[:N_KEPT]])


def _fewest_decimals(proba: np.ndarray) -> int:
    """Decimals that make one row in a hundred equal to others; rows are compared in pairs."""
    sample = proba[:: max(1, len(proba) // _SAMPLE_ROWS)]
    times = len(proba) / len(sample)
    fewest, *coarser = _DECIMALS
    at_most = np.unique(_hash_rows(sample, fewest)).size
    for decimals in coarser:
        alike = at_most - np.unique(_hash_rows(sample, decimals)).size
        if alike * times > _ALIKE_BY_ROUNDING * len(sample):
            break
        fewest = decimals
    return fewest


def share_seen(sketch: np.ndarray, proba: np.ndarray) -> float:
    """Estimate which share of rows a sketch has seen; 0 where too few can be compared."""
    if not sketch.size:
        return 0.0
    decimals, kept = int(sketch[0]), sketch[1:]
    hashes = _hash_rows(proba, decimals)
    if kept.size == N_KEPT:  # a sketch that is not full holds every row
        hashes = hashes[hashes <= kept[-1]]
    return float(np.isin(hashes, kept).mean()) if hashes.size >= _FEWEST else 0.0


def would_be_found(sketch: np.ndarray, proba: np.ndarray) -> bool:
    """Whether rows that a sketch has seen can be told: not from too few decimals."""
    unsure = proba[proba.max(axis=1) < SURE]
    if not (sketch.size and unsure.size):
        return False
    last = np.rint(unsure * 10.0 ** int(sketch[0])) % 10  # the last decimal that is compared
    return bool((last != 0).any(axis=1).mean() > _MOST)


def _hash_rows(proba: np.ndarray, decimals: int) -> np.ndarray:
    """Hash the rows that are not sure, rounded."""
    unsure = np.flatnonzero(proba.max(axis=1) < SURE)
    m = proba.shape[1]
    factors = _mix(np.arange(1, m + 1, dtype=np.uint64)) | np.uint64(1)
    step = max(1, _BLOCK // m)
    parts = [np.empty(0, dtype=np.uint64)]
    for start in range(0, unsure.size, step):
        rows = np.rint(proba[unsure[start : start + step]] * 10.0**decimals).astype(np.uint64)
        parts.append(_mix((_mix(rows) * factors).sum(axis=1, dtype=np.uint64)))
    return np.concatenate(parts)


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread 64 bits evenly: the finaliser of SplitMix64, modulo 2**64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
