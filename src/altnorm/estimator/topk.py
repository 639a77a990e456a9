"""Truncated scores: a service names the few most probable classes and leaves out the rest."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from altnorm._base.arrays import GivenArray, move, on_host
from altnorm._base.errors import InputError, InputTypeError, InputWarning, warn
from altnorm._base.validation import check_choice, check_integer, check_unmasked, refuse

_TINY_MASS = 0.1  # below it most of a row is what was made up for the missing classes
_ABOVE_ONE = 1e-2  # how far rounding may take the known mass above 1


@overload
def from_topk(
    indices: Any, values: GivenArray, n_classes: int, *, input: str = ...
) -> GivenArray: ...


@overload
def from_topk(indices: Any, values: Any, n_classes: int, *, input: str = ...) -> np.ndarray: ...


def from_topk(indices: Any, values: Any, n_classes: int, *, input: str = "log_proba") -> Any:
    r"""Fill rows of which only the most probable classes are known.

    With known probabilities :math:`p_1, .., p_k` of a row, each of the :math:`c` missing classes
    gets an even share of the rest, but no more than the smallest that is known:

    .. math:: p = \min\!\left(\frac{1 - \sum_i p_i}{c}, \min_i p_i\right),

    and the row is divided by its sum.

    Parameters
    ----------
    indices : array-like of int, shape (n_samples, k)
        Which class each value belongs to; -1 where a row has fewer than k.
    values : array-like of shape (n_samples, k)
        Log-probabilities or probabilities, as `input` says.
    n_classes : int
        Number of classes.
    input : {"log_proba", "proba"}, default="log_proba"
        What `values` holds.

    Returns
    -------
    array of shape (n_samples, n_classes)
        Probabilities, in the library and on the device of `values`.

    Warns
    -----
    UserWarning
        Where the known probabilities of a row add up to less than 0.1.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import from_topk
    >>> from_topk([[2, 0]], np.log([[0.7, 0.2]]), n_classes=4).round(2)
    array([[0.2 , 0.05, 0.7 , 0.05]])
    """
    check_choice(input, "input", ("log_proba", "proba"))
    n_classes = check_integer(n_classes, "n_classes", low=2)
    columns, listed = _read(indices, values, n_classes, input)
    absent = columns < 0
    listed[absent] = 0
    mass = listed.sum(axis=1)
    _check_mass(mass, absent)
    n_missing = (n_classes - (~absent).sum(axis=1)).astype(listed.dtype)
    smallest = np.where(absent, np.inf, listed).min(axis=1)
    share = np.minimum(np.maximum(1 - mass, 0) / np.maximum(n_missing, 1), smallest)
    proba = np.repeat(share[:, None], n_classes, axis=1)
    rows = np.broadcast_to(np.arange(len(columns))[:, None], columns.shape)
    proba[rows[~absent], columns[~absent]] = listed[~absent]
    return move(proba / proba.sum(axis=1, keepdims=True), values)


def _read(
    indices: ArrayLike, values: ArrayLike, n_classes: int, input: str
) -> tuple[np.ndarray, np.ndarray]:
    """Class indices and probabilities, checked entry by entry."""
    check_unmasked(indices, "indices")
    check_unmasked(values, "values")
    columns, listed = (np.asarray(on_host(v)) for v in (indices, values))
    _check_form(columns, listed)
    columns = columns.astype(np.int64)
    outside = (columns < -1) | (columns >= n_classes)
    _refuse(outside, columns, f"from -1 to {n_classes - 1}", "indices")
    # -1 stands for no class and may be there more than once.
    ordered = np.sort(columns, axis=1)
    twice = np.zeros(columns.shape, bool)
    twice[:, 1:] = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    _refuse(twice, ordered, "different classes in each row", "indices")
    # In half precision, sums of probabilities would be off by more than is allowed.
    listed = listed.astype(np.result_type(listed.dtype, np.float32))
    used = columns >= 0
    if input == "log_proba":
        _refuse(used & ~(listed <= _ABOVE_ONE), listed, "logarithms of probabilities", "values")
        listed = np.exp(np.where(used, listed, 0))
    else:
        within = (listed >= 0) & (listed <= 1 + _ABOVE_ONE)
        _refuse(used & ~within, listed, "from 0 to 1", "values")
    return columns, listed.copy()


def _check_form(columns: np.ndarray, listed: np.ndarray) -> None:
    shapes, dtypes = (columns.shape, listed.shape), (columns.dtype, listed.dtype)
    if columns.ndim != 2 or columns.shape != listed.shape:
        rule = "`indices` and `values` must be two matrices of one shape"
        offender = f"their shapes are {shapes[0]} and {shapes[1]}"
        remedy = "Pass one row per example and one column per known class."
        raise InputError(rule, offender, remedy, value=shapes, code="shape")
    if columns.dtype.kind not in "iu" or listed.dtype.kind != "f":
        rule = "`indices` must hold integers and `values` floating-point numbers"
        offender = f"their dtypes are {dtypes[0]} and {dtypes[1]}"
        raise InputTypeError(rule, offender, "Convert them.", value=dtypes, code="dtype")


def _refuse(wrong: np.ndarray, values: np.ndarray, rule: str, name: str) -> None:
    remedy = "Pass -1 as the index where a row has fewer, and say with `input` what `values` holds."
    rule, offender = f"`{name}` must be {rule}", "entries are not"
    refuse(wrong, values, rule, offender, remedy, code="topk", note="{:g}")


def _check_mass(mass: np.ndarray, absent: np.ndarray) -> None:
    """Raise where nothing, or more than everything, is known; warn where it is little."""
    refuse(
        (mass > 1 + _ABOVE_ONE) | ~(mass > 0) | absent.all(axis=1),
        mass,
        "The known probabilities of a row must add up to more than 0 and at most 1",
        "rows do not",
        "Drop those rows, or say with `input` what `values` holds.",
        code="topk_mass",
        note="sum {:.6g}",
    )
    n_tiny = int((mass < _TINY_MASS).sum())
    if n_tiny:
        message = (
            f"{n_tiny} of {mass.size} rows know less than {_TINY_MASS:.0%} of their probability; "
            "what they say about the classes is mostly a guess. Ask for more of the top classes."
        )
        warn(InputWarning(message, "topk_mass"))
