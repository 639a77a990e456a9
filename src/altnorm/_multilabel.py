"""Several labels per row: every probability is a two-class problem of its own, yes or no.

"pairs" (the paper) pools all n * m probabilities, with one prior and one reference for all labels.
"labelwise" gives each label its own prior and its own reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.special import entr, expit, logit

from altnorm._array import quiet
from altnorm._binary import iterate_logits

__all__ = ["adjust_binary", "binary_ambiguity", "label_slices"]


def binary_ambiguity(p: np.ndarray) -> np.ndarray:
    """Ambiguity of yes/no probabilities: their entropy in bits."""
    return (entr(p) + entr(1 - p)) / math.log(2)


def adjust_binary(
    p: np.ndarray,
    reference: np.ndarray,
    weight: np.ndarray | None,
    prior: float,
    *,
    alpha: float,
    depth: int,
    smoothing: float,
) -> np.ndarray:
    """Alternating normalization of yes-probabilities against yes-probabilities.

    Where the prior is 0 or 1, or there is no reference, nothing can be said about a doubt, and
    `p` comes back as it was.
    """
    total = reference.size if weight is None else float(weight.sum())
    if not 0 < prior < 1 or not p.size or not total:
        return p.copy()
    with quiet(np):
        steps = iterate_logits(
            logit(p),
            logit(reference.astype(p.dtype, copy=False)),
            None if weight is None else weight.astype(p.dtype, copy=False),
            (math.log(prior), math.log1p(-prior)),  # exact for the prior of a rare label, too
            alpha=alpha,
            depth=depth,
            log_mass=math.log(smoothing * total) if smoothing else None,
        )
        *_, logits = steps
        return expit(logits)


def label_slices(offsets: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Each label with the slice of its reference entries."""
    for label, (start, stop) in enumerate(pairwise(offsets)):
        yield label, slice(int(start), int(stop))
