"""What a fitted attribute must be: a few words to declare it with, beside its class.

An estimator declares what `fit` leaves in `_fitted`; what a base class declares holds for its
subclasses too. A model file may come from anywhere: nothing in it is believed before settings are
checked as `fit` does it, in `_check_params`, and the rest against these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from numbers import Integral, Real
from types import MappingProxyType, UnionType
from typing import Any, Final, NamedTuple, TypeGuard, Union, get_args, get_origin, get_type_hints

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.validation import is_number

TINY: Final = float(np.finfo(np.float64).tiny)
MAX: Final = float(np.finfo(np.float64).max)
ABSENT: Final = object()
"""Stands for an attribute that is not there: ``"shift_": record(Shift) | ABSENT``."""


class Scope(NamedTuple):
    """The estimator (or record) that is checked, and the sizes its arrays agree on so far."""

    owner: Any
    sizes: dict[str, int]

    def fits(self, wanted: tuple[str | int, ...], shape: tuple[int, ...]) -> bool:
        """Whether a shape is as wanted; a name that is new stands for the size it meets."""
        if len(wanted) != len(shape):
            return False
        sizes = dict(self.sizes)
        pairs = zip(wanted, shape, strict=True)
        if any((sizes.setdefault(w, n) if isinstance(w, str) else w) != n for w, n in pairs):
            return False
        self.sizes.update(sizes)
        return True


@dataclass(frozen=True)
class Spec:
    """What a value must be, in words and as a function; ``spec | None`` and the like combine."""

    must: str
    holds: Callable[[Any, Scope], object]

    def __or__(self, other: object) -> Spec:
        words = f"{self.must}, or {getattr(other, 'must', other)}"
        holds = getattr(other, "holds", lambda value, _: value is other)
        return Spec(
            self.must if other is ABSENT else words,
            lambda value, scope: holds(value, scope) or self.holds(value, scope),
        )

    def __and__(self, other: Spec) -> Spec:
        return Spec(
            f"{self.must} and {other.must}",
            lambda value, scope: self.holds(value, scope) and other.holds(value, scope),
        )


def declare(**specs: Spec) -> Mapping[str, Spec]:
    """Put the declarations of a class together, by name."""
    return MappingProxyType(specs)


def rule(must: str, test: Callable[[Any, Any], object]) -> Spec:
    """What takes a function of its own, of the value and the estimator, or record, that has it."""
    return Spec(must, lambda value, scope: test(value, scope.owner))


def number(low: float = -MAX, high: float = MAX, *, above: bool = False) -> Spec:
    """A number from `low`, or above it, to `high`; NaN is none."""

    def holds(value: object, _: Scope) -> bool:
        return is_number(value) and low <= value <= high and not (above and value == low)

    return Spec(f"a number {'above' if above else 'from'} {low:g} to {high:g}", holds)


def one_of(choices: Collection[str | None]) -> Spec:
    """One of some words, or None where that is one of them."""
    words = tuple(choices)
    return Spec(
        f"one of {words}",
        lambda value, _: (value is None or isinstance(value, str)) and value in words,
    )


def array(
    types: str,
    shape: tuple[str | int, ...],
    low: float = -MAX,
    high: float = MAX,
    *,
    total: float | None = None,
    tolerance: float = 1e-4,
    rising: bool = False,
    empty: bool = False,
) -> Spec:
    """An array of one of some types: "f", "i u", "u8" and so on; "U O" is text.

    Equal letters in shapes stand for equal sizes in all arrays of an estimator; "m" is the number
    of classes. Entries are from `low` to `high`; along the last axis they add up to `total`.
    """

    def holds(value: object, scope: Scope) -> bool:
        if not is_array(value) or not value.dtype.str[1:].startswith(tuple(types.split())):
            return False
        if not scope.fits(shape, value.shape):
            return False
        if not value.size:
            return empty
        if value.dtype.kind in "UO":
            return all(isinstance(text, str) for text in value.reshape(-1).tolist())
        least, most = np.float64(low), np.float64(high)  # for single precision too
        within = ((value >= least) & (value <= most)).all()  # NaN is not within
        if total is not None:
            off = np.abs(value.sum(axis=-1, dtype=np.float64) - total)
            within = within and (off <= tolerance).all()
        return bool(within and (not rising or (value[1:] > value[:-1]).all()))

    must = f"an array of type {types!r} and shape ({', '.join(map(str, shape))})"
    must += "" if "U" in types else f" with numbers from {low:g} to {high:g}"
    must += "" if total is None else f" that add up to {total:g}"
    return Spec(must + (" and increase" if rising else ""), holds)


def labels(size: str) -> Spec:
    """Different class labels: text, numbers, booleans, or a mixture."""

    def holds(value: object, scope: Scope) -> bool:
        if not is_array(value) or not scope.fits((size,), value.shape):
            return False
        found = value.tolist()
        plain = all(isinstance(label, (str, int, float)) for label in found)
        return plain and len({str(label) for label in found}) == len(found)

    return Spec("different class labels", holds)


def table() -> Spec:
    """A dictionary of columns of one length, as `cv_results_` is."""

    def holds(value: object, _: Scope) -> bool:
        if not isinstance(value, dict) or not all(is_array(column) for column in value.values()):
            return False
        shapes = {column.shape for column in value.values()}
        return len(shapes) <= 1 and all(len(shape) == 1 for shape in shapes)

    return Spec("columns of one length", holds)


def mapping(values: Spec | None = None) -> Spec:
    """A dictionary with names as keys; its values are as the spec says, or any."""

    def holds(value: object, scope: Scope) -> bool:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            return False
        return values is None or all(values.holds(one, scope) for one in value.values())

    return Spec("a dictionary" + ("" if values is None else f", each value {values.must}"), holds)


def record(kind: type) -> Spec:
    """A dataclass whose fields have the types of their annotations.

    Where its class declares `_fields`, these specs must hold too.
    """

    def holds(value: object, scope: Scope) -> bool:
        specs, inner = declared(kind, "_fields").items(), Scope(value, scope.sizes)
        return has_type(value, kind) and all(
            s.holds(getattr(value, name), inner) for name, s in specs
        )

    return Spec(f"a sound {kind.__name__}", holds)


def nested(*kinds: type) -> Spec:
    """A fitted estimator of one of some kinds that takes probabilities of the same classes."""

    def holds(value: Any, scope: Scope) -> bool:
        if type(value) not in kinds or value.input != "proba":
            return False
        # A record that does not say is one for rows with one class each.
        multilabel = getattr(scope.owner, "multilabel", None)
        same = (value.multilabel is None) == (multilabel is None)
        return same and value.classes_.size == scope.sizes.get("m")

    names = ", ".join(kind.__name__ for kind in kinds)
    return Spec(f"a model for the same classes that takes probabilities ({names})", holds)


def check_model(
    estimator: Any, check_params: Callable[[], None], remedy: str = "Save the model again."
) -> None:
    """Raise unless settings and fitted attributes are as the estimator's class asks for."""
    try:
        check_params()
    except InputError as error:
        rule = f"{type(estimator).__name__}: {error.rule}"
        raise error.replace(rule=rule, code="model_file") from error
    fault = _first_fault(estimator)
    if fault:
        raise InputError(fault, remedy=remedy, code="model_file")


