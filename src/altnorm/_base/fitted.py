"""Checks of what `fit` left, for `_check_fitted` of each class that a model file may hold."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Final, TypeGuard, Union, get_args, get_origin, get_type_hints

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.validation import is_number

TINY: Final = float(np.finfo(np.float64).tiny)
MAX: Final = float(np.finfo(np.float64).max)

CHECKS: dict[type, Callable[[Any, Fields], None]] = {}
"""`_check_fitted` of each class that a model file may hold."""


class Fields:
    """The fields of a fitted estimator, or of a record inside one, to be checked one by one.

    `n_classes` is for arrays to agree on; `checked` are the names of all fields that may be there.
    """

    def __init__(self, owner: Any, name: str, n_classes: int = 0) -> None:
        self.owner, self.name, self.n_classes = owner, name, n_classes
        self.checked: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether a field that may be missing is there."""
        self.checked.add(name)
        return name in vars(self.owner)

    def get(self, name: str) -> Any:
        if not self.has(name):
            raise _unsound(f"{self.name} must have `{name}`; it is missing")
        return vars(self.owner)[name]

    def require(self, name: str, holds: object, must: str) -> None:
        value = self.get(name)
        if not holds:
            raise _unsound(f"`{name}` of {self.name} must be {must}; it is {_shown(value)}")

    def number(self, name: str, low: float = -MAX, high: float = MAX) -> None:
        """Check a number from `low` to `high`; NaN is rejected."""
        value = self.get(name)
        holds = is_number(value) and low <= value <= high
        self.require(name, holds, f"a number from {low:g} to {high:g}")

    def choice(self, name: str, choices: Collection[str | None]) -> None:
        """Check one of some words, or None where that is one of them."""
        value, words = self.get(name), tuple(choices)
        self.require(name, isinstance(value, str | None) and value in words, f"one of {words}")

    def array(
        self,
        name: str,
        types: str | tuple[str, ...],
        shape: tuple[int | None, ...],
        low: float = -MAX,
        high: float = MAX,
        *,
        total: float | None = None,
        tolerance: float = 1e-4,
        empty: bool = False,
    ) -> np.ndarray:
        """Return an array of numbers, that add up to `total` along the last axis.

        Types are "f", "u8" and so on. A size of None may be any; 0 only if it may be `empty`.
        """
        value = self.get(name)
        sizes = ", ".join("any" if size is None else str(size) for size in shape)
        must = f"an array of type {types!r} and shape ({sizes}), from {low:g} to {high:g}"
        must += "" if total is None else f", that adds up to {total:g}"
        typed = is_array(value) and value.dtype.str[1:].startswith(types)
        self.require(name, typed and len(shape) == value.ndim, must)
        for size, n in zip(shape, value.shape, strict=True):
            self.require(name, size == n if size is not None else n or empty, must)
        least, most = np.float64(low), np.float64(high)  # for single precision too
        self.require(name, ((value >= least) & (value <= most)).all(), must)  # NaN is not within
        if total is not None:
            sums = value.sum(axis=-1, dtype=np.float64)
            self.require(name, (np.abs(sums - total) <= tolerance).all(), must)
        return value

    def table(self, name: str) -> None:
        """Check a dictionary of columns of one length, as `cv_results_` is."""
        value = self.get(name)
        holds = isinstance(value, dict) and all(is_array(column) for column in value.values())
        shapes = {column.shape for column in value.values()} if holds else set()
        holds = holds and len(shapes) <= 1 and all(len(shape) == 1 for shape in shapes)
        self.require(name, holds, "columns of one length")

    def record(self, name: str, kind: type) -> None:
        """Check a dataclass: the types of its fields, then what they hold."""
        self._check_record(name, kind, self.get(name))

    def records(self, name: str, kind: type) -> None:
        """As `record`, of a dictionary."""
        value = self.get(name)
        holds = isinstance(value, dict) and all(isinstance(key, str) for key in value)
        self.require(name, holds, f"a dictionary, each value a {kind.__name__}")
        for item in value.values():
            self._check_record(name, kind, item)

    def sequence(self, name: str, kind: type) -> None:
        """As `record`, of a tuple."""
        self.require(name, isinstance(self.get(name), tuple), f"a tuple, each a {kind.__name__}")
        for item in self.get(name):
            self._check_record(name, kind, item)

    def _check_record(self, name: str, kind: type, value: Any) -> None:
        self.require(name, has_type(value, kind), f"a sound {kind.__name__}")
        CHECKS[kind](value, Fields(value, f"`{name}` of {self.name}", self.n_classes))

    def model(self, name: str, *kinds: type) -> None:
        """Check for an estimator of one of some kinds on probabilities of the same classes."""
        value = self.get(name)
        names = ", ".join(kind.__name__ for kind in kinds)
        must = f"a model for the same classes that takes probabilities ({names})"
        self.require(name, type(value) in kinds and value.input == "proba", must)
        # A record that does not say is one for rows with one class each.
        multilabel = getattr(self.owner, "multilabel", None)
        same = (value.multilabel is None) == (multilabel is None)
        self.require(name, same and value.classes_.size == self.n_classes, must)


def check_model(estimator: Any, names: Collection[str]) -> None:
    """Raise unless settings, and fitted attributes of these names, are as `fit` leaves them."""
    kind = type(estimator)
    fitted = Fields(estimator, kind.__name__)
    CHECKS[kind](estimator, fitted)
    unknown = set(names) - fitted.checked
    if unknown:
        raise unknown_field(kind, min(unknown))


def unknown_field(kind: type, name: str) -> InputError:
    return _unsound(f"{kind.__name__} has no fitted attribute `{name}`")


def _unsound(fault: str) -> InputError:
    return InputError(fault, remedy="Fit it again, and save it.", code="model_file")


def _shown(value: object) -> str:
    if isinstance(value, np.ndarray):
        text = f"{value.dtype} of shape {value.shape}, {value.reshape(-1)[:4]} .."
    else:
        try:
            text = repr(value)
        except Exception:  # a record of what it must not hold may be unable to show itself
            text = f"a {type(value).__name__}"
    return " ".join(text[:80].split())


def is_array(value: object) -> TypeGuard[np.ndarray]:
    """Whether a value is an array that a model file can hold."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufUO"


def has_type(value: Any, hint: Any) -> bool:
    """Whether a value has the type that an annotation asks for; an integer is a float too."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(has_type(value, part) for part in args)
    if origin is tuple and isinstance(value, tuple):
        kinds = args[:1] * len(value) if args[-1] is Ellipsis else args
        return len(kinds) == len(value) and all(map(has_type, value, kinds))
    if is_dataclass(hint):
        hints, names = get_type_hints(hint), [field.name for field in fields(hint)]
        fit = (has_type(getattr(value, name), hints[name]) for name in names)
        return type(value) is hint and all(fit)
    if hint in (float, int):
        return is_number(value, Real if hint is float else Integral)
    return hint is Any or isinstance(value, origin or hint)
