"""Why the decision on a row changed, in numbers and in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, overload

import numpy as np


@dataclass(frozen=True)
class ChangedRow:
    """One row whose decision changed; a person has no probability: not a number."""

    row: int  # in the batch
    ambiguity: float
    before: Any  # class
    after: Any  # class; None if the row is left to a person
    proba_before: float  # of the class before, before
    proba_after: float  # of the class after, after
    left_to_before: float  # probability of the class before, after
    given_to_after: float  # probability of the class after, before
    leads: bool = True  # whether the class after is the most probable; if not, the purpose decided

    def __str__(self) -> str:
        start = (
            f"Row {self.row} (ambiguity {self.ambiguity:.2f}): {self.before} goes from "
            f"{self.proba_before:.2f} to {self.left_to_before:.2f}"
        )
        if self.after is None:
            return f"{start}; the row is left to a person."
        text = f"{start} and {self.after} from {self.given_to_after:.2f} to {self.proba_after:.2f}"
        if self.leads:
            return f"{text}, so {self.after} leads."
        return f"{text}; {self.after} is not the most probable, but the decision for the goal."


@dataclass(frozen=True)
class Explanation:
    """What changed and why: one entry for each row whose decision changed.

    Attributes
    ----------
    row : ndarray of shape (n_changed,)
        Row in the batch.
    ambiguity : ndarray of shape (n_changed,)
        Ambiguity of the row.
    before, after : ndarray of shape (n_changed,)
        The most probable class before, and the decision after; None where a row is left to a
        person. In multi-label problems 0 or 1, of the label that `label` names.
    proba_before, proba_after : ndarray of shape (n_changed, n_classes)
        Probabilities before and after; of no and yes in multi-label problems.
    factors : ndarray of shape (n_changed, n_classes)
        Probability after over probability before for each class; 1 where both are zero.
    codes : ndarray of shape (n_changed, 2)
        Columns of the classes before and after; the number of classes stands for a person.
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
    def from_decisions(
        cls,
        proba: tuple[np.ndarray, np.ndarray],
        decided: tuple[np.ndarray, np.ndarray],
        ambiguity: np.ndarray,
        classes: np.ndarray,
    ) -> Explanation:
        """Compare before and after: probabilities (n, m), and columns (n,) or 0/1 matrices."""
        # Old and new decision of each row, (n, 2), or of each label of each row, (n, m, 2).
        codes = np.stack(decided, axis=-1).astype(int)
        changed = np.nonzero(codes[..., 0] != codes[..., 1])
        codes, label = codes[changed], None
        before, after = (p[changed] for p in proba)
        if len(changed) == 2:  # labels of rows, each yes or no
            label, names = classes[changed[1]], np.array([0, 1])
            before, after = (np.stack([1 - p, p], axis=1) for p in (before, after))
        elif codes.max(initial=0) < classes.size:
            names = classes
        else:
            names = np.array([*classes.tolist(), None], dtype=object)
        # A class at zero stays there; 1 says that nothing was done to it.
        factors = np.divide(after, before, out=np.ones_like(after), where=before > 0)
        old, new = names[codes.T]
        return cls(changed[0], ambiguity[changed], old, new, before, after, factors, codes, label)

    def __len__(self) -> int:
        return int(self.row.size)

    @overload
    def __getitem__(self, i: int) -> ChangedRow: ...
    @overload
    def __getitem__(self, i: slice) -> Explanation: ...
    def __getitem__(self, i: int | slice) -> ChangedRow | Explanation:
        if isinstance(i, slice):
            every = {field.name: getattr(self, field.name) for field in fields(self)}
            part: dict[str, Any] = {k: v if v is None else v[i] for k, v in every.items()}
            return Explanation(**part)
        old, new = self.codes[i]
        named = [self.before[i], self.after[i]]
        if self.label is not None:
            named = [f"{self.label[i]}: {'yes' if value else 'no'}" for value in named]
        # One column more: a person has no probability.
        was, now = (np.append(p[i], np.nan) for p in (self.proba_before, self.proba_after))
        return ChangedRow(
            row=int(self.row[i]),
            ambiguity=float(self.ambiguity[i]),
            before=named[0],
            after=named[1],
            proba_before=float(was[old]),
            proba_after=float(now[new]),
            left_to_before=float(now[old]),
            given_to_after=float(was[new]),
            leads=bool(now[new] >= now[:-1].max()),
        )

    def __iter__(self) -> Iterator[ChangedRow]:
        return (self[i] for i in range(len(self)))

    def __str__(self) -> str:
        return "\n".join(str(changed) for changed in self)
