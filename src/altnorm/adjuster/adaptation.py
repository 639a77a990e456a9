"""New predictions without labels: another class balance, or something else that has changed."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from altnorm._base.arrays import Array, block_slices, on_host, take_rows, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.specs import TINY, array, declare, nested, rule
from altnorm._base.validation import check_choice
from altnorm._base.words import p_words
from altnorm.adjuster.applied import apply_model
from altnorm.balance import Rows, Shift, look_for_shift, spread_rows
from altnorm.decisions import Decision
from altnorm.families import BiasCorrectedTemperature, Identity, MatrixScaling, TemperatureScaling
from altnorm.families.base import positive
from altnorm.method.drift import Drift, count_usage, fitted_usage, measure_drift
from altnorm.method.estimator import ProbabilityTransformer
from altnorm.method.kinds import kind_of
from altnorm.method.normalizer import AlternatingNormalizer

MOST_NUMBERS = 2**18
"""Most numbers of validation predictions that a fitted model keeps for `adapt`."""


def _decide(adjuster: Adaptable, rows: np.ndarray) -> np.ndarray:
    """Decide clean rows."""
    applied = adjuster.model_, adjuster.temperature_, kind_of(adjuster)
    return adjuster.decision_.codes(apply_model(*applied, rows))


def _are_codes(value: np.ndarray, estimator: Any) -> bool:
    return bool(value.max() < estimator.classes_.size)


class Adaptable(ProbabilityTransformer):
    """What an estimator that was fitted to labels can say and do about new predictions.

    A subclass calls `_remember_rows` at the end of `fit`.
    """

    scoring: Any
    model_: Any
    temperature_: float
    decision_: Decision
    family_: str | None
    shift_: Shift
    balance_model_: Any
    balance_rows_: np.ndarray | None
    balance_codes_: np.ndarray | None
    balance_shares_: np.ndarray | None

    _fitted = declare(
        balance_model_=nested(BiasCorrectedTemperature, MatrixScaling) | None,
        balance_rows_=array("f", ("kept", "m"), 0, 1, total=1, tolerance=1e-2) | None,
        balance_codes_=(array("i u", ("kept",), 0) & rule("class numbers", _are_codes)) | None,
        balance_shares_=array("f", ("m",), TINY, 1, total=1) | None,
    )

    def adapt(self, proba: Any, *, assume: str | None = None, insist: bool = False) -> Self:
        """Return a fitted copy; for the class balance of new predictions if you say so.

        Predictions alone cannot tell a change of the class balance from other changes. So by
        default the copy is equal to the original, and its `shift_` says which balance it would be
        and what would follow. With ``assume="label_shift"`` you say that only the balance has
        changed, and the copy is for it; not if the predictions contradict that.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            New predictions, columns as in `fit`, a few hundred rows at least.
        assume : {None, "label_shift"}, default=None
            What you know about the new data: nothing, or that each class looks as it did and only
            the shares of the classes have changed.
        insist : bool, default=False
            Whether to adapt even if the predictions contradict what you assume.

        Returns
        -------
        self : object
            The copy, with a :class:`~altnorm.balance.Shift` as `shift_`.

        Raises
        ------
        InputError
            If an energy test contradicts ``assume="label_shift"``, at the level 0.05.

        See Also
        --------
        altnorm.ask : Which rows to label so that they decide whether the copy is better.
        """
        self._check_adaptable()
        if assume is not None:
            check_choice(assume, "assume", ("label_shift",))
        rows = to_numpy(self._check_transform(on_host(proba)))
        shift = self._look(rows)
        adapted = self._retargeted(np.array(shift.before), np.array(shift.after))
        n_changed = int((_decide(self, rows) != _decide(adapted, rows)).sum())
        if assume is None:
            adapted = copy(self)
        elif shift.contradicted and not insist:
            raise _contradicted(shift)
        else:
            adapted.usage_counts_, *adapted.usage_doubt_ = count_usage(self, rows)
        adapted.shift_ = replace(
            shift,
            n_changed=n_changed,
            adapted=assume is not None,
            names=tuple(str(name) for name in self.classes_),
        )
        return adapted

    def drift(self, proba: Any) -> Drift:
        """Say whether incoming predictions still look like those at `fit`; needs no labels.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Incoming predictions, columns as in `fit`; a few hundred rows at least.

        Returns
        -------
        Drift
            `drifted`, the numbers behind it, `advice` on what follows, and one line as `str`.
        """
        rows = to_numpy(self._check_transform(on_host(proba)))
        drift = measure_drift(fitted_usage(self), count_usage(self, rows))
        if not drift.drifted or self.balance_rows_ is None:
            return drift
        return replace(drift, advice="stop" if self._look(rows).contradicted else "adapt")

    def _remember_rows(
        self,
        proba: Array,
        labels: np.ndarray,
        weight: np.ndarray,
        model: ProbabilityTransformer,
        temperature: float,
    ) -> None:
        """Keep what `adapt` needs: some labelled rows, the balance, and a calibration.

        That is the linear score model of least cross-fitted log loss, and the temperature that
        follows it, fitted to all rows. With several labels per row nothing is kept.
        """
        self.__dict__.pop("shift_", None)
        self.balance_model_ = self.balance_rows_ = None
        self.balance_codes_ = self.balance_shares_ = None
        if self.multilabel is not None:
            return
        self.balance_model_ = as_linear(model, temperature)
        total = np.zeros(proba.shape[1])
        for rows in block_slices(proba.shape[0], 48 * proba.shape[1], proba, cached=True):
            calibrated = self.balance_model_.transform_clean(proba[rows, :])
            total += weight[rows] @ to_numpy(calibrated)
        self.balance_shares_ = positive(total)
        kept = _representative(labels, weight, MOST_NUMBERS // proba.shape[1])
        self.balance_rows_ = to_numpy(take_rows(proba, kept)).astype(np.float32)
        self.balance_codes_ = labels[kept]

    def _look(self, rows: np.ndarray) -> Shift:
        """Compare clean new probabilities with the validation rows that are kept."""
        assert self.balance_rows_ is not None
        assert self.balance_codes_ is not None
        assert self.balance_shares_ is not None
        known, new = (
            Rows(p, to_numpy(self.balance_model_.transform_clean(p.astype(np.float64))))
            for p in (self.balance_rows_, rows)
        )
        return look_for_shift(known, self.balance_codes_, new, self.balance_shares_)

    def _retargeted(self, before: np.ndarray, after: np.ndarray) -> Self:
        """Return a copy whose classes are more or less probable by the ratio of two balances.

        Alternating normalization cannot carry it: it multiplies by the prior and divides by how the
        reference uses the classes, and both change by the same ratio. There the best linear score
        model takes its place.
        """
        changed = copy(self)
        alternates = isinstance(self.model_, AlternatingNormalizer)
        linear = self.balance_model_ if alternates else as_linear(self.model_, self.temperature_)
        changed.model_, changed.temperature_ = tilted(linear, np.log(after / before)), 1.0
        changed.family_ = "matrix" if hasattr(changed.model_, "matrix_") else "bias"
        # There decisions divide by the class shares, which the new balance replaces.
        if self.scoring == "balanced_accuracy":
            changed.decision_ = _reweighted(self.decision_, before / after)
        return changed

    def _check_adaptable(self) -> None:
        check_is_fitted(self)
        if self.balance_rows_ is None:
            raise InputError(
                "`adapt` is for problems with one class per row",
                f"`multilabel` is {self.multilabel!r}",
                "Fit again on current validation data.",
                value=self.multilabel,
                code="parameter",
            )
        if hasattr(self, "shift_") and self.shift_.adapted:
            raise InputError(
                "`adapt` starts from what was fitted to labels",
                "this copy has been adapted already",
                "Call `adapt` of the original.",
                code="adapted_twice",
            )


def tilted(model: Any, log_ratio: np.ndarray) -> Any:
    """Return a copy of a score model whose classes are more probable by the exponential of this."""
    changed = copy(model)
    changed.bias_ = model.bias_ + log_ratio
    changed.bias_ -= changed.bias_.mean()
    return changed


def as_linear(model: Any, temperature: float) -> Any:
    """Return a model with biases that does what a model followed by a temperature does."""
    if not isinstance(model, (Identity, TemperatureScaling)):
        return model
    twin = BiasCorrectedTemperature(strength=0.0, input=model.input)
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    twin.__dict__.update({"temperature_": 1.0, **fitted, "strength_": 0.0})
    twin.temperature_ *= temperature
    twin.bias_ = np.zeros(model.classes_.size)
    return twin


def _reweighted(decision: Decision, ratio: np.ndarray) -> Decision:
    """Return the rule for probabilities of another balance that decides as before."""
    if decision.kind != "weights":
        return decision
    worth = None if decision.worth is None else decision.worth * ratio[:, None]
    return replace(decision, values=decision.values * ratio, worth=worth)


def _representative(codes: np.ndarray, weight: np.ndarray, most: int) -> np.ndarray:
    """Numbers of at most `most` rows, evenly over the classes; heavy rows may come twice."""
    used = np.flatnonzero(weight > 0)
    used = used[np.argsort(codes[used], kind="stable")]
    labels, row_weight = codes[used], weight[used]
    kept = labels[spread_rows(labels, np.ones(labels.max() + 1), max(most, 1))]
    parts = []
    for code, k in zip(*np.unique(kept, return_counts=True), strict=True):
        own = np.flatnonzero(labels == code)
        along = row_weight[own].cumsum()
        steps = (np.arange(k) + 0.5) * (along[-1] / k)
        parts.append(used[own[np.searchsorted(along, steps)]])
    return np.concatenate(parts)


def _contradicted(shift: Shift) -> InputError:
    return InputError(
        "assume='label_shift' needs new predictions that another class balance explains",
        f"something else has changed: the energy distance that is left is {shift.energy:.3g} "
        f"({p_words(shift.p_value)}, {shift.n_rows:,} rows)",
        "Label some rows on which both models differ, or pass insist=True to adapt anyway.",
        value=shift.p_value,
        code="contradicted",
    )
