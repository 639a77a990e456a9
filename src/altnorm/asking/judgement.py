"""What labels of changed rows say about an adjustment: adopt, do not adopt, or go on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.validation import check_level
from altnorm.asking.betting import (
    DrawnUnits,
    expected_labels,
    first_crossing,
    log_capital,
    possible,
    total_limits,
)
from altnorm.method.kinds import kind_of_labels

ADOPT, DO_NOT, GO_ON = "adopt", "do not adopt", "go on"


@dataclass(frozen=True)
class Judgement:
    """What the labels of some changed rows say about an adjustment.

    In multi-label problems what is fixed or broken is a label decision of a row, and the gain is
    that of the share of right label decisions; else it is that of the accuracy.

    Attributes
    ----------
    decision : {"adopt", "do not adopt", "go on"}
        "adopt": the adjustment fixes more than it breaks. "do not adopt": it does not. "go on": the
        labels do not decide it yet. Looking after every label and stopping at the first of the
        two answers, one errs with probability at most `significance`.
    gain : float
        Estimate of the gain over the whole pool: the share of changed decisions times the mean of
        those labelled (1 fixed, -1 broken, 0 neither); NaN without labels.
    ci_low, ci_high : float
        Confidence sequence for this gain: with probability at least ``1 - significance`` it holds
        the gain after each and every label. It guards both sides, each with half of
        `significance`. A decision can be wrong on one side only and has all of it, so it may fall
        some labels before the interval leaves 0; `str` then says so.
    p_value : float
        For "the adjustment does not fix more than it breaks", valid at any time.
    n_rows, n_changed : int
        Rows in the pool, and rows whose decision changes.
    n_labelled, n_fixed, n_broken : int
        Labelled rows, and the decisions among them that went from wrong to right and from right
        to wrong.
    n_expected : int
        About how many further labelled rows will decide, if the others are like those labelled;
        0 if they have.
    n_decided : int or None
        Number of labelled rows after which the decision fell.
    n_waiting : int
        Labels that do not count yet, because an earlier row has none.
    significance : float
        The level.
    multilabel : bool
        Whether decisions are label decisions.
    """

    decision: str
    gain: float
    ci_low: float
    ci_high: float
    p_value: float
    n_rows: int
    n_changed: int
    n_labelled: int
    n_fixed: int
    n_broken: int
    n_expected: int
    n_decided: int | None = None
    n_waiting: int = 0
    significance: float = 0.05
    multilabel: bool = False

    @property
    def adopted(self) -> bool:
        """Whether the decision is to adopt."""
        return self.decision == ADOPT

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold; what is not finite becomes None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }

    def __str__(self) -> str:
        start = self.decision.capitalize()
        if self.n_changed == 0:
            return f"{start}: no decision changes in {self.n_rows:,} rows."
        if self.n_labelled == 0:
            changed = f"{self.n_changed:,} of {self.n_rows:,} rows change"
            return f"{start}: no labels yet, {changed}; {self._outlook()}."
        fixed = f"{self.n_fixed:,} {kind_of_labels(self.multilabel).words.fixed}"
        return (
            f"{start}: {self.n_labelled:,} of {self.n_changed:,} changed rows labelled, {fixed}, "
            f"{self.n_broken:,} broken; {self._gain()}{self._rest()}."
        )

    def _gain(self) -> str:
        gain, low, high = (100 * value for value in (self.gain, self.ci_low, self.ci_high))
        change = "+.1f" if max(abs(gain), abs(low), abs(high)) >= 1 else "+.2f"
        p_value = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        return (
            f"gain over the pool {gain:{change}} points ({1 - self.significance:.0%} CI "
            f"{low:{change}} to {high:{change}}, valid at any time), {p_value}"
        )

    def _rest(self) -> str:
        """What is to come, or why the interval does not say what the decision says."""
        if self.decision == GO_ON:
            return f"; {self._outlook()}"
        holds_other = self.ci_low <= 0 if self.adopted else self.ci_high > 0
        return "; the sign is settled, the two-sided interval still holds 0" if holds_other else ""

    def _outlook(self) -> str:
        more = f"about {self.n_expected:,} more labels should decide"
        if self.n_waiting:
            more += f"; {self.n_waiting:,} labels do not count until all rows before them have one"
        return more


class Pool(NamedTuple):
    """What has to be known about the pool from which the labelled rows were drawn."""

    n_rows: int
    n_changed: int
    """Rows with a changed decision."""
    n_changes: int
    """Changed decisions: as many, or more in multi-label problems."""
    n_decisions: int
    """Decisions per row: 1, or the number of labels."""
    multilabel: bool = False


def weigh_labels(
    pool: Pool,
    fixed: np.ndarray,
    broken: np.ndarray,
    sizes: np.ndarray,
    *,
    significance: float = 0.05,
    n_waiting: int = 0,
) -> Judgement:
    """Weigh the labels of changed rows, one after the other.

    Parameters
    ----------
    pool : Pool
        Where the rows come from.
    fixed, broken, sizes : ndarray of shape (n_labelled,)
        Decisions of each labelled row that were fixed, that were broken, and that changed, in
        the order in which the rows were drawn.
    significance : float, default=0.05
        Largest probability of a wrong answer.
    n_waiting : int, default=0
        Labels that do not count yet.

    Returns
    -------
    Judgement
        The answer.
    """
    check_level(significance, "significance")
    draws = DrawnUnits(fixed - broken, sizes, pool.n_changes, pool.n_changed)
    decision, n_decided = _decide(draws, significance)
    low, high = total_limits(draws, significance)
    unit = max(1, pool.n_rows * pool.n_decisions)
    return Judgement(
        decision,
        float(np.clip(_estimate(draws), low, high)) / unit,
        low / unit,
        high / unit,
        _p_value(draws),
        pool.n_rows,
        pool.n_changed,
        fixed.size,
        int(fixed.sum()),
        int(broken.sum()),
        expected_labels(draws, significance) if decision == GO_ON else 0,
        n_decided,
        n_waiting,
        significance,
        pool.multilabel,
    )


def _decide(draws: DrawnUnits, significance: float) -> tuple[str, int | None]:
    """The decision, and the number of labels after which it fell."""
    # More is fixed than broken if the total is above 0; else it is below 1, as it is an integer.
    adopt_at = first_crossing(draws, 0, significance)
    reject_at = first_crossing(draws.mirrored(), -1, significance)
    lowest, highest = (bound[-1] for bound in possible(draws))
    if lowest > 0:  # what is certain wins over what was likely
        return ADOPT, adopt_at
    if highest <= 0:
        return DO_NOT, reject_at
    if adopt_at is not None and (reject_at is None or adopt_at < reject_at):
        return ADOPT, adopt_at
    return (GO_ON, None) if reject_at is None else (DO_NOT, reject_at)


def _estimate(draws: DrawnUnits) -> float:
    """Total of the pool if the rest is like what was drawn."""
    if not draws.x.size:
        return math.nan if draws.total else 0.0
    left = draws.total - draws.k.sum()
    return float(draws.x.sum() + left * np.mean(draws.x / draws.k))


def _p_value(draws: DrawnUnits) -> float:
    """For "no more is fixed than broken": one over the largest capital so far."""
    if possible(draws)[0][-1] > 0:
        return 0.0
    return min(1.0, float(np.exp(-log_capital(draws, 0).max())))
