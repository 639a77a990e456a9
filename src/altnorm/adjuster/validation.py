"""Validation data, clean, and what may be known of the rows outside a fold."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from altnorm._base.arrays import Array
from altnorm.decisions import Purpose
from altnorm.evidence.folds import N_PIECES, PIECE_ROWS, deal_in_order
from altnorm.method.kinds import LabelKind


class Validation(NamedTuple):
    """Clean validation data and what decisions are for."""

    proba: np.ndarray  # (n, m) rows with labels
    labels: np.ndarray  # class codes (n,) or booleans (n, m)
    weight: np.ndarray  # (n,)
    groups: np.ndarray | None  # (n,) numbers of the groups; None where rows are independent
    unlabelled: np.ndarray  # (u, m) rows without labels, which serve as reference
    kind: LabelKind
    prior: Any
    purpose: Purpose
    on_device: Array | None = None  # (n, m) `proba` where it was given, if not in host memory

    @property
    def work(self) -> Array:
        """Rows with labels where the heavy work is done."""
        return self.proba if self.on_device is None else self.on_device

    @property
    def classes(self) -> np.ndarray:
        """Class of each row, all equal with several labels per row: what folds go by."""
        return np.zeros(len(self.labels), int) if self.kind.is_multilabel else self.labels

    def clusters(self) -> list[np.ndarray]:
        """Sets of rows that may not be independent: the groups, or pieces of the file."""
        if self.groups is not None:
            return [self.groups]
        enough = len(self.proba) >= N_PIECES * PIECE_ROWS
        return [deal_in_order(self.classes, N_PIECES)] if enough else []

    def blocks(self) -> np.ndarray:
        """Number the block of each row, for scores that can only be called."""
        units = np.arange(len(self.proba)) if self.groups is None else self.groups
        return units % N_PIECES if self.groups is not None else units * N_PIECES // len(units)


class Sample(NamedTuple):
    """What alternating normalization takes from labelled rows: their weights and the prior."""

    weight: np.ndarray  # (n,) 0 for the rows that have no part in it
    absent: np.ndarray  # (m,) weight of a sure row for each class without labels
    prior: np.ndarray


def sample(data: Validation, rows: np.ndarray) -> Sample:
    """Weigh some rows, given as a mask, and count the prior on them alone."""
    labels, (n_rows, n_classes) = data.labels[rows], data.proba.shape
    given = data.weight[rows]
    prior = data.kind.count_prior(labels, n_classes, data.prior, given)
    strata, weight = data.kind.stratify(labels, n_classes, data.prior, given), np.zeros(n_rows)
    weight[rows] = strata.weight
    return Sample(weight, strata.absent, prior)
