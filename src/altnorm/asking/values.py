"""What changed decisions are worth for the purpose, under each truth that a label may tell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from altnorm._base.normalizer import FittedNormalizer
from altnorm.decisions import Decision

OTHER = -1
"""Code of a truth that is neither of two classes, and not said to be which."""


def decision_of(model: FittedNormalizer, multilabel: bool) -> Decision:
    """How a fitted model decides, and what decisions are worth to it.

    Where the model does not say, a right decision is worth 1; that of several labels per row the
    share of right ones. To leave a row to a person is not right.
    """
    decision = getattr(model, "decision_", None)
    if isinstance(decision, Decision):
        return decision
    m = len(model.classes_)
    if multilabel:
        return Decision("thresholds", np.full(m, 0.5))
    return Decision("weights", np.ones(m))


def common_step(worth: np.ndarray) -> float:
    """A number of which all values, and so all sums of them, are multiples; 0 if none is seen."""
    values = np.abs(worth[worth != 0])
    if not values.size:
        return 0.0
    multiples = values / values.min()
    off = np.abs(multiples - multiples.round()).max()
    return float(values.min()) if off <= 4 * np.finfo(float).eps * multiples.max() else 0.0


class Outcomes(NamedTuple):
    """What the changes of some rows are worth, now that their truth is known."""

    x: np.ndarray
    """Value gained in each row."""
    size: np.ndarray
    """The most that could have been gained or lost in each row."""
    n_fixed: np.ndarray
    """Decisions of each row that are worth more than before."""
    n_broken: np.ndarray


class ChangeValues(NamedTuple):
    """The changed decisions of some rows, and what each is worth under each truth."""

    row: np.ndarray
    """Row of each changed decision."""
    column: np.ndarray
    """Its label; 0 where each row has one class."""
    case: np.ndarray
    """Its line of `table`."""
    table: np.ndarray
    """Value gained (lines) if the truth is that (columns); for classes, the last is `OTHER`: NaN
    where the gain depends on which other class it is."""
    n_rows: int

    @property
    def size(self) -> np.ndarray:
        """The most that can be gained or lost in each row."""
        known = np.nan_to_num(np.abs(self.table)).max(axis=1, initial=0)
        return self._per_row(known[self.case])

    def outcomes(self, truth: np.ndarray) -> Outcomes:
        """What the changes are worth under this truth, one column per decision."""
        gained = self.table[self.case, truth[self.row, self.column]]
        counts = (self._per_row(sign).astype(int) for sign in (gained > 0, gained < 0))
        return Outcomes(self._per_row(gained), self.size, *counts)

    def _per_row(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.row, weights=values, minlength=self.n_rows)


def value_changes(worth: np.ndarray, before: np.ndarray, after: np.ndarray) -> ChangeValues:
    """Compare decisions before and after.

    Parameters
    ----------
    worth : ndarray of shape (m, k), or (m, 2, 2) with several labels per row
        As that of :class:`altnorm.decisions.Decision`.
    before, after : ndarray of shape (n, 1) or (n, m)
        Class codes, or 0/1 matrices of several labels.

    Returns
    -------
    ChangeValues
        One entry per changed decision.
    """
    row, column = np.nonzero(before != after)
    old, new = before[row, column], after[row, column]
    is_multilabel = worth.ndim == 3
    key = np.column_stack([column, new] if is_multilabel else [old, new])
    cases, case = np.unique(key, axis=0, return_inverse=True)
    table = (_label_table if is_multilabel else _class_table)(worth, *cases.T)
    return ChangeValues(row, column, case.reshape(-1), table, len(before))


def _class_table(worth: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Value gained by each change of class, for each true class and for `OTHER`."""
    gained = (worth[:, new] - worth[:, old]).T
    classes = np.arange(len(worth))
    is_other = (old[:, None] != classes) & (new[:, None] != classes)
    low = np.where(is_other, gained, np.inf).min(axis=1)
    high = np.where(is_other, gained, -np.inf).max(axis=1)
    rounding = 4 * np.finfo(float).eps * np.abs(gained).max(axis=1)
    other = np.where(high - low > rounding, np.nan, high)
    return np.column_stack([gained, np.where(is_other.any(axis=1), other, 0.0)])


def _label_table(worth: np.ndarray, label: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Value gained by each change of a label, if the truth is no and if it is yes."""
    return worth[label, :, new] - worth[label, :, 1 - new]
