"""The method as the paper writes it, in plain NumPy: read this first.

Classification with alternating normalization (CAN): Jia, Reiter, Lim, Artzi, Cardie, "When in
Doubt: Improving Classification Performance with Alternating Normalization", Findings of EMNLP 2021.
Numbers are those of its equations. Tests and benchmarks hold everything fast to these lines, which
are slow, and lose digits where `alpha ** depth` is large.

Only equation 2 is read differently here, renormalised and to base k; docs/mathematics.md says why.
"""

from __future__ import annotations

import numpy as np


def topk_entropy(p: np.ndarray, k: int) -> float:
    """Entropy of the k largest probabilities of a row, from 0 to 1; (2)."""
    top = np.sort(p)[-k:]
    top = top[top > 0] / top.sum()
    return float(-np.sum(top * np.log(top)) / np.log(k))


def ambiguity(p: np.ndarray, k_max: int = 10) -> float:
    """Largest top-k entropy of a row, which is in doubt where this exceeds tau."""
    return max(topk_entropy(p, k) for k in range(2, min(k_max, p.size) + 1))


def iterate(L: np.ndarray, q: np.ndarray, alpha: float) -> np.ndarray:
    """From L_(d-1) to L_d: columns are normalized, then rows, with the prior q."""
    S = L**alpha / np.sum(L**alpha, axis=0)  # (3), (4): the power is elementwise
    return S * q / np.sum(S * q, axis=1, keepdims=True)  # (5), (6)


def adjust(b0: np.ndarray, A0: np.ndarray, q: np.ndarray, alpha: float, d: int) -> np.ndarray:
    """Return b_d, what d iterations make of the doubtful row b0 under the sure rows A0."""
    L = np.vstack([A0, b0])  # (1)
    for _ in range(d):
        L = iterate(L, q, alpha)
    return L[-1]
