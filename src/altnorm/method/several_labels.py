"""Several labels per row: every probability is a two-class problem of its own, yes or no.

"pairs" (the paper) pools all n * m probabilities, with one prior and one reference for all labels.
"labelwise" gives each label its own prior and its own reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, expit, logit

from altnorm._base.arrays import quiet
from altnorm.method.two_classes import (
    LogitStage,
    iterate_logits_along,
    logit_path,
    stack_stages,
    tabulate,
)

_SHORT = 17  # terms; labels with few share their operations, and would wait for one with many


def binary_ambiguity(p: np.ndarray) -> np.ndarray:
    """Ambiguity of yes/no probabilities: their entropy in bits."""
    return (entr(p) + entr(1 - p)) / math.log(2)


class BinaryReference(NamedTuple):
    """Yes-probabilities that doubts meet, as logits."""

    logit: np.ndarray  # (n,)
    weight: np.ndarray | None  # (n,)
    log_q: tuple[Any, Any]  # of yes and no
    alpha: float
    depth: int
    log_mass: Any
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
        with quiet(np):
            logits = logit(p.astype(np.float64, copy=False))
        return cls.of_logits(logits, weight, prior, alpha=alpha, depth=depth, smoothing=smoothing)

    @classmethod
    def of_logits(
        cls,
        logits: np.ndarray,
        weight: np.ndarray | None,
        prior: float,
        *,
        alpha: float,
        depth: int,
        smoothing: float,
    ) -> BinaryReference | None:
        """As `of`, from log-odds in double precision."""
        if weight is not None:
            logits, weight = logits[weight > 0], weight[weight > 0].astype(np.float64, copy=False)
        if not 0 < prior < 1 or not logits.size:
            return None
        total = logits.size if weight is None else float(weight.sum())
        log_q = math.log(prior), math.log1p(-prior)  # exact for the prior of a rare label, too
        log_mass = math.log(smoothing * total) if smoothing else None
        return cls(logits, weight, log_q, alpha, depth, log_mass)

    def follow(self) -> Iterable[LogitStage]:
        """Return its own iterations, which no doubt changes."""
        path = logit_path(
            self.logit, self.weight, self.log_q, alpha=self.alpha, log_mass=self.log_mass
        )
        return self.stages or islice(path, self.depth)

    def has_short_tables(self) -> bool:
        """Whether few terms per iteration stand for the reference, which is kept."""
        tables = [stage.table for stage in self.stages[1:]]
        return all(table is not None and len(table.coefficients) <= _SHORT for table in tables)

    def kept(self) -> BinaryReference:
        """Work the iterations out once, for doubts that come one by one."""
        with quiet(np):
            stages = tabulate(self.follow(), self.log_q, alpha=self.alpha, log_mass=self.log_mass)
            return self._replace(stages=tuple(stages))


def adjust_binary(p: np.ndarray, reference: BinaryReference | None) -> np.ndarray:
    """Alternating normalization of yes-probabilities against yes-probabilities.

    Where the reference says nothing, `p` comes back as it was.
    """
    if reference is None or not p.size:
        return p.copy()
    with quiet(np):
        return np.asarray(expit(adjust_logits(logit(p), reference)))


def adjust_logits(z: np.ndarray, reference: BinaryReference) -> np.ndarray:
    """As `adjust_binary`, from log-odds to log-odds."""
    *_, last = iterate_logits_along(
        z,
        reference.follow(),
        reference.log_q,
        alpha=reference.alpha,
        log_mass=reference.log_mass,
    )
    return last


class LabelReferences(NamedTuple):
    """The references of all labels, worked out once for a few doubts about each."""

    n_labels: int
    stacked: BinaryReference | None  # of labels with short tables, side by side
    which: list[int]  # these labels
    others: list[tuple[int, BinaryReference]]  # of which each is a problem of its own

    @classmethod
    def of(cls, references: Iterable[BinaryReference | None]) -> LabelReferences:
        """Follow all of them. A label whose reference says nothing is left out."""
        kept = [None if one is None else one.kept() for one in references]
        known = [(label, one) for label, one in enumerate(kept) if one is not None]
        short = [(label, one) for label, one in known if one.has_short_tables()]
        others = [(label, one) for label, one in known if not one.has_short_tables()]
        stacked = _stack([one for _, one in short]) if short else None
        return cls(len(kept), stacked, [label for label, _ in short], others)

    def adjust(self, proba: np.ndarray, doubt: np.ndarray) -> np.ndarray:
        """Return `proba` with its doubts resolved."""
        p = np.where(doubt, proba, 0.5).astype(np.float64, copy=False).T
        by_label = p.reshape(self.n_labels, -1)
        if self.stacked is not None:
            by_label[self.which] = adjust_binary(by_label[self.which], self.stacked)
        for label, reference in self.others:
            by_label[label] = adjust_binary(by_label[label], reference)
        found = by_label.reshape(p.shape).T
        return np.where(doubt, found, proba).astype(proba.dtype, copy=False)


def _stack(references: Sequence[BinaryReference]) -> BinaryReference:
    """Make one reference of several that are kept, along an axis in front."""
    first = references[0]
    yes, no = np.array([one.log_q for one in references]).T[:, :, None]
    log_mass = None
    if first.log_mass is not None:
        log_mass = np.array([one.log_mass for one in references])[:, None]
    stages = zip(*(one.stages for one in references), strict=True)
    return first._replace(
        log_q=(yes, no), log_mass=log_mass, stages=tuple(map(stack_stages, stages))
    )


def label_references(normalizer: Any) -> Iterator[BinaryReference | None]:
    """Yield the reference of each label, or the one of all; None where it says nothing."""
    weight = normalizer.reference_weight_
    for j, span in label_slices(normalizer.offsets_):
        yield BinaryReference.of(
            normalizer.reference_[span],
            None if weight is None else weight[span],
            float(normalizer.prior_[j]),
            alpha=normalizer.alpha,
            depth=normalizer.depth,
            smoothing=normalizer.smoothing,
        )


def label_slices(offsets: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Each label with the slice of its reference entries."""
    for label, (start, stop) in enumerate(pairwise(offsets)):
        yield label, slice(int(start), int(stop))
