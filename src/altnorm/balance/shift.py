"""The record of what new predictions say about the class balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from altnorm._base.persistence import storable
from altnorm._base.specs import Scope, Spec, declare, integer, number
from altnorm._base.words import html_card, p_words
from altnorm.balance.energy import Rows, energy_test
from altnorm.balance.estimate import estimate_balance

SIGNIFICANCE = 0.05  # of the energy test
SMALLEST_CHANGE = 0.0005  # of a share, that is told


def _are_shares(value: Any, scope: Scope) -> bool:
    return scope.fits(("m",), (len(value),)) and all(0 <= share <= 1 for share in value)


_SHARES = Spec("one share per class", _are_shares)


@storable
@dataclass(frozen=True)
class Shift:
    """What new predictions would mean if only the class balance had changed.

    Attributes
    ----------
    before, after : tuple of float
        Share of each class in the validation data, and in the new rows if only the balance changed.
    low, high : tuple of float
        95 % interval of each share of `after`.
    distance : float
        Total variation distance between the two balances, from 0 to 1.
    energy : float
        Energy distance between the new rows and the validation rows in the new balance, beyond
        what chance gives: about 0 if only the balance changed.
    p_value : float
        Of the test whether that is more than chance.
    contradicted : bool
        Whether the test says that something else has changed, at the level 0.05.
    adapted : bool
        Whether the model that has this record is for the new balance.
    n_rows : int
        New rows looked at.
    n_changed : int
        How many of them are decided differently for the new balance.
    names : tuple of str
        Names of the classes.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    distance: float
    energy: float
    p_value: float
    contradicted: bool
    adapted: bool
    n_rows: int
    n_changed: int
    names: tuple[str, ...] = ()

    _fields: ClassVar = declare(
        **dict.fromkeys(("before", "after", "low", "high"), _SHARES),
        **dict.fromkeys(("p_value", "distance"), number(0, 1)),
        **dict.fromkeys(("n_rows", "n_changed"), integer(0)),
    )

    def __str__(self) -> str:
        changed = f"{self.n_changed:,} of {self.n_rows:,} decisions"
        test = p_words(self.p_value)
        if self.adapted:
            doubt = f", although the predictions contradict that ({test})"
            told = "Adapted to another class balance, on your word that nothing else changed"
            return f"{told}{doubt * self.contradicted}: {changed} change. {self._most_changed()}."
        if self.contradicted:
            return (
                "Not adapted: something other than the class balance has changed "
                f"({test}, {self.n_rows:,} rows). If it were only the balance, {changed} would "
                "change."
            )
        if not self.n_changed:
            return f"Not adapted: no decision would change. {self._most_changed()}."
        return (
            f"Not adapted: if only the class balance changed, {changed} change, and predictions "
            f"alone cannot tell ({test} for something else). {self._most_changed()}."
        )

    def _most_changed(self) -> str:
        change = np.abs(np.subtract(self.after, self.before))
        j = int(change.argmax())
        if change[j] < SMALLEST_CHANGE:
            return "No share changes"
        return (
            f"The share of class {self.names[j] if self.names else j} changes most: "
            f"{self.before[j]:.3f} before, "
            f"{self.after[j]:.3f} now ({self.low[j]:.3f} to {self.high[j]:.3f})"
        )

    def _repr_html_(self) -> str:
        return html_card(str(self))


def look_for_shift(known: Rows, codes: np.ndarray, new: Rows, before: np.ndarray) -> Shift:
    """Estimate the balance of new rows, and test whether it can be all that changed.

    `before` is the mean of the calibrated probabilities of all validation rows, of which `known`
    are some. No model is adapted here, and no decision compared.
    """
    found = estimate_balance(new.calibrated, before, known=known.calibrated, codes=codes)
    test = energy_test(known, codes, new, before, found.shares)
    return Shift(
        before=tuple(before.tolist()),
        after=tuple(found.shares.tolist()),
        low=tuple(found.low.tolist()),
        high=tuple(found.high.tolist()),
        distance=float(np.abs(found.shares - before).sum() / 2),
        energy=test.energy,
        p_value=test.p_value,
        contradicted=test.p_value <= SIGNIFICANCE,
        adapted=False,
        n_rows=found.n_rows,
        n_changed=0,
    )
