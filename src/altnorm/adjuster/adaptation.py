"""New predictions without labels: another class balance, or something else that has changed."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from altnorm._base.arrays import Array, block_slices, take_rows, to_numpy, wide
from altnorm._base.errors import InputError
from altnorm._base.fitted import TINY, Fields
from altnorm._base.persistence import storable
from altnorm._base.validation import check_choice
from altnorm._base.words import p_words
from altnorm.adjuster.validation import Validation
from altnorm.balance import Sample, Shift, look_for_shift, spread_rows
from altnorm.estimator.drift import count_usage
from altnorm.estimator.reading import read_on_host
from altnorm.families.base import positive

MOST_NUMBERS = 2**18  # most numbers of validation predictions that a fitted model keeps for `adapt`


@storable
@dataclass(frozen=True, eq=False)
class KnownBalance:
    """What is kept of validation data with one class per row, to compare new predictions with."""

    shares: np.ndarray  # (m,) of the classes
    rows: np.ndarray  # (kept, m) some predictions as they came
    codes: np.ndarray  # (kept,) their classes

    def _check_fitted(self, fields: Fields) -> None:
        m = fields.n_classes
        fields.array("shares", "f", (m,), TINY, 1, total=1)
        rows = fields.array("rows", "f", (None, m), 0, 1, total=1, tolerance=1e-2)
        fields.array("codes", ("i", "u"), (len(rows),), 0, m - 1)

    @classmethod
    def of(cls, data: Validation, calibrate: Callable[[Array], Array]) -> KnownBalance:
        """Keep some rows, and the class shares that calibrated probabilities add up to."""
        m = data.proba.shape[1]
        total = np.zeros(m)
        for rows in block_slices(len(data.proba), 48 * m, data.work, cached=True):
            total += data.weight[rows] @ to_numpy(calibrate(wide(data.work[rows, :])))
        kept = _representative(data.labels, data.weight, MOST_NUMBERS // m)
        sample = to_numpy(take_rows(data.work, kept)).astype(np.float32)
        shares = np.maximum(positive(total), TINY)  # divided by when the balance is another one
        return cls(shares, sample, data.labels[kept])

    def look(self, rows: np.ndarray, calibrate: Callable[[Array], Array]) -> Shift:
        """Compare clean new probabilities with the validation rows that are kept."""
        before, now = (
            Sample(p, to_numpy(calibrate(p.astype(np.float64)))) for p in (self.rows, rows)
        )
        return look_for_shift(before, self.codes, now, self.shares)


def adapt(adjuster: Any, proba: Any, assume: str | None, *, insist: bool) -> Any:
    """Return a copy of a fitted adjuster, and in `shift_` what new predictions say; see there."""
    balance = _known_balance(adjuster)
    check_choice(assume, "assume", ("label_shift", None))
    rows = read_on_host(adjuster, proba).proba
    shift = balance.look(rows, adjuster.adjusted)
    adapted = _reweighted(adjuster, np.array(shift.before), np.array(shift.after))
    changed = adjuster.predict(proba) != adapted.predict(proba)
    if assume is None:
        adapted = copy(adjuster)
    elif shift.shift_rejected and not insist:
        raise InputError(
            "assume='label_shift' needs new predictions that another class balance explains",
            f"something else has changed ({p_words(shift.p_value)}, {shift.n_rows:,} rows)",
            "Label some rows on which both models differ, or pass insist=True to adapt anyway.",
            value=shift.p_value,
            code="shift_rejected",
        )
    else:
        adapted.usage_ = count_usage(adjuster, rows)
    adapted.shift_ = replace(
        shift,
        n_changed=int(changed.sum()),
        adapted=assume is not None,
        names=tuple(str(name) for name in adjuster.classes_),
    )
    return adapted


def _reweighted(adjuster: Any, before: np.ndarray, after: np.ndarray) -> Any:
    """Return a copy whose classes are more or less probable by the ratio of two balances."""
    changed, decision = copy(adjuster), replace(adjuster.decision_, on_input=False)
    changed.mixture_ = replace(adjuster.mixture_, keeps=False, log_ratio=np.log(after / before))
    # There decisions divide by the class shares, which the new balance replaces.
    if adjuster.scoring == "balanced_accuracy" and decision.kind == "weights":
        ratio = before / after
        worth = None if decision.worth is None else decision.worth * ratio[:, None]
        decision = replace(decision, values=decision.values * ratio, worth=worth)
    changed.decision_ = decision
    return changed


def _representative(codes: np.ndarray, weight: np.ndarray, most: int) -> np.ndarray:
    """Numbers of at most `most` rows, evenly over the classes; heavy rows may come twice."""
    order = np.argsort(codes, kind="stable")
    labels, row_weight = codes[order], weight[order]
    kept = labels[spread_rows(labels, np.ones(labels.max() + 1), max(most, 1))]
    parts = []
    for code, k in zip(*np.unique(kept, return_counts=True), strict=True):
        members = np.flatnonzero(labels == code)
        along = row_weight[members].cumsum()
        steps = (np.arange(k) + 0.5) * (along[-1] / k)
        parts.append(order[members[np.searchsorted(along, steps)]])
    return np.concatenate(parts)


def _known_balance(adjuster: Any) -> KnownBalance:
    """Return what an adjuster has kept; raise unless it can be adapted."""
    balance: KnownBalance | None = adjuster.balance_
    if balance is None:
        raise InputError(
            "`adapt` is for problems with one class per row",
            f"`multilabel` is {adjuster.multilabel!r}",
            "Fit again on current validation data.",
            value=adjuster.multilabel,
            code="parameter",
        )
    if hasattr(adjuster, "shift_") and adjuster.shift_.adapted:
        raise InputError(
            "`adapt` starts from what was fitted to labels",
            "this copy has been adapted already",
            "Call `adapt` of the original.",
            code="adapted_twice",
        )
    return balance
