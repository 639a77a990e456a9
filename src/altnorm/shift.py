"""Whether to adapt to new data, and the record that says why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from altnorm._count_tests import compare_counts
from altnorm.label_shift import (
    Intake,
    Profile,
    balance_errors,
    estimate_balance,
    shrink_balance,
    unexplained,
)

__all__ = ["REASONS", "SIGNIFICANCE", "Shift", "judge_shift"]

REASONS = ("adapted", "no_shift", "not_label_shift")

SIGNIFICANCE = 0.001
"""Level of the test for a shift. One that is worth adapting to is far beyond it, and rows of one
person or document are not as independent as the test takes them to be."""

# Simulated label shift leaves at most 0.16 on average, even with calibrations that fit badly (heavy
# tails, classes of unequal difficulty); harder data of the same balance leave 0.5 to 1.
_LARGEST_REST = 0.25
_FIT_SIGNIFICANCE = 0.05  # a bad fit must also be more than the noise of few rows
_NORMAL = 1.96


@dataclass(frozen=True)
class Shift:
    """What new predictions say about the class balance, without labels.

    Attributes
    ----------
    reason : {"adapted", "no_shift", "not_label_shift"}
        "no_shift": classes are predicted as often as before. "not_label_shift": they are not, but
        another class balance does not explain the difference.
    p_value : float
        Of the hypothesis that nothing has changed: two-sample chi-squared tests of the predicted
        classes and of these with their confidences, after calibration; twice the smaller p-value.
    distance : float
        Total variation distance between the balances before and after.
    before, before_low, before_high : tuple of float
        Class balance of the validation data, with a 95 % interval for each class.
    after, after_low, after_high : tuple of float
        The same for the new data, as estimated; shrunk, while the interval is not.
    fit_p_value : float
        Of the hypothesis of label shift: within predicted classes, confidences are distributed as
        on re-weighted validation data.
    unexplained : float
        Which part of the difference the new balance leaves unexplained, from 0 to 1; label shift
        is given up beyond 0.25, if `fit_p_value` is below 0.05.
    n_rows : int
        New rows.
    """

    reason: str
    p_value: float
    distance: float
    before: tuple[float, ...]
    before_low: tuple[float, ...]
    before_high: tuple[float, ...]
    after: tuple[float, ...]
    after_low: tuple[float, ...]
    after_high: tuple[float, ...]
    fit_p_value: float
    unexplained: float
    n_rows: int

    @property
    def adapted(self) -> bool:
        """Whether there is a shift to adapt to."""
        return self.reason == "adapted"

    def __str__(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        rows = f"{self.n_rows:,} rows, {p}"
        if self.reason == "no_shift":
            return f"Not adapted: no sign of another class balance ({rows})."
        if not self.adapted:
            return (
                f"Not adapted: the predictions have changed ({rows}), but another class balance "
                f"leaves {self.unexplained:.0%} of the difference unexplained."
            )
        most = int(np.argmax(np.abs(np.subtract(self.after, self.before))))
        return (
            f"Adapted to another class balance, at a distance of {self.distance:.2f} ({rows}). "
            f"Class number {most} changed most: {self.before[most]:.3f} before, "
            f"{self.after[most]:.3f} now ({self.after_low[most]:.3f} to "
            f"{self.after_high[most]:.3f})."
        )


def judge_shift(
    profile: Profile,
    intake: Intake,
    *,
    significance: float = SIGNIFICANCE,
    balance: np.ndarray | None = None,
) -> Shift:
    """Say whether new rows have another class balance, and nothing else that is new.

    Parameters
    ----------
    profile : Profile
        Sums over the calibrated validation rows.
    intake : Intake
        Sums over the calibrated new rows.
    significance : float, default=0.001
        Level of the test for a shift.
    balance : ndarray of shape (m,), optional
        The balance that holds so far; None is that of the validation data.

    Returns
    -------
    Shift
        The numbers and the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.label_shift import profile_rows, take_in
    >>> from altnorm.shift import judge_shift
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> old, new = proba.repeat([500, 500], axis=0), proba.repeat([340, 660], axis=0)
    >>> profile = profile_rows(old, np.repeat([0, 1, 0, 1], [450, 50, 50, 450]))  # calibrated
    >>> shift = judge_shift(profile, take_in(profile, new))
    >>> shift.reason, np.round(shift.after, 2)
    ('adapted', array([0.3, 0.7]))
    """
    source, old = profile.balance, profile.counts
    if balance is not None:
        old = profile.reweighted(balance)
    p_value = _no_change(old, intake.counts)
    found, after = estimate_balance(profile, intake), shrink_balance(profile, intake)
    fit_p_value, rest = unexplained(profile, intake.counts, found, old)
    reason = "no_shift"
    if p_value < significance:
        misfit = rest > _LARGEST_REST and fit_p_value < _FIT_SIGNIFICANCE
        reason = "not_label_shift" if misfit else "adapted"
    errors = balance_errors(profile, intake, found)
    source_errors = np.sqrt(source * (1 - source) / profile.n_rows)
    return Shift(
        reason,
        p_value,
        float(np.abs(after - source).sum() / 2),
        *_interval(source, source, source_errors),
        *_interval(after, found, errors),
        fit_p_value,
        rest,
        intake.n_rows,
    )


def _no_change(before: np.ndarray, now: np.ndarray) -> float:
    """P-value of the hypothesis that nothing has changed.

    Predicted classes alone have little power where a classifier predicts few of them, or where it
    is in doubt about most rows; classes with confidences have more there, and less elsewhere.
    """
    classes = compare_counts(before.sum(axis=1), now.sum(axis=1))
    both = compare_counts(before.ravel(), now.ravel())
    return min(1.0, 2 * min(classes.p_value, both.p_value))


def _interval(
    value: np.ndarray, center: np.ndarray, error: np.ndarray
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    low, high = (np.clip(center + side * _NORMAL * error, 0, 1) for side in (-1, 1))
    # The shrunk value may leave the interval around the unshrunk one.
    low, high = np.minimum(low, value), np.maximum(high, value)
    return tuple(value.tolist()), tuple(low.tolist()), tuple(high.tolist())