def _first_fault(estimator: Any) -> str:
    kind, scope = type(estimator), Scope(estimator, {})
    state, specs = fitted_state(estimator), declared(kind, "_fitted")
    unknown = sorted(state.keys() - specs.keys())
    if unknown:
        return f"{kind.__name__} has no fitted attribute `{unknown[0]}`"
    for name, spec in specs.items():  # in their order: later ones rely on earlier ones
        value = state.get(name, ABSENT)
        if not spec.holds(value, scope):
            missing = f"{kind.__name__} must have `{name}`; it is missing"
            return missing if value is ABSENT else _message(kind, name, spec, value)
    return ""


def _message(kind: type, name: str, spec: Spec, value: object) -> str:
    try:
        shown = repr(value)
    except Exception:  # a record of what it must not hold may be unable to show itself
        shown = f"a {type(value).__name__}"
    if isinstance(value, np.ndarray):
        shown = f"{value.dtype} of shape {value.shape}, {value.reshape(-1)[:4]} .."
    return f"`{name}` of {kind.__name__} must be {spec.must}; it is {' '.join(shown[:80].split())}"


def declared(kind: type, what: str) -> dict[str, Spec]:
    """Return the declarations of a class and its bases, those of the bases first."""
    found: dict[str, Spec] = {}
    for base in reversed(kind.__mro__):
        specs: Mapping[str, Spec] = vars(base).get(what, {})
        found.update(specs)
    return found


def fitted_state(estimator: Any) -> dict[str, Any]:
    """Return all that an estimator remembers beside its settings and scikit-learn's own notes."""
    left_out = {*estimator.get_params(deep=False), "_sklearn_output_config", "_metadata_request"}
    return {name: value for name, value in vars(estimator).items() if name not in left_out}


def is_array(value: object) -> TypeGuard[np.ndarray]:
    """Whether a value is an array that a model file can hold."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufUO"


def has_type(value: Any, hint: Any) -> bool:
    """Whether a value has the type that an annotation asks for; an integer is a float too."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(has_type(value, one) for one in args)
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
