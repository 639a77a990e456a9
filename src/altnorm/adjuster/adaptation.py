"""New predictions without labels: re-target what was fitted, or say that something has changed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from altnorm._base.arrays import Array, on_host, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.validation import check_level
from altnorm.adjuster.families import BiasFamily, Family, MatrixFamily
from altnorm.adjuster.folds import Dealing, Validation
from altnorm.adjuster.settings import MatrixSetting
from altnorm.balance.label_shift import profile_rows, take_in
from altnorm.balance.mixtures import CONCENTRATIONS, N_CHANGES
from altnorm.balance.one_class import N_SHARES
from altnorm.balance.shift import SIGNIFICANCE, Shift, judge_shift
from altnorm.balance.shift_sums import Intake, Profile
from altnorm.families import Identity, MatrixScaling, ShrunkBias
from altnorm.method.drift import Drift, Usage, count_usage, fitted_usage, measure_drift
from altnorm.method.estimator import ProbabilityTransformer
from altnorm.method.normalizer import AlternatingNormalizer

RIDGE = 1.0
"""Penalty of the calibration that the balance is estimated with: biases of about 1 are expected."""


@dataclass(frozen=True)
class Window:
    """What `adapt` and `check` need to know of new predictions; those of two batches add up.

    Attributes
    ----------
    intake : Intake
        Sums over calibrated rows.
    usage : Usage
        How the rows use the classes.
    """

    intake: Intake
    usage: Usage

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.intake.n_rows

    def plus(self, other: Window) -> Window:
        """Return the sums over both."""
        return Window(self.intake.plus(other.intake), self.usage.plus(other.usage))

    def to_vector(self) -> np.ndarray:
        """Return the sums as one vector, which adds up as they do."""
        return np.concatenate([np.ravel(part) for part in (*self.intake, *self.usage)])

    @classmethod
    def from_vector(cls, vector: np.ndarray, n_classes: int) -> Window:
        """Return the sums that `to_vector` made a vector of."""
        m, g = n_classes, CONCENTRATIONS.size
        sizes = m, m, g * m, N_SHARES * m, N_CHANGES, m * m, m, 2
        parts = np.split(vector, np.cumsum([vector.size - sum(sizes), *sizes[:-1]]))
        counts, mass, squares, share, one_class, evidence, information, used, rest = parts
        intake = Intake(
            np.rint(counts).astype(np.int64).reshape(m, -1),
            mass,
            squares,
            share.reshape(g, m),
            one_class.reshape(N_SHARES, m),
            evidence,
            information.reshape(m, m),
        )
        usage = Usage(np.rint(used).astype(np.int64), *np.rint(rest).astype(int).tolist())
        return cls(intake, usage)


def tilted(model: Any, log_ratio: np.ndarray) -> Any:
    """Return a copy of a bias or matrix model whose classes are as much more probable."""
    changed = copy(model)
    changed.bias_ = model.bias_ + log_ratio
    changed.bias_ -= changed.bias_.mean()
    return changed


def retarget(estimator: Any, ratio: np.ndarray) -> None:
    """Change a fitted Adjuster or AlternatingNormalizerCV in place.

    Bias and matrix are multiplied by the ratio of the balances. Otherwise the calibrated
    probabilities decide, multiplied by the ratio. That holds for alternating normalization too: it
    multiplies by the prior and divides by the use of the classes in the reference, and if both
    change by the same ratio, as after a fit to data of the new balance, little is left of it.
    """
    log_ratio, decider = np.log(ratio), estimator.best_normalizer_
    calibrator = estimator.calibrator_
    if isinstance(decider, (AlternatingNormalizer, Identity)):
        known = calibrator or estimator.shift_matrix_ or estimator.shift_calibrator_
        estimator.best_normalizer_ = tilted(known, log_ratio)
        estimator.family_ = "bias" if isinstance(known, ShrunkBias) else "matrix"
        estimator.calibrator_, estimator.temperatures_ = None, None
        return
    # A temperature that follows divides the scores, and the ratio with them.
    temperature = 1.0 if estimator.temperatures_ is None else estimator.temperatures_[0]
    estimator.best_normalizer_ = tilted(decider, temperature * log_ratio)
    if calibrator is not None:
        estimator.calibrator_ = tilted(calibrator, log_ratio)


def fit_calibrator(proba: Array, labels: np.ndarray, weight: np.ndarray) -> ShrunkBias:
    """Fit the calibration that the balance is estimated with."""
    return ShrunkBias("labels", RIDGE).fit(proba, labels, sample_weight=weight)


def better_matrix(families: Sequence[Family]) -> tuple[MatrixFamily, MatrixSetting] | None:
    """Return a matrix if it makes labels more probable than biases do, cross-fitted.

    Then the balance is estimated with it: on re-sampled validation rows of real classifiers that
    gains more, most of all where classes are confused in pairs. The tests stay with the biases. A
    matrix has so many numbers that validation rows, even cross-fitted, do not look like new ones.
    Only a ridge will do: a penalty that expects few confusions lets some entries become large, and
    under another balance much depends on these.

    Returns
    -------
    tuple of MatrixFamily and MatrixSetting, or None
        The family, and the setting.
    """
    bias = next((family for family in families if isinstance(family, BiasFamily)), None)
    matrix = next((family for family in families if isinstance(family, MatrixFamily)), None)
    if bias is None or matrix is None:
        return None
    setting = matrix.likeliest(penalty="ridge")
    better = matrix.log_likelihood[setting] > bias.log_likelihood[bias.likeliest()]
    return (matrix, setting) if better else None


def _advice(shift: Shift, drift: Drift) -> str:
    """What follows from a change, or from none."""
    if shift.reason == "small_shift" and not shift.fits_badly:
        return "nothing"
    return {"adapted": "adapt", "not_label_shift": "stop"}.get(shift.reason, drift.advice)


class Adaptable(ProbabilityTransformer):
    """What an estimator that was tuned on labels can say and do about new predictions."""

    best_normalizer_: Any
    family_: str | None
    calibrator_: Any
    temperatures_: Any
    shift_: Shift
    shift_calibrator_: Any
    shift_matrix_: Any
    shift_profile_: Any

    def adapt(
        self, proba: Any, *, significance: float = SIGNIFICANCE, only_balance: bool = False
    ) -> Self:
        """Return a fitted copy for the class balance of new predictions; needs no labels.

        Where the predictions show no other balance, or one that is hardly another, or where another
        balance does not explain how they have changed, the copy is equal to the original. In
        between, only a part of the change is adopted. Its `shift_` says which.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes) or Window
            New predictions, columns as in `fit`, some hundred rows at least; or what `take_in`
            returned for them.
        significance : float, default=0.05
            Level of the test for a shift.
        only_balance : bool, default=False
            Whether you know that nothing but the class balance can have changed. Then the copy is
            for the estimated balance, whatever the tests say.

        Returns
        -------
        self : object
            The copy, with a :class:`~altnorm.balance.shift.Shift` as `shift_`.
        """
        self._check_adaptable()
        check_level(significance, "significance")
        window = proba if isinstance(proba, Window) else self.take_in(proba)
        adapted = copy(self)
        adapted.shift_ = judge_shift(
            self._profile(), window.intake, significance=significance, only_balance=only_balance
        )
        if adapted.shift_.adapted:
            retarget(adapted, np.divide(adapted.shift_.after, adapted.shift_.before))
            adapted.usage_counts_, *adapted.usage_doubt_ = window.usage
        return adapted

    def take_in(self, proba: Any, so_far: Window | None = None) -> Window:
        """Sum new predictions up, for `adapt`; they are not needed again.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            New predictions, columns as in `fit`; better in batches of some hundred rows than
            singly.
        so_far : Window, optional
            Sums over earlier rows.

        Returns
        -------
        Window
            Sums over all rows. Those of separate streams can be added with `plus`.
        """
        checked = self._check_transform(on_host(proba))
        earlier = None if so_far is None else so_far.intake
        calibrated, sharper = self.shift_calibrator_.transform_clean(checked), None
        if self.shift_matrix_ is not None:
            sharper = self.shift_matrix_.transform_clean(checked)
        intake = take_in(self._profile(), calibrated, earlier, sharper=sharper)
        usage = count_usage(self, checked)
        return Window(intake, usage if so_far is None else so_far.usage.plus(usage))

    def check(self, proba: Any) -> Drift:
        """Say whether incoming predictions still look like those at `fit`; needs no labels.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes) or Window
            Incoming predictions, columns as in `fit`; some hundred rows at least.

        Returns
        -------
        Drift
            `drifted`, the numbers behind it, `advice` on what follows, and one line as `str`.
        """
        if self.multilabel is not None:
            return super().check(proba)
        window = proba if isinstance(proba, Window) else self.take_in(proba)
        shift = getattr(self, "shift_", None)
        drift = measure_drift(fitted_usage(self), window.usage)
        balance = np.array(shift.after) if shift is not None and shift.adapted else None
        found = judge_shift(self._profile(), window.intake, balance=balance)
        return replace(drift, advice=_advice(found, drift))

    def _fit_profile(self, data: Validation, families: Sequence[Family], dealing: Dealing) -> None:
        """Keep what `adapt` needs to know of the validation data."""
        self.__dict__.pop("shift_", None)
        self.shift_calibrator_, self.shift_matrix_, self.shift_profile_ = None, None, None
        if self.multilabel is not None:
            return
        self.shift_calibrator_ = fit_calibrator(data.work, data.labels, data.row_weight)
        calibrated = to_numpy(self.shift_calibrator_.transform_clean(data.work))
        better, sharper = better_matrix(families), None
        if better is not None:
            matrix, setting = better
            self.shift_matrix_ = self._fit_matrix(matrix, setting, data)
            sharper = matrix.crossfit_proba(dealing, setting)
        profile = profile_rows(calibrated, data.labels, data.weight, sharper=sharper)
        self.shift_profile_ = tuple(profile)

    def _fit_matrix(self, matrix: MatrixFamily, setting: MatrixSetting, data: Validation) -> Any:
        """Fit a setting on all rows, unless that is what calibrates anyway."""
        known = self.calibrator_
        if isinstance(known, MatrixScaling) and known.penalty == setting.penalty:
            return known
        return matrix.fit(data, setting)

    def _profile(self) -> Profile:
        return Profile(*self.shift_profile_)

    def _check_adaptable(self) -> None:
        check_is_fitted(self)
        if self.multilabel is not None:
            raise InputError(
                "`adapt` is for problems with one class per row",
                f"`multilabel` is {self.multilabel!r}",
                "Fit again on current validation data.",
                value=self.multilabel,
                code="parameter",
            )
        if hasattr(self, "shift_") and self.shift_.adapted:
            raise InputError(
                "`adapt` starts from what was fitted on labels",
                "this copy has been adapted already",
                "Call `adapt` of the original.",
                code="adapted_twice",
            )
