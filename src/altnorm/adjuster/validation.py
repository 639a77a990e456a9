"""Clean validation data from what a user passes to `fit`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.arrays import Array, is_foreign, take_rows, to_numpy
from altnorm._base.errors import InputError
from altnorm.decisions.purpose import Purpose, resolve_purpose
from altnorm.estimator.kinds import LabelKind
from altnorm.estimator.reading import Training, mean_one, read_training, require_labels
from altnorm.evidence import folds

LEAST_ENTRIES = 2**18  # probabilities below which host memory is as fast as a device
HOST = 1  # what DLPack calls the memory of the CPU


class Validation(NamedTuple):
    """Clean validation data and what decisions are for."""

    proba: np.ndarray  # (n, m) rows with labels
    work: Array  # (n, m) the same where the heavy work is done
    labels: np.ndarray  # class codes (n,) or booleans (n, m)
    weight: np.ndarray  # (n,)
    groups: np.ndarray | None  # (n,) numbers of the groups; None where rows are independent
    unlabelled: np.ndarray  # (u, m) rows without labels, which serve as reference
    kind: LabelKind
    prior: Any
    purpose: Purpose

    @property
    def classes(self) -> np.ndarray:
        """Class of each row, all equal with several labels per row: what folds go by."""
        return np.zeros(len(self.labels), int) if self.kind.is_multilabel else self.labels

    def clusters(self) -> list[np.ndarray]:
        """Sets of rows that may not be independent: the groups, or pieces of the file."""
        if self.groups is not None:
            return [self.groups]
        if len(self.proba) < folds.N_PIECES * folds.PIECE_ROWS:
            return []
        return [folds.deal_in_order(self.classes, folds.N_PIECES, self.proba)]

    def blocks(self) -> np.ndarray:
        """Number the block of each row, for scores that can only be called."""
        return folds.number_blocks(len(self.proba), self.groups)


def read_validation(
    estimator: Any,
    proba: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    classes: Any = None,
) -> tuple[Validation, Training]:
    """Tell rows with labels from those without, and add groups, prior and purpose."""
    require_labels(estimator, y)
    read = read_training(estimator, proba, y, sample_weight, classes, gaps=True)
    labelled, rows = read.has_label, read.input.proba
    if not labelled.any():
        raise InputError(
            "`sample_weight` must be positive for some rows with a label",
            "all are 0",
            "Pass weights, or none.",
            value=0.0,
            code="sample_weight",
        )
    with_labels = rows if labelled.all() else take_rows(rows, labelled)  # no needless copy
    on_host = to_numpy(with_labels)
    counted = read.used.copy()
    counted[read.used] = labelled
    data = Validation(
        on_host,
        with_labels if is_worth_a_device(with_labels) else on_host,
        np.asarray(read.labels),
        mean_one(None if read.weight is None else read.weight[labelled], int(labelled.sum())),
        None if groups is None else folds.number_groups(groups, counted),
        to_numpy(take_rows(rows, ~labelled)),
        read.input.kind,
        estimator.prior,
        resolve_purpose(
            estimator.scoring, getattr(estimator, "costs", None), read.input.kind, read.classes
        ),
    )
    return data, read


def is_worth_a_device(rows: Array) -> bool:
    """Whether to work on the rows where they are, and not on their copy in host memory.

    Libraries round differently, so few rows, of which it takes no longer, are left to NumPy.
    """
    if not is_foreign(rows) or int(rows.__dlpack_device__()[0]) == HOST:
        return False
    return math.prod(rows.shape) >= LEAST_ENTRIES
