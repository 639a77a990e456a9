"""Several labels per row: every probability is a two-class problem of its own, yes or no.

"pairs" (the paper) pools all n * m probabilities, with one prior and one reference for all labels.
"labelwise" gives each label its own prior and its own reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import entr, expit, logit

from altnorm._array import quiet
from altnorm._binary import LogitStage, iterate_logits_along, logit_path

__all__ = ["BinaryReference", "adjust_binary", "binary_ambiguity", "label_slices"]


def binary_ambiguity(p: np.ndarray) -> np.ndarray:
    """Ambiguity of yes/no probabilities: their entropy in bits."""
    return (entr(p) + entr(1 - p)) / math.log(2)


class BinaryReference(NamedTuple):
    """Yes-probabilities that doubts meet, and their own iterations, which no doubt changes."""

    stages: Iterable[LogitStage]
    log_q: tuple[float, float]
    alpha: float
    log_mass: float | None

    @classmethod
    def of(
        cls,
        p: np.ndarray,
        weight: np.ndarray | None,
        prior: float,
        *,
        alpha: float,
        depth: int,
        smoothing: float,
    ) -> BinaryReference | None:
        """Return None where the prior is 0 or 1, or no entry counts: they say nothing."""
        total = p.size if weight is None else float(weight.sum())
        if not 0 < prior < 1 or not total:
            return None
        log_q = math.log(prior), math.log1p(-prior)  # exact for the prior of a rare label, too
        log_mass = math.log(smoothing * total) if smoothing else None
        weight = None if weight is None else weight.astype(np.float64, copy=False)
        with quiet(np):
            logits = logit(p.astype(np.float64, copy=False))
        path = logit_path(logits, weight, log_q, alpha=alpha, log_mass=log_mass)
        return cls(islice(path, depth), log_q, alpha, log_mass)

    def kept(self) -> BinaryReference:
        """Work the iterations out once, for doubts that come one by one."""
        with quiet(np):
            return self._replace(stages=tuple(self.stages))


def adjust_binary(p: np.ndarray, reference: BinaryReference | None) -> np.ndarray:
    """Alternating normalization of yes-probabilities against yes-probabilities.

    Where the reference says nothing, `p` comes back as it was.
    """
    if reference is None or not p.size:
        return p.copy()
    stages, log_q, alpha, log_mass = reference
    with quiet(np):
        steps = iterate_logits_along(logit(p), stages, log_q, alpha=alpha, log_mass=log_mass)
        *_, logits = steps
        return expit(logits)


def label_slices(offsets: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Each label with the slice of its reference entries."""
    for label, (start, stop) in enumerate(pairwise(offsets)):
        yield label, slice(int(start), int(stop))
