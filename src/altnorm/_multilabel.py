"""Several labels per row: every probability is a two-class problem of its own, yes or no.

"pairs" (the paper) pools all n * m probabilities, with one prior and one reference for all labels.
"labelwise" gives each label its own prior and its own reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import entr, expit, logit

from altnorm._array import may_keep, quiet
from altnorm._binary import LogitStage, iterate_logits_along, log_sigmoids, logit_path
from altnorm._linear import LinearPath, linear_path, stack_paths
from altnorm._scaling import LogReference

__all__ = ["BinaryReference", "LinearLabels", "adjust_binary", "binary_ambiguity", "label_slices"]


def binary_ambiguity(p: np.ndarray) -> np.ndarray:
    """Ambiguity of yes/no probabilities: their entropy in bits."""
    return (entr(p) + entr(1 - p)) / math.log(2)


class BinaryReference(NamedTuple):
    """Yes-probabilities that doubts meet, as logits."""

    logit: np.ndarray  # (n,)
    weight: np.ndarray | None  # (n,)
    log_q: tuple[float, float]  # of yes and no
    alpha: float
    depth: int
    log_mass: float | None
    stages: tuple[LogitStage, ...] = ()  # its own iterations, where they are kept

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
        if weight is not None:
            p, weight = p[weight > 0], weight[weight > 0].astype(np.float64, copy=False)
        if not 0 < prior < 1 or not p.size:
            return None
        total = p.size if weight is None else float(weight.sum())
        log_q = math.log(prior), math.log1p(-prior)  # exact for the prior of a rare label, too
        log_mass = math.log(smoothing * total) if smoothing else None
        with quiet(np):
            logits = logit(p.astype(np.float64, copy=False))
        return cls(logits, weight, log_q, alpha, depth, log_mass)

    def follow(self) -> Iterable[LogitStage]:
        """Return its own iterations, which no doubt changes."""
        path = logit_path(
            self.logit, self.weight, self.log_q, alpha=self.alpha, log_mass=self.log_mass
        )
        return self.stages or islice(path, self.depth)

    def kept(self) -> BinaryReference:
        """Work the iterations out once, for doubts that come one by one."""
        with quiet(np):
            return self._replace(stages=tuple(self.follow()))

    def follow_linearly(self) -> LinearPath | None:
        """Return its own iterations as for two classes, without logarithms, where that works."""
        with quiet(np):
            log_a = np.stack(log_sigmoids(self.logit), axis=1)
            log_w = None if self.weight is None else np.log(self.weight)
            logs = LogReference(log_a, log_w, np.array(self.log_q), self.alpha, self.log_mass)
            return linear_path(logs, self.depth)


def adjust_binary(p: np.ndarray, reference: BinaryReference | None) -> np.ndarray:
    """Alternating normalization of yes-probabilities against yes-probabilities.

    Where the reference says nothing, `p` comes back as it was.
    """
    if reference is None or not p.size:
        return p.copy()
    log_q, alpha, log_mass = reference.log_q, reference.alpha, reference.log_mass
    with quiet(np):
        stages = reference.follow()
        steps = iterate_logits_along(logit(p), stages, log_q, alpha=alpha, log_mass=log_mass)
        *_, logits = steps
        return expit(logits)


class LinearLabels(NamedTuple):
    """The references of all labels, for a few doubts about each."""

    says: np.ndarray  # (f,) which references say anything
    path: LinearPath  # those of them, side by side

    @classmethod
    def of(cls, references: Sequence[BinaryReference | None]) -> LinearLabels | None:
        """Return None where logarithms are needed, or what is kept would be large."""
        known = [one for one in references if one is not None]
        longest = max((one.logit.size for one in known), default=0)
        if not known or not may_keep(2 * known[0].depth * len(known) * longest):
            return None
        paths = [one.follow_linearly() for one in known]
        usable = [path for path in paths if path is not None]
        says = np.array([one is not None for one in references])
        return cls(says, stack_paths(usable)) if len(usable) == len(paths) else None

    def adjust(self, proba: np.ndarray, doubt: np.ndarray) -> np.ndarray | None:
        """Return `proba` with its doubts resolved; None where logarithms are needed."""
        p = np.where(doubt, proba, 0.5).astype(np.float64, copy=False)
        by_label = p.T.reshape(self.says.size, -1)
        yes = by_label[self.says]
        found = self.path.adjust(np.stack([yes, 1 - yes], axis=-1))
        if found is None:
            return None
        by_label[self.says] = found[..., 0]
        return np.where(doubt, by_label.reshape(p.T.shape).T, proba).astype(proba.dtype, copy=False)


def label_slices(offsets: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Each label with the slice of its reference entries."""
    for label, (start, stop) in enumerate(pairwise(offsets)):
        yield label, slice(int(start), int(stop))
