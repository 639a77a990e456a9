"""Whether to adapt to new data, and the record that says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import beta

from altnorm._base.persistence import storable
from altnorm._base.specs import Scope, Spec, declare, number, one_of
from altnorm.balance.count_tests import compare_counts
from altnorm.balance.label_shift import balance_errors, estimate_balance
from altnorm.balance.leaning import shift_over_leaning
from altnorm.balance.mean_tests import compare_means
from altnorm.balance.shift_sums import Intake, Profile

REASONS = ("adapted", "assumed", "no_shift", "small_shift", "not_label_shift")

SIGNIFICANCE = 0.05
"""Level of the test for a shift."""

# Total variation distance of the balances. Other people with the same balance look like a shift of
# 0.1 to 0.25 in simulations, and adapting to so small a shift gains little where it is one: nothing
# is done up to the first, and everything beyond the second. Both are lower by as much as `_CLOSER`
# where the rows say that it is no classifier that leans to some classes, which is what looks most
# like a small shift. They can only say so if there are enough of them for each class.
_SMALL, _CLEAR = 0.2, 0.3
_CLOSER, _NO_BETTER, _BETTER = 0.1, 1.0, 2.0
_FEW_ROWS, _ENOUGH_ROWS = 20, 50
# Part of the change that another balance may leave unexplained. In simulations, data that are
# harder or of other people leave at least 0.22 where the bad fit is significant; label shift is
# hardly ever significant, and label shift of harder data leaves 0.1 to 0.9.
_GOOD_FIT, _BAD_FIT = 0.1, 0.25
# Beyond these distances more may stay unexplained, if it is alike in all classes: the data are
# harder, or the classifier surer, and the balance is another one, too. Other people alone seldom
# look so far away.
_FAR, _VERY_FAR = 0.5, 0.7
_BETTER_HALF, _WORSE_HALF = 0.5, 0.75
# Part that may differ from class to class. In simulations, label shift leaves nothing, on harder
# data 0.01 to 0.1; classes that have moved 0.05 to 0.2, and up to 0.3 on harder data.
_EVEN, _UNEVEN = 0.03, 0.08
# A bad fit must also be more than the noise of few rows. Label shift hardly ever leaves so much, so
# that a looser level costs nothing there, and fewer small samples of other people pass.
_FIT_SIGNIFICANCE, _WITHIN_SIGNIFICANCE = 0.05, 0.01
_RAKING_STEPS, _RAKED = 200, 1e-6
_TAIL = 0.025


def _are_shares(value: Any, scope: Scope) -> bool:
    return scope.fits(("m",), (len(value),)) and all(0 <= share <= 1 for share in value)


_SHARES = Spec("one share per class", _are_shares)


@storable
@dataclass(frozen=True)
class Shift:
    """What new predictions say about the class balance, without labels.

    Attributes
    ----------
    reason : {"adapted", "assumed", "no_shift", "small_shift", "not_label_shift"}
        "assumed": adapted because the caller said that only the balance can have changed.
        "no_shift": classes are as probable as before, on average. "small_shift": they are not, but
        other people or devices make as much of a difference. "not_label_shift": the difference is
        large, but another class balance does not explain it.
    p_value : float
        Of the hypothesis that nothing has changed: a two-sample test of the mean probability of
        each class, after calibration.
    distance : float
        Total variation distance between the old balance and the estimated one, less what the
        count of validation rows alone would give.
    strength : float
        Which part of the estimated change is adopted, from 0 to 1: all of it if the distance is at
        least 0.3 and the fit good, and nothing if it is below 0.2 or the fit bad; 0.2 and 0.1 where
        `over_leaning` is 2 or more. From a distance of 0.5 on the fit may be worse, if it is so
        alike in all classes.
    before, before_low, before_high : tuple of float
        Class balance of the validation data, with a 95 % interval for each class.
    after, after_low, after_high : tuple of float
        The same for the new data: what is adopted, with an interval for the true share.
    fit_p_value : float
        Of the hypothesis of label shift: within predicted classes, confidences are distributed as
        on re-weighted validation data.
    unexplained : float
        Which part of the difference the new balance leaves unexplained, from 0 to 1. If
        `fit_p_value` is below 0.05, less is adopted beyond 0.1, and nothing beyond 0.25 (at a
        distance of 0.7 or more: 0.5 and 0.75).
    uneven : float
        Which part is left even if confidences may have changed in the same way in all classes. If
        `fit_p_value` is below 0.05, less is adopted beyond 0.03, and nothing beyond 0.08.
    over_leaning : float
        How much better another balance explains the new rows than a classifier does that leans to
        some classes, in standard deviations; near 0 the rows cannot tell. Beyond 1, smaller
        distances are adopted if there are at least 20 new rows per class.
    n_rows : int
        New rows.
    """

    reason: str
    p_value: float
    distance: float
    strength: float
    before: tuple[float, ...]
    before_low: tuple[float, ...]
    before_high: tuple[float, ...]
    after: tuple[float, ...]
    after_low: tuple[float, ...]
    after_high: tuple[float, ...]
    fit_p_value: float
    unexplained: float
    uneven: float
    over_leaning: float
    n_rows: int

    _fields: ClassVar = declare(
        reason=one_of(REASONS),
        **dict.fromkeys(("p_value", "distance", "strength", "fit_p_value"), number(0, 1)),
        **dict.fromkeys(("unexplained", "uneven"), number(0, 1)),
        over_leaning=number(),
        **dict.fromkeys(("before", "before_low", "before_high"), _SHARES),
        **dict.fromkeys(("after", "after_low", "after_high"), _SHARES),
    )

    @property
    def adapted(self) -> bool:
        """Whether there is a shift to adapt to."""
        return self.reason in ("adapted", "assumed")

    @property
    def fits_badly(self) -> bool:
        """Whether another class balance leaves too much unexplained."""
        bad = self.unexplained > _GOOD_FIT or self.uneven > _EVEN
        return bad and self.fit_p_value < _FIT_SIGNIFICANCE

    def __str__(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        rows = f"{self.n_rows:,} rows, {p}"
        if self.reason == "no_shift":
            return f"Not adapted: no sign of another class balance ({rows})."
        if self.reason == "small_shift":
            return (
                f"Not adapted: the class balance seems to have changed ({rows}), but so little, a "
                f"distance of {self.distance:.2f}, that something else may have."
            )
        if not self.adapted:
            return (
                f"Not adapted: the predictions have changed ({rows}), but another class balance "
                f"{self._what_is_left()}."
            )
        most = int(np.argmax(np.abs(np.subtract(self.after, self.before))))
        asked = ", as asked" if self.reason == "assumed" else ""
        return (
            f"Adapted to another class balance{asked}, at a distance of {self.distance:.2f} "
            f"({rows}).{self._why_in_part()} Class number {most} changed most: "
            f"{self.before[most]:.3f} before, {self.after[most]:.3f} now "
            f"({self.after_low[most]:.3f} to {self.after_high[most]:.3f})."
        )

    def _why_in_part(self) -> str:
        if self.strength == 1:
            return ""
        small = "so small a distance may have other reasons"
        why = f"it {self._what_is_left()}" if self.fits_badly else small
        return f" Only {self.strength:.0%} of the change is adopted: {why}."

    def _what_is_left(self) -> str:
        unlike = ", not alike in all classes" if self.uneven > _EVEN else ""
        return f"leaves {self.unexplained:.0%} of the difference unexplained{unlike}"


def judge_shift(
    profile: Profile,
    intake: Intake,
    *,
    significance: float = SIGNIFICANCE,
    balance: np.ndarray | None = None,
    only_balance: bool = False,
) -> Shift:
    """Say whether new rows have another class balance, and nothing else that is new.

    Parameters
    ----------
    profile : Profile
        Sums over the calibrated validation rows.
    intake : Intake
        Sums over the calibrated new rows.
    significance : float, default=0.05
        Level of the test for a shift.
    balance : ndarray of shape (m,), optional
        The balance that holds so far; None is that of the validation data.
    only_balance : bool, default=False
        Whether it is known that nothing else can have changed. Then the estimate is adopted
        whatever the tests say.

    Returns
    -------
    Shift
        The numbers and the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.balance.label_shift import profile_rows, take_in
    >>> from altnorm.balance.shift import judge_shift
    >>> proba = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> old, new = proba.repeat([500, 500], axis=0), proba.repeat([180, 820], axis=0)
    >>> profile = profile_rows(old, np.repeat([0, 1, 0, 1], [450, 50, 50, 450]))  # calibrated
    >>> shift = judge_shift(profile, take_in(profile, new))
    >>> shift.reason, np.round(shift.after, 2)
    ('adapted', array([0.1, 0.9]))
    """
    source = profile.balance
    current = source if balance is None else balance
    p_value = no_change(profile, intake, balance)
    found = estimate_balance(profile, intake)
    fit_p_value, rest = unexplained(profile, intake.counts, found, current)
    unlike = uneven(profile, intake.counts, found, current)
    distance = _distance_beyond_chance(profile, current, found)
    over_leaning = shift_over_leaning(profile, intake, found)
    reason, strength = "assumed", 1.0
    if not only_balance:
        closer = _closer(over_leaning, intake.n_rows / source.size)
        reason, strength = _decide(distance, closer, fit_p_value, rest, unlike)
    if not only_balance and p_value >= significance:
        reason, strength = "no_shift", 0.0
    errors = balance_errors(profile, intake)
    source_errors = np.sqrt(source * (1 - source) / profile.n_rows)
    return Shift(
        reason,
        p_value,
        distance,
        strength,
        *_interval(source, source, source_errors),
        *_interval((1 - strength) * current + strength * found, found, errors),
        fit_p_value,
        rest,
        unlike,
        over_leaning,
        intake.n_rows,
    )


def _decide(
    distance: float, closer: float, fit_p_value: float, rest: float, unlike: float
) -> tuple[str, float]:
    """Reason and strength, if there is a change."""
    strength = _ramp(distance, _SMALL - closer, _CLEAR - closer)
    if not strength:
        return "small_shift", 0.0
    if fit_p_value < _FIT_SIGNIFICANCE:
        far = _ramp(distance, _FAR, _VERY_FAR) * _ramp(rest, _WORSE_HALF, _BETTER_HALF)
        strength *= max(_ramp(rest, _BAD_FIT, _GOOD_FIT), far) * _ramp(unlike, _UNEVEN, _EVEN)
    return "adapted" if strength else "not_label_shift", strength


def _closer(over_leaning: float, rows_per_class: float) -> float:
    """How much smaller distances may be, because it is no classifier that leans."""
    surely = _ramp(rows_per_class, _FEW_ROWS, _ENOUGH_ROWS)
    return _CLOSER * surely * _ramp(over_leaning, _NO_BETTER, _BETTER)


def _distance_beyond_chance(profile: Profile, old: np.ndarray, new: np.ndarray) -> float:
    """Total variation distance, less what it would be if validation rows were only few."""
    errors = np.sqrt(old * (1 - old) / profile.reweighted(old).sum())
    chance = np.sqrt(2 / np.pi) * errors.sum()  # mean absolute value of normal variables
    return max(0.0, float(np.abs(new - old).sum() - chance) / 2)


def _ramp(value: float, nothing: float, everything: float) -> float:
    """From 0 at `nothing` to 1 at `everything`, in a straight line."""
    return float(np.clip((value - nothing) / (everything - nothing), 0, 1))


def no_change(profile: Profile, intake: Intake, balance: np.ndarray | None = None) -> float:
    """P-value of the hypothesis that the classes are as probable as before, on average.

    Mean probabilities see another balance long before predicted classes do, where a classifier is
    in doubt about most rows or predicts few of the classes.

    Parameters
    ----------
    profile : Profile
        Sums over the validation rows.
    intake : Intake
        Sums over the new rows.
    balance : ndarray of shape (m,), optional
        The balance that holds so far; None is that of the validation data.
    """
    if not intake.n_rows:
        return 1.0
    return compare_means(profile.sums(balance), intake.sums(), profile.covariance)


def unexplained(
    profile: Profile, counts: np.ndarray, balance: np.ndarray, before: np.ndarray | None = None
) -> tuple[float, float]:
    """Say how badly re-weighted validation rows fit the new ones.

    Parameters
    ----------
    profile : Profile
        Sums over the validation rows.
    counts : ndarray of shape (m, b)
        New rows of each predicted class and confidence bin.
    balance : ndarray of shape (m,)
        Balance of the new rows.
    before : ndarray of shape (m,), optional
        Balance that the new rows differ from; None is that of the validation data.

    Returns
    -------
    p_value : float
        Of the hypothesis that confidences are distributed as in the re-weighted validation rows,
        within each predicted class and over all of them; twice the smaller p-value.
    share : float
        Which part of the difference between old and new rows the new balance leaves.
    """
    left, p_value = _distance(profile, counts, balance)
    difference, _ = _distance(profile, counts, profile.balance if before is None else before)
    return p_value, float(min(1.0, left / difference)) if difference else 0.0


def uneven(
    profile: Profile, counts: np.ndarray, balance: np.ndarray, before: np.ndarray | None = None
) -> float:
    """Say how badly they fit if confidences may have changed in the same way in all classes.

    Harder data, or a classifier that has become surer, move confidences in all classes; classes
    that have moved do so in some. The re-weighted validation rows get a factor for each bin of
    confidence, the same for all predicted classes, and are compared within these, and in how often
    each is predicted: if the data are harder and a classifier favours some classes, the balance
    that its probabilities suggest does not explain its predictions.

    Parameters
    ----------
    profile, counts, balance, before
        As for `unexplained`.

    Returns
    -------
    float
        Which part of the difference between old and new rows is left. Differences within classes
        count only if they are more than noise.
    """
    difference, _ = _distance(profile, counts, profile.balance if before is None else before)
    if not difference:
        return 0.0
    old = profile.reweighted(balance)
    excess = compare_counts(old.sum(axis=1), counts.sum(axis=1)).excess
    within = compare_counts(_rake(profile.reweighted_within(balance), counts), counts)
    if within.p_value < _WITHIN_SIGNIFICANCE:
        excess += within.excess
    return float(min(1.0, excess * (1 / old.sum() + 1 / counts.sum()) / difference))


def _rake(old: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Multiply the columns until they are as full as they are now, the rows as full as before."""
    totals, target = old.sum(axis=1, keepdims=True), now.sum(axis=0)
    # What the rows would hold if there were as many as now; rows that are empty stay so.
    scale = np.divide(now.sum(axis=1, keepdims=True), totals, out=0 * totals, where=totals > 0)
    for _ in range(_RAKING_STEPS):
        full = (old * scale).sum(axis=0)
        factor = np.divide(target, full, out=np.ones(full.size), where=full > 0)
        old = old * factor
        sums = old.sum(axis=1, keepdims=True)
        old = old * np.divide(totals, sums, out=np.ones(sums.shape), where=sums > 0)
        if np.abs(factor - 1).max() <= _RAKED:
            break
    return old


