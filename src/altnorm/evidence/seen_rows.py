"""Were these rows there before? A sketch of the rows that a model has seen, at most 2 KB.

Each row is hashed, and the smallest hashes are kept. Of rows that were seen, those with a hash
below the largest one kept are found again, whatever their order and whichever others are missing.
"""

from __future__ import annotations

import numpy as np

N_KEPT = 256
_DISTINCT = 0.95  # share of rows that must differ, or equal rows prove nothing
_SURE = 1 - 1e-6  # rows that are surer look alike without being the same
_FEWEST = 5
_BLOCK = 2**17  # entries that are hashed at a time, so that they stay in the cache


def sketch_rows(proba: np.ndarray) -> np.ndarray:
    """Keep the smallest hashes of rows of probabilities.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Probabilities.

    Returns
    -------
    ndarray of uint64 of shape (at most 256,)
        Increasing; empty where too many rows are alike.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.evidence.seen_rows import share_seen, sketch_rows
    >>> proba = np.random.default_rng(0).dirichlet(np.ones(3), size=2000)
    >>> share_seen(sketch_rows(proba[:1000]), proba[:500]) > 0.9
    True
    >>> share_seen(sketch_rows(proba[:1000]), proba[1000:])
    0.0
    """
    hashes = _hash_rows(proba)
    distinct = np.unique(hashes)
    if distinct.size < _DISTINCT * hashes.size:
        return distinct[:0]
    return distinct[:N_KEPT]


def share_seen(sketch: np.ndarray, proba: np.ndarray) -> float:
    """Estimate which share of rows is among those of a sketch.

    Parameters
    ----------
    sketch : ndarray of uint64
        From `sketch_rows`.
    proba : ndarray of shape (n, m)
        Probabilities.

    Returns
    -------
    float
        Between 0 and 1; 0 where too few rows can be compared.
    """
    if not sketch.size:
        return 0.0
    hashes = _hash_rows(proba)
    if sketch.size == N_KEPT:  # a sketch that is not full holds every row
        hashes = hashes[hashes <= sketch[-1]]
    return float(np.isin(hashes, sketch).mean()) if hashes.size >= _FEWEST else 0.0


def _hash_rows(proba: np.ndarray) -> np.ndarray:
    """Hash the rows that are not sure, in single precision, so that either precision counts."""
    unsure = np.flatnonzero(proba.max(axis=1) < _SURE)
    m = proba.shape[1]
    factors = _mix(np.arange(1, m + 1, dtype=np.uint64)) | np.uint64(1)
    step = max(1, _BLOCK // m)
    parts = [np.empty(0, dtype=np.uint64)]
    for start in range(0, unsure.size, step):
        rows = proba[unsure[start : start + step]].astype(np.float32)
        bits = np.ascontiguousarray(rows).view(np.uint32).astype(np.uint64)
        parts.append(_mix((_mix(bits) * factors).sum(axis=1, dtype=np.uint64)))
    return np.concatenate(parts)


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread 64 bits evenly: the finaliser of SplitMix64, modulo 2**64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
