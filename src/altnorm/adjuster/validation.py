"""Clean validation data from what a user passes to `fit`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.arrays import Array, is_foreign, on_host, take_rows, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.labels import has_label
from altnorm.decisions.purpose import Purpose, purpose_of
from altnorm.estimator.base import read_weight, require_labels, resolve_classes
from altnorm.estimator.kinds import LabelKind, kind_of
from altnorm.evidence.folds import (
    N_PIECES,
    PIECE_ROWS,
    deal_in_order,
    number_blocks,
    number_groups,
)

LEAST_ENTRIES = 2**18
"""Probabilities below which host memory is as fast as a device."""

HOST = 1  # what DLPack calls the memory of the CPU


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
        return number_blocks(len(self.proba), self.groups)


def read_validation(
    estimator: Any, checked: Array, y: Any, sample_weight: Any, groups: Any
) -> Validation:
    """Check what belongs to clean rows, and set `classes_`."""
    require_labels(estimator, y)
    known, labels = _read_labels(estimator, y, checked)
    weight = read_weight(sample_weight, checked.shape[0])
    kind = kind_of(estimator)
    purpose = purpose_of(estimator)
    rows = checked if known.all() else take_rows(checked, known)  # no needless copy
    return Validation(
        to_numpy(rows),
        labels,
        np.ones(int(known.sum())) if weight is None else _positive(weight[known]),
        None if groups is None else number_groups(groups, known),
        to_numpy(take_rows(checked, ~known)),
        kind,
        estimator.prior,
        purpose,
        rows if is_worth_a_device(rows) else None,
    )


def _positive(weight: np.ndarray) -> np.ndarray:
    if weight.sum() > 0:
        return weight
    raise InputError(
        "`sample_weight` must be positive for some rows with a label",
        "all are 0",
        "Pass weights, or none.",
        value=0.0,
        code="sample_weight",
    )


def _read_labels(estimator: Any, y: Any, proba: Array) -> tuple[np.ndarray, np.ndarray]:
    """Which rows have labels, and these: class codes, or booleans of shape (n, m)."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and not np.array_equal(estimator.classes_, np.arange(proba.shape[1])):
        names = estimator.classes_  # column names that scikit-learn does not keep
    known, y = has_label(on_host(y), tuple(proba.shape), names)
    kind = kind_of(estimator)
    labels = kind.check_labels(y, (int(known.sum()), proba.shape[1]))
    naming = None if kind.is_multilabel else labels  # a 0/1 matrix names no classes
    estimator.classes_ = resolve_classes(naming, proba.shape[1], names)
    return known, kind.encode(labels, estimator.classes_)


def is_worth_a_device(rows: Array) -> bool:
    """Whether to work on the rows where they are, and not on their copy in host memory.

    Libraries round differently, so few rows, of which it takes no longer, are left to NumPy.
    """
    if not is_foreign(rows) or int(rows.__dlpack_device__()[0]) == HOST:
        return False
    return math.prod(rows.shape) >= LEAST_ENTRIES