def _distance(profile: Profile, now: np.ndarray, balance: np.ndarray) -> tuple[float, float]:
    """Squared distance beyond chance from the re-weighted rows, and a p-value for confidences."""
    old = profile.reweighted(balance)
    within = compare_counts(profile.reweighted_within(balance), now)
    over_all = compare_counts(old.sum(axis=0), now.sum(axis=0))
    between = compare_counts(old.sum(axis=1), now.sum(axis=1))
    p_value = min(1.0, 2 * min(within.p_value, over_all.p_value))
    # Over all classes is a part of within them: few cells, so it sees what all classes share.
    excess = between.excess + max(within.excess, over_all.excess)
    return excess * (1 / old.sum() + 1 / now.sum()), p_value


def _interval(
    value: np.ndarray, center: np.ndarray, error: np.ndarray
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """95 % intervals: quantiles of the beta distributions with these means and errors."""
    largest = center * (1 - center)
    variance = np.minimum(error**2, 0.999 * largest)
    rows = np.divide(largest, variance, out=np.full(center.shape, np.inf), where=variance > 0) - 1
    a, b = center * rows, (1 - center) * rows
    known = np.isfinite(rows)
    low, high = center.copy(), center.copy()
    low[known] = beta.ppf(_TAIL, a[known], b[known])
    high[known] = beta.ppf(1 - _TAIL, a[known], b[known])
    # What is adopted may lie outside the interval around the estimate.
    low, high = np.minimum(low, value), np.maximum(high, value)
    return tuple(value.tolist()), tuple(low.tolist()), tuple(high.tolist())
