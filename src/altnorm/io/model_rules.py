"""What a model file may say: one rule for each setting and for each fitted attribute.

A file may come from anywhere, so nothing in it is believed. To let models of a new kind be saved,
give the kind an entry in `FITTED`; for a setting that `transform` reads, add one to `SETTINGS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.seen_rows import N_KEPT
from altnorm._base.validation import check_amplification, sum_tolerance
from altnorm.balance.shift import REASONS, Shift
from altnorm.evidence.verdict import Verdict
from altnorm.method.kinds import kind_of
from altnorm.method.reference import REFERENCES


class Rule(NamedTuple):
    """What a value must be, in words and as a function of the value and its estimator."""

    must: str
    holds: Callable[[Any, Any], Any]
    optional: bool = False


def check_model(estimator: Any, remedy: str = "Save the model again.") -> None:
    """Raise unless settings and fitted attributes are such as `fit` could have left."""
    fault = _first_fault(estimator)
    if fault:
        raise InputError(fault, remedy=remedy, code="model_file")


def _first_fault(estimator: Any) -> str:
    kind = type(estimator).__name__
    settings = estimator.get_params(deep=False)
    for name, value in settings.items():
        if name in SETTINGS and not SETTINGS[name].holds(value, estimator):
            return _message(kind, name, SETTINGS[name], value)
    state = {name: value for name, value in vars(estimator).items() if name not in settings}
    rules = COMMON | FITTED.get(kind, {})
    unknown = sorted(state.keys() - rules.keys())
    if unknown:
        return f"{kind} has no fitted attribute `{unknown[0]}`"
    for name, rule in rules.items():  # in their order: later rules rely on earlier ones
        if name not in state and not rule.optional:
            return f"{kind} must have `{name}`; it is missing"
        if name in state and not rule.holds(state[name], estimator):
            return _message(kind, name, rule, state[name])
    return ""


def _message(kind: str, name: str, rule: Rule, value: Any) -> str:
    shown = repr(value)
    if isinstance(value, np.ndarray):
        shown = f"{value.dtype} of shape {value.shape}, {value.reshape(-1)[:4]} .."
    return f"`{name}` of {kind} must be {rule.must}; it is {' '.join(shown[:80].split())}"


# Rules that are used more than once.


def number(low: float, high: float = math.inf, *, above: bool = False) -> Rule:
    """A finite number from `low` (or above it) to `high`."""
    must = f"a finite number {'above' if above else 'from'} {low:g}"
    must += f" to {high:g}" if math.isfinite(high) else " on"

    def holds(value: Any, _: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
            return False
        least = low < float(value) if above else low <= float(value)
        return least and float(value) <= high

    return Rule(must, holds)


def integer(low: int, high: int) -> Rule:
    """An integer from `low` to `high`."""

    def holds(value: Any, _: Any) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and low <= value <= high

    return Rule(f"an integer from {low} to {high}", holds)


def one_of(choices: Collection[Any]) -> Rule:
    """One of some words, or None."""
    return Rule(f"one of {tuple(choices)}", lambda value, _: value in tuple(choices))


def vector(low: float, high: float, *, total: float | None = None) -> Rule:
    """One number per class, each from `low` to `high`, adding up to `total`."""
    must = f"one number from {low:g} to {high:g} per class"
    must += "" if total is None else f", adding up to {total:g}"

    def holds(value: Any, estimator: Any) -> bool:
        size = estimator.classes_.size
        sums = total is None or abs(value.sum() - total) <= sum_tolerance("float64")
        return _is_array(value, "f", (size,)) and _within(value, low, high) and sums

    return Rule(must, holds)


def _is_array(value: Any, kinds: str, shape: tuple[int, ...] | None = None) -> bool:
    sound = isinstance(value, np.ndarray) and value.dtype.kind in kinds
    return sound and (shape is None or value.shape == shape)


def _within(value: np.ndarray, low: float, high: float) -> bool:
    return bool(((value >= low) & (value <= high)).all())  # NaN is not within


# Rules with a function of their own.


def _is_depth(value: Any, estimator: Any) -> bool:
    if not integer(1, 10_000).holds(value, estimator):
        return False
    check_amplification(estimator.alpha, value, np.finfo(np.float64).max)
    return True


def _are_classes(value: Any, estimator: Any) -> bool:
    least = kind_of(estimator).min_columns
    distinct = _is_array(value, "biufUO") and len({str(v) for v in value.tolist()})
    return _is_array(value, "biufUO") and value.ndim == 1 and distinct == value.size >= least


def _are_names(value: Any, estimator: Any) -> bool:
    sound = _is_array(value, "UO", (estimator.classes_.size,))
    return sound and all(isinstance(name, str) for name in value.tolist())


def _is_prior(value: Any, estimator: Any) -> bool:
    kind = kind_of(estimator)
    size = len(kind.prior_names(estimator.classes_.tolist()))
    if not (_is_array(value, "f", (size,)) and _within(value, 0, 1)):
        return False
    return not kind.prior_sums_to_one or abs(value.sum() - 1) <= sum_tolerance("float64")


def _is_reference(value: Any, estimator: Any) -> bool:
    if not (_is_array(value, "f") and _within(value, 0, 1)):
        return False
    if not kind_of(estimator).sums_to_one:
        return value.ndim == 1 and hasattr(estimator, "offsets_")
    return _are_rows(value, estimator)


def _are_rows(value: Any, estimator: Any) -> bool:
    """Whether these are rows of probabilities of the classes, one at least."""
    if not _is_array(value, "f") or value.ndim != 2 or not len(value):
        return False
    if value.shape[1] != estimator.classes_.size or not _within(value, 0, 1):
        return False
    return bool((abs(value.sum(axis=1) - 1) <= sum_tolerance("float16")).all())


def _is_weight(value: Any, estimator: Any) -> bool:
    if value is None:
        return True
    sound = _is_array(value, "fiu", estimator.reference_.shape[:1])
    return sound and _within(value, 0, 1e300) and math.isfinite(value.sum())


def _are_offsets(value: Any, estimator: Any) -> bool:
    kind = kind_of(estimator)
    if kind.sums_to_one:
        return False
    size = len(kind.parts(estimator.classes_.size)) + 1
    ends = _is_array(value, "i", (size,)) and (value[0], value[-1])
    return ends == (0, estimator.reference_.size) and bool((np.diff(value) >= 0).all())


def _are_log_sums(value: Any, estimator: Any) -> bool:
    if value is None:
        return True
    sound = _is_array(value, "f", (estimator.classes_.size,))
    return sound and _within(value, -math.inf, math.log(np.finfo(np.float64).max))


def _are_three_numbers(value: Any, _: Any) -> bool:
    numbers = isinstance(value, list) and all(isinstance(v, Real) for v in value)
    return numbers and len(value) == 3


def _are_counts(value: Any, estimator: Any) -> bool:
    return _is_array(value, "iu", (estimator.classes_.size,)) and bool((value >= 0).all())


def _is_doubt(value: Any, _: Any) -> bool:
    whole = isinstance(value, list) and all(type(v) is int for v in value)
    return whole and len(value) == 2 and 0 <= value[0] <= value[1]


_FIELDS: dict[str, Any] = {"float": Real, "int": Integral, "bool": bool, "str": str}


def _is_verdict(value: Any, _: Any) -> bool:
    return isinstance(value, Verdict) and all(
        isinstance(getattr(value, field.name), _FIELDS.get(str(field.type), object))
        for field in fields(Verdict)
    )


def _are_verdicts(value: Any, estimator: Any) -> bool:
    return isinstance(value, dict) and all(_is_verdict(v, estimator) for v in value.values())


def _is_table(value: Any, _: Any) -> bool:
    sound = isinstance(value, dict) and all(_is_array(v, "biufUO") for v in value.values())
    return sound and len({v.shape for v in value.values()}) <= 1


def _is_inner(*kinds: str) -> Callable[[Any, Any], bool]:
    """Whether a value is a model of one of these kinds that an outer one can hold."""

    def holds(value: Any, estimator: Any) -> bool:
        if type(value).__name__ not in kinds or value.input != "proba":
            return False
        same = value.classes_.size == estimator.classes_.size
        return same and value.multilabel == estimator.multilabel

    return holds


def _calibrate_alone(value: Any, estimator: Any) -> bool:
    if value is None:
        return True
    return _are_temperatures(value, estimator) and estimator.calibrator_ is None


def _is_matrix(value: Any, estimator: Any) -> bool:
    m = estimator.classes_.size
    return _is_array(value, "f", (m, m)) and _within(value, -1e9, 1e9)


def _are_temperatures(value: Any, _: Any) -> bool:
    return _is_array(value, "f", (2,)) and _within(value, 1e-9, 1e9)


def _is_sketch(value: Any, _: Any) -> bool:
    sound = isinstance(value, np.ndarray) and value.dtype == np.uint64 and value.ndim == 1
    return sound and value.size <= N_KEPT and bool((value[1:] > value[:-1]).all())


def _is_profile(value: Any, estimator: Any) -> bool:
    """Whether these are the five arrays of a label_shift.Profile."""
    m = estimator.classes_.size
    if not isinstance(value, tuple) or len(value) != 5 or not _is_array(value[0], "f"):
        return False
    table, edges, balance, products, rows = value
    n_bins = table.shape[1] if table.ndim == 3 else 0
    shapes = n_bins > 0 and table.shape == (m, n_bins, m) and _within(table, 0, 1e300)
    sound = shapes and math.isfinite(table.sum()) and table.sum() > 0
    sound = sound and _is_array(edges, "f", (m, n_bins - 1)) and _within(edges, 0, 1)
    sound = sound and _is_array(products, "f", (m, m)) and _within(products, 0, 1 + 1e-9)
    sound = sound and _are_rows(rows, estimator)
    return sound and bool(_POSITIVE_PRIOR.holds(balance, estimator))


def _is_shift(value: Any, estimator: Any) -> bool:
    if not isinstance(value, Shift) or value.reason not in REASONS:
        return False
    numbers = (
        value.p_value,
        value.distance,
        value.strength,
        value.fit_p_value,
        value.unexplained,
        value.uneven,
    )
    if not all(number(0, 1).holds(v, estimator) for v in numbers):
        return False
    if not number(-1e300, 1e300).holds(value.over_leaning, estimator):
        return False
    shares = [v for k, v in vars(value).items() if k.startswith(("before", "after"))]
    return type(value.n_rows) is int and all(
        isinstance(share, tuple)
        and len(share) == estimator.classes_.size
        and all(number(0, 1).holds(v, estimator) for v in share)
        for share in shares
    )


def _or_none(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, estimator: value is None or holds(value, estimator)


SETTINGS: dict[str, Rule] = {
    "input": one_of(("proba", "logits")),
    "multilabel": one_of((None, "pairs", "labelwise")),
    "alpha": number(0, 1e6, above=True),
    "depth": Rule("an integer from 1 to 10000, so that alpha ** depth is no overflow", _is_depth),
    "threshold": number(0),
    "k_max": integer(2, 2**31),
    "reference": one_of(REFERENCES),
    "smoothing": number(0, 1e300),
    "tol": number(0),
    "max_iter": integer(1, 10**6),
}
"""Settings that `transform` reads, whatever the kind; others are only remembered."""

COMMON: dict[str, Rule] = {
    "classes_": Rule("different class labels, at least 2", _are_classes),
    "n_features_in_": Rule(
        "the number of classes",
        lambda value, est: type(value) is int and value == est.classes_.size,
    ),
    "feature_names_in_": Rule("one name per class", _are_names, optional=True),
    "usage_counts_": Rule("one count per class", _are_counts),
    "usage_doubt_": Rule("two counts, the first not larger", _is_doubt),
}

_POSITIVE_PRIOR = vector(np.finfo(np.float64).tiny, 1, total=1)
_TEMPERATURE = {"temperature_": number(1e-9, 1e9)}
_BIAS = {**_TEMPERATURE, "bias_": vector(-1e9, 1e9)}
_PRIOR = {"prior_": Rule("shares that add up to 1 (labelwise: from 0 to 1)", _is_prior)}
_TABLE = Rule("columns of one length", _is_table)
_TUNED = {
    "best_normalizer_": Rule(
        "a model for the same classes that takes probabilities",
        _is_inner("AlternatingNormalizer", "ShrunkBias", "MatrixScaling", "Identity"),
    ),
    "best_params_": Rule("a dictionary", lambda value, _: isinstance(value, dict)),
    "verdict_": Rule("a verdict", _is_verdict),
    "families_": Rule("a dictionary of verdicts", _are_verdicts),
    "family_": one_of((None, "alternating", "bias", "matrix")),
    "cv_results_": _TABLE,
    "calibration_": Rule("None or a verdict", _or_none(_is_verdict)),
    "calibrator_": Rule(
        "None, or a ShrunkBias or MatrixScaling for the same classes that takes probabilities",
        _or_none(_is_inner("ShrunkBias", "MatrixScaling")),
    ),
    "temperatures_": Rule(
        "None, or two temperatures where there is no `calibrator_`", _calibrate_alone
    ),
    "seen_rows_": Rule(f"at most {N_KEPT} increasing 64-bit numbers", _is_sketch),
    "shift_calibrator_": Rule(
        "None or a ShrunkBias for the same classes that takes probabilities",
        _or_none(_is_inner("ShrunkBias")),
    ),
    "shift_matrix_": Rule(
        "None or a MatrixScaling for the same classes that takes probabilities",
        _or_none(_is_inner("MatrixScaling")),
    ),
    "shift_profile_": Rule("None or the sums that `adapt` needs", _or_none(_is_profile)),
    "shift_": Rule("a record of a shift", _is_shift, optional=True),
}

FITTED: dict[str, dict[str, Rule]] = {
    "AlternatingNormalizer": {
        **_PRIOR,
        "reference_": Rule("rows of probabilities, one column per class", _is_reference),
        "reference_weight_": Rule("None or one weight per reference row", _is_weight),
        "offsets_": Rule("where the labels' references start", _are_offsets, optional=True),
        "_log_s": Rule("None or one logarithm per class, none infinite or NaN", _are_log_sums),
        "_log_s_of": Rule("three numbers", _are_three_numbers),
    },
    "AlternatingNormalizerCV": _TUNED,
    "Adjuster": _TUNED,
    "ShrunkBias": _BIAS,
    "MatrixScaling": {
        "matrix_": Rule("a number for each pair of classes", _is_matrix),
        "bias_": vector(-1e9, 1e9),
        "ridge_": number(0, 1e300, above=True),
        "floor_": number(-1e3, 0),
    },
    "BatchCalibration": {"contextual_prior_": _POSITIVE_PRIOR},
    "BiasCorrectedTemperature": {
        **_BIAS,
        "ridge_": number(0),
        "cv_results_": _TABLE._replace(optional=True),
    },
    "Identity": {},
    "LabelThresholds": {"global_threshold_": number(0, 1), "thresholds_": vector(0, 1)},
    "LabelwiseScaling": {
        "slope_": vector(-1e9, 1e9),
        "bias_": vector(-1e9, 1e9),
        "limit_": number(0, 1e3),
        "strength_": number(0, 1e300, above=True),
    },
    "TemperatureScaling": _TEMPERATURE,
}
"""Fitted attributes of each kind, beside those in `COMMON`."""
