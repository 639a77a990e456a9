"""Raise on bad input, return clean arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from altnorm._base import arrays, errors
from altnorm._base.arrays import Array, array_namespace, as_array, on_host, quiet, to_numpy
from altnorm._base.errors import InputError, InputTypeError, shape_error, shown

_AMPLIFICATION = 1e32  # what the kernels stand, single precision too; far beyond it logs overflow
_LARGEST_WEIGHT = 1e150  # the square of a sum of billions of them is still a number
_WEIGHT_SCALE = 1e-9, 1e15  # of the largest: beyond, penalty or rounding dominates a fit
_SUM_TOLERANCE = 1e-4  # how far a row of probabilities may be from 1
_HALF_PRECISION = 1e-2  # how far a softmax in 16 bits may be from 1
_TWO_CLASSES = (
    "{} one probability p per row of two classes, pass np.column_stack([1 - p, p]), and for one "
    "logit z np.column_stack([0 * z, z])."
)
_SOFTMAX = "turn them into probabilities first (softmax)"


def sum_tolerance(dtype_name: str) -> float:
    """How far the sum of a row of probabilities may be from 1."""
    return 1e-2 if "16" in dtype_name else _SUM_TOLERANCE


def check_proba(proba: Any, name: str = "proba", *, logits: str = _SOFTMAX) -> Array:
    """Return `proba` as (n, m) distributions; `logits` says what to do about them."""
    if _are_sound(proba):  # which is nearly always so, and all else takes longer than a row
        return proba
    array = check_two_columns(check_matrix(proba, name), name)
    xp = array_namespace(array)
    # Half precision was widened above.
    dtype = str(getattr(proba, "dtype", array.dtype))
    with quiet(xp):
        if not arrays.are_distributions(array, sum_tolerance(dtype)):
            array = _repair_rows(array, sum_tolerance(dtype), name, logits)
    if "16" in dtype:  # the type itself says how the rows were rounded
        array = array / xp.sum(array, axis=1, keepdims=True)
    return array


def _are_sound(proba: object) -> TypeGuard[np.ndarray]:
    """Whether this is an array of NumPy to which nothing need be done."""
    if type(proba) is not np.ndarray or proba.ndim != 2 or proba.shape[1] < 2:
        return False
    if proba.dtype.char not in "fd":
        return False
    with quiet(np):
        return arrays.are_distributions(proba, _SUM_TOLERANCE)


def check_two_columns(array: Array, name: str = "proba") -> Array:
    if array.shape[1] < 2:
        rule = f"`{name}` must have one column per class and at least 2 classes"
        shape = tuple(array.shape)
        offender = f"it has shape {shape}, {array.shape[1]} feature(s)"
        raise InputError(rule, offender, _TWO_CLASSES.format("For"), value=shape, code="shape")
    return array


def _repair_rows(array: Array, tolerance: float, name: str, logits: str) -> Array:
    """Divide rows by their sums where rounding explains these; raise where it does not."""
    xp = array_namespace(array)
    check_finite(array, name)
    rule, remedy = f"`{name}` must not be negative", f"If these are logits, {logits}."
    negative = array < -4 * float(xp.finfo(array.dtype).eps)  # what a difference may come out as
    refuse(negative, array, rule, "entries are", remedy, code="negative")
    array = xp.where(array < 0, xp.zeros_like(array), array)
    sums = xp.sum(array, axis=1)
    off = xp.abs(sums - 1)
    wrong = off > tolerance
    rounding = _find_rounding(to_numpy(array)) if bool(xp.any(wrong)) else None
    how, explained = rounding or ("", 0.0)
    unexplained = wrong & (off > explained * (1 + 1e-6))
    rule = f"Each row of `{name}` must sum to 1"
    remedy = f"If these are logits, {logits}; "
    remedy += "if they are rounded or percentages, divide each row by its sum."
    refuse(unexplained, sums, rule, "rows do not", remedy, code="row_sum", note="sum {:.6g}")
    if rounding is None:
        return array
    odd = to_numpy(sums)[to_numpy(wrong)]
    sums_seen = " to ".join(dict.fromkeys(f"{end:.4f}" for end in (odd.min(), odd.max())))
    message = (
        f"{odd.size} of {array.shape[0]} rows of `{name}` have sums of {sums_seen}, which rounding "
        f"to {how} explains; they were divided by them."
    )
    errors.warn(errors.InputWarning(message, "rounded_rows"))
    return array / xp.where(wrong, sums, xp.ones_like(sums))[:, None]


def _find_rounding(values: np.ndarray) -> tuple[str, float] | None:
    """How finite probabilities were rounded, and how far from 1 that lets a sum be; None if not.

    With `d` decimals each of `m` numbers is off by at most half a unit of the last, and their sum
    by ``m / 2 * 10**-d``.
    """
    if values.max() > 2:  # no probability, however it was rounded
        return None
    single, half = values.astype(np.float32), values.astype(np.float16)
    if np.array_equal(half, values):
        return "half precision", _HALF_PRECISION
    if np.array_equal(single, values) and not (single.view(np.uint32) & 0xFFFF).any():
        return "bfloat16", _HALF_PRECISION
    for decimals in range(2, 6 if values.dtype == np.float32 else 9):
        scaled = values.astype(np.float64) * 10.0**decimals
        if (np.abs(scaled - np.rint(scaled)) <= 4 * np.finfo(values.dtype).eps * scaled).all():
            furthest = 0.02 if decimals == 2 else 0.05  # so few decimals explain anything
            bound = values.shape[1] / 2 * 10.0**-decimals
            return f"{decimals} decimals", min(bound, furthest)
    return None


def check_matrix(values: Any, name: str) -> Array:
    check_unmasked(values, name)
    array = values if arrays.is_array_api_obj(values) else np.asarray(values)
    if array.ndim != 2:
        raise shape_error(
            f"`{name}` must be two-dimensional, one row per example and one column per class",
            array,
            _TWO_CLASSES.format("Reshape your data: for")[:-1]
            + f"; a single row is `{name}[None, :]`.",
        )
    xp = array_namespace(array)
    # Half precision is a storage format, not one to compute in; array-api-strict knows none.
    is_half = "float16" in str(array.dtype)
    if not is_half and not xp.isdtype(array.dtype, "real floating"):
        rule, dtype = f"`{name}` must hold floating-point numbers", array.dtype
        remedy = f"Convert it, for example with `{name}.astype(float)`, if its values really are "
        remedy += "probabilities."
        raise InputTypeError(rule, f"its dtype is {dtype}", remedy, value=dtype, code="dtype")
    return xp.astype(array, xp.float32) if is_half else array


def check_unmasked(values: object, name: str) -> None:
    """Raise if a masked array has masked entries: what lies below a mask is not to be read."""
    # Only NumPy's own masks: data frames have others, which say where a value is missing.
    if isinstance(values, np.ma.MaskedArray):
        masked = np.atleast_1d(np.ma.getmaskarray(values))
        rule = f"`{name}` must have no masked entries"
        remedy = "Drop those rows, or fill them with `numpy.ma.filled`."
        refuse(masked, masked, rule, "are masked", remedy, code="masked", note="")


def check_device_array(values: Array) -> Array:
    """Return an array of another library as scikit-learn would one of NumPy."""
    xp = array_namespace(values)
    if not xp.isdtype(values.dtype, ("bool", "complex floating", "real floating")):
        values = xp.astype(values, arrays.widest_float(values))
    array = check_matrix(values.detach() if hasattr(values, "detach") else values, "proba")
    if not array.shape[0]:
        rule, offender = "`proba` must have at least one row", "Found array with 0 sample(s)"
        shape = tuple(array.shape)
        raise InputError(rule, offender, "Pass predictions.", value=shape, code="shape")
    if not bool(xp.all(xp.isfinite(array))):
        check_finite(array, "proba")
    return array


def check_finite(array: Array, name: str) -> None:
    wrong = ~array_namespace(array).isfinite(array)
    rule, remedy = f"`{name}` must be finite", "Drop or repair rows with NaN or infinity."
    refuse(wrong, array, rule, "entries are not", remedy, code="not_finite", note="{}")


def check_same_classes(proba: Array, reference: Array) -> None:
    """Raise unless both arrays come from one library and have the same classes."""
    try:
        array_namespace(proba, reference)
    except TypeError:
        rule = "`proba` and `reference` must come from one array library"
        kinds = f"they are {type(proba).__name__} and {type(reference).__name__}"
        raise InputTypeError(rule, kinds, "Convert one of them.", code="array_library") from None
    n, m = reference.shape
    if proba.shape[1] != m:
        rule = "`proba` and `reference` must have the same classes"
        offender = f"`proba` has {proba.shape[1]} columns and `reference` has {m}"
        remedy = "Pass the same classes in the same order."
        raise InputError(rule, offender, remedy, value=m, code="classes")
    if n == 0:
        rule = "`reference` must have at least one row"
        remedy = "Pass confident predictions, or raise the ambiguity threshold."
        raise InputError(rule, "it has none", remedy, value=0, code="no_reference")


def check_prior(prior: ArrayLike | None, like: Array) -> Array:
    """Return class weights summing to 1, as `like`; None is uniform."""
    n_classes = like.shape[1]
    if prior is None:
        return as_array(np.full(n_classes, 1.0 / n_classes), like)
    remedy = "Pass class frequencies, or None for a uniform prior."
    host = _check_vector(prior, n_classes, "prior", "class", remedy)
    return as_array(host / host.sum(), like)


def check_weight(
    weight: ArrayLike | None,
    rows: Array,
    name: str = "reference_weight",
    unit: str = "reference row",
) -> Array | None:
    """Return one non-negative weight per row, or None where every row counts once."""
    if weight is None:
        return None
    host = _check_vector(weight, rows.shape[0], name, unit, "Pass None to count every row once.")
    # What would become 0 or infinite in the precision that it is used in.
    limits = array_namespace(rows).finfo(rows.dtype)
    low, high = float(limits.smallest_normal), math.sqrt(float(limits.max))
    wrong = (host > high) | ((host > 0) & (host < low))
    rule = f"`{name}` must be 0 or from {low:.1e} to {high:.1e} in this precision"
    remedy = "Leave out rows that hardly count, or pass float64."
    refuse(wrong, host, rule, "entries are not", remedy, code="weight_range")
    return as_array(host, rows)


def is_number(value: object, kind: type = Real) -> TypeGuard[float]:
    """Whether a value is a number, or of another kind of numbers; booleans are rejected."""
    return isinstance(value, kind) and not isinstance(value, bool)


def check_unit(value: object, name: str, *, example: float) -> float:
    """Return a number from 0 to 1, both included, such as an ambiguity."""
    if not is_number(value) or not 0 <= value <= 1:
        raise _parameter_error(name, "a number from 0 to 1", value, example)
    return float(value)


def check_positive(value: object, name: str, *, zero: bool = False) -> float:
    """Return a finite number that is positive (or zero, if allowed)."""
    rule = "a finite number, 0 or greater" if zero else "a finite number greater than 0"
    if not is_number(value) or not (0 <= value < math.inf) or (value == 0 and not zero):
        raise _parameter_error(name, rule, value, 1.0)
    return float(value)


def check_level(value: object, name: str, *, example: float = 0.05) -> float:
    """Return a number between 0 and 1, both excluded, such as a significance level."""
    if not is_number(value) or not 0 < value < 1:
        raise _parameter_error(name, "a number between 0 and 1", value, example)
    return float(value)


def check_amplification(alpha: float, depth: int, largest: float) -> None:
    """Raise if ``alpha ** depth``, by which logarithms grow, could leave the range of numbers."""
    limit = min(_AMPLIFICATION, largest**0.25)
    if depth * math.log(alpha) > math.log(limit) or alpha < 1 / limit:
        raise InputError(
            f"`alpha` ** `depth` must be at most {limit:.0e}, and `alpha` at least {1 / limit:.0e}",
            f"alpha is {alpha:g} and depth is {depth}",
            "Pass a smaller `depth`, or an `alpha` closer to 1.",
            value=(alpha, depth),
            code="amplification",
        )


def check_integer(value: object, name: str, *, low: int, high: int | None = None) -> int:
    """Return an integer between `low` and `high`."""
    rule = f"an integer, {low} or greater" if high is None else f"an integer from {low} to {high}"
    if not is_number(value, Integral) or value < low or (high is not None and value > high):
        raise _parameter_error(name, rule, value, low)
    return int(value)


def check_choice(value: object, name: str, choices: Sequence[object]) -> None:
    if not (value is None or isinstance(value, str)) or value not in choices:
        rule = " or ".join(repr(choice) for choice in choices)
        example = next(choice for choice in choices if choice is not None)
        raise _parameter_error(name, rule, value, example)


def _parameter_error(name: str, rule: str, value: object, example: object) -> InputError:
    return InputError(
        f"`{name}` must be {rule}",
        f"it is {shown(repr(value))}",
        value=value,
        code="parameter",
        parameter=name,
        example=example,
    )


def check_scale(weight: np.ndarray, name: str) -> None:
    low, high = _WEIGHT_SCALE
    largest = float(weight.max(initial=0))
    if largest and not low <= largest <= high:
        rule = f"The largest `{name}` must be from {low:.0e} to {high:.0e}"
        offender, remedy = f"it is {largest:.6g}", "Divide all of them by their mean."
        raise InputError(rule, offender, remedy, value=largest, code="weight_range")


def _check_vector(
    values: ArrayLike, length: int, name: str, unit: str, zero_remedy: str
) -> np.ndarray:
    """Return non-negative numbers of which some are positive."""
    check_unmasked(values, name)
    host = np.asarray(on_host(values))
    if host.shape != (length,):
        rule = f"`{name}` must have one entry per {unit}, shape ({length},)"
        raise shape_error(rule, host, f"Pass {length} numbers.")
    if host.dtype.kind == "O":  # as a column of a data frame may be
        with suppress(TypeError, ValueError):
            host = host.astype(np.float64)
    if host.dtype.kind not in "bfiu":
        rule, offender = f"`{name}` must hold numbers", f"its dtype is {host.dtype}"
        remedy = f"Pass {length} numbers."
        raise InputTypeError(rule, offender, remedy, value=host.dtype, code="dtype")
    host = host.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(host) & (host >= 0)))
    if bad.size:
        rule, value = f"`{name}` must be finite and not negative", float(host[bad[0]])
        offender = f"{bad.size} of {length} entries are not, the first is entry "
        offender += f"{bad[0]} ({value:.6g})"
        raise InputError(rule, offender, "Pass frequencies or counts.", value=value, code="weight")
    rule = f"`{name}` must be at most {_LARGEST_WEIGHT:.1e}"
    remedy = "Divide all of them by the largest."
    refuse(host > _LARGEST_WEIGHT, host, rule, "entries are larger", remedy, code="weight_range")
    if not host.any():
        rule = f"`{name}` must give some {unit.split()[-1]} a positive weight"
        offender = f"all {host.size} entries are zero"
        raise InputError(rule, offender, zero_remedy, value=0.0, code="no_weight")
    return host


def refuse(
    wrong: Array,
    values: Array,
    rule: str,
    offender: str,
    remedy: str,
    *,
    code: str,
    note: str = "{:.6g}",
) -> None:
    """Raise an error that counts the offenders in `wrong` and names the first; none, no error."""
    mask = to_numpy(wrong)
    offenders = np.flatnonzero(mask)
    if not offenders.size:
        return
    row, *column = (int(i) for i in np.unravel_index(offenders[0], mask.shape))
    value = to_numpy(values)[(row, *column)].item()
    raise InputError(
        rule,
        f"{offenders.size} of {mask.size} {offender}",
        remedy,
        value=value,
        code=code,
        place=errors.Place(row, column[0] if column else None, note.format(value)),
    )
