"""Why the class of a row changed, in numbers and in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ChangedRow:
    """One row whose class changed.

    Attributes
    ----------
    row : int
        Row in the batch.
    ambiguity : float
        Ambiguity of the row.
    before, after : object
        Class before and after.
    proba_before, proba_after : float
        Probability of the class before, before; and of the class after, after.
    factor_before, factor_after : float
        What the two classes were multiplied by.
    left_to_before, given_to_after : float
        Probability of the class before, after; and of the class after, before.
    """

    row: int
    ambiguity: float
    before: Any
    after: Any
    proba_before: float
    proba_after: float
    factor_before: float
    factor_after: float
    left_to_before: float
    given_to_after: float

    def __str__(self) -> str:
        return (
            f"Row {self.row} (ambiguity {self.ambiguity:.2f}): {self.before} goes from "
            f"{self.proba_before:.2f} to {self.left_to_before:.2f} and {self.after} from "
            f"{self.given_to_after:.2f} to {self.proba_after:.2f}, so {self.after} leads."
        )


@dataclass(frozen=True)
class Explanation:
    """What changed and why: one entry for each row whose class changed.

    Attributes
    ----------
    row : ndarray of shape (n_changed,)
        Row in the batch.
    ambiguity : ndarray of shape (n_changed,)
        Ambiguity of the row.
    before, after : ndarray of shape (n_changed,)
        Class before and after the adjustment. In multi-label problems one entry stands for one
        label: `label` names it, and `before` and `after` are 0 or 1.
    proba_before, proba_after : ndarray of shape (n_changed, n_classes)
        Probabilities before and after; of no and yes in multi-label problems.
    factors : ndarray of shape (n_changed, n_classes)
        Probability after over probability before for each class; 1 where both are zero.
    label : ndarray of shape (n_changed,) or None
        The label that changed, in multi-label problems.
    """

    row: np.ndarray
    ambiguity: np.ndarray
    before: np.ndarray
    after: np.ndarray
    proba_before: np.ndarray
    proba_after: np.ndarray
    factors: np.ndarray
    codes: np.ndarray
    label: np.ndarray | None = None

    @classmethod
    def from_predictions(
        cls,
        before: np.ndarray,
        after: np.ndarray,
        ambiguity: np.ndarray,
        classes: np.ndarray,
        decide: Callable[[np.ndarray], np.ndarray],
    ) -> Explanation:
        """Compare probabilities before and after an adjustment.

        `decide` is the rule from probabilities to class codes, or to a 0/1 matrix.
        """
        codes = np.stack([decide(before), decide(after)], axis=-1).astype(int)
        # Old and new decision of each row, (n, 2), or of each label of each row, (n, m, 2).
        if codes.ndim == 2:
            row = np.flatnonzero(codes[:, 0] != codes[:, 1])
            codes, doubt, label, names = codes[row], ambiguity[row], None, classes
            before, after = before[row], after[row]
        else:
            row, column = np.nonzero(codes[:, :, 0] != codes[:, :, 1])
            codes, doubt, label = codes[row, column], ambiguity[row, column], classes[column]
            names = np.array([0, 1])
            before, after = (_no_yes(p[row, column]) for p in (before, after))
        # A class at zero stays there; 1 says that nothing was done to it.
        factors = np.divide(after, before, out=np.ones_like(after), where=before > 0)
        return cls(
            row, doubt, names[codes[:, 0]], names[codes[:, 1]], before, after, factors, codes, label
        )

    def __len__(self) -> int:
        return int(self.row.size)

    def __getitem__(self, i: int) -> ChangedRow:
        old, new = self.codes[i]
        named = [self.before[i], self.after[i]]
        if self.label is not None:
            named = [f"{self.label[i]}: {'yes' if value else 'no'}" for value in named]
        return ChangedRow(
            row=int(self.row[i]),
            ambiguity=float(self.ambiguity[i]),
            before=named[0],
            after=named[1],
            proba_before=float(self.proba_before[i, old]),
            proba_after=float(self.proba_after[i, new]),
            factor_before=float(self.factors[i, old]),
            factor_after=float(self.factors[i, new]),
            left_to_before=float(self.proba_after[i, old]),
            given_to_after=float(self.proba_before[i, new]),
        )

    def __iter__(self) -> Iterator[ChangedRow]:
        return (self[i] for i in range(len(self)))

    def __str__(self) -> str:
        return "\n".join(str(changed) for changed in self)


def _no_yes(p: np.ndarray) -> np.ndarray:
    return np.stack([1 - p, p], axis=1)
