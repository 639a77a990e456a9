"""The error that bad input raises: a sentence for people, fields for programs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

_SHOWN = 80  # characters of a value that a message shows
_MOST = 600  # of each part of a message, whatever it was made of
_FIELDS = ("rule", "offender", "remedy", "value", "code", "place", "parameter", "example")


class Place(NamedTuple):
    """Where in an array the first offender is."""

    row: int
    column: int | None = None
    note: str = ""

    def __str__(self) -> str:
        column = "" if self.column is None else f", column {self.column}"
        return f"row {self.row}{column}" + (f" ({self.note})" if self.note else "")


def shown(value: object, limit: int = _SHOWN) -> str:
    """Text of a value for a message; of a long one, how it begins and how long it is."""
    text = str(value)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"


class InputError(ValueError):
    """The input breaks a rule; the message says which, where, and what to do about it.

    Attributes of the same names hold the parameters: a program need not read the sentence.

    Parameters
    ----------
    rule : str
        What must hold, without a full stop; or the whole message, with one.
    offender : str, default=""
        What breaks the rule, without a full stop.
    remedy : str, default=""
        What to do about it, in whole sentences.
    value : object, default=None
        The value that breaks the rule; of the first offender, if there are several.
    code : str, default="invalid"
        A name for the rule that stays the same when the wording changes, such as "row_sum".
    place : object, default=None
        Where the first of several offenders is; the message shows it as text.
    parameter : str, default=""
        Name of the parameter that the rule is about, if it is about one.
    example : object, default=None
        A value that would do. Unless there is a `remedy`, it is to pass this one.

    Examples
    --------
    >>> import altnorm
    >>> try:
    ...     altnorm.ambiguity([[0.2, 0.8], [0.5, 0.8]])
    ... except altnorm.InputError as error:
    ...     print(error.code, error.value, error.place.row, "|", error.offender)
    row_sum 1.3 1 | 1 of 2 rows do not
    """

    def __init__(
        self,
        rule: str,
        offender: str = "",
        remedy: str = "",
        *,
        value: object = None,
        code: str = "invalid",
        place: Any = None,
        parameter: str = "",
        example: object = None,
    ) -> None:
        if example is not None and not remedy:
            remedy = f"Pass for example {parameter}={example!r}."
        first = "" if place is None else f", the first is {shown(place, _MOST)}"
        # Pickling calls the class with this one sentence and then restores the fields.
        if not (offender or remedy or first):
            super().__init__(shown(rule, 4 * _MOST))
        else:
            short = [shown(part, _MOST) for part in (rule, offender, remedy)]
            message = (f"{short[0]}; {short[1]}" if offender else short[0]) + first
            super().__init__(message + (f". {short[2]}" if remedy else "." if offender else ""))
        self.rule, self.offender, self.remedy = rule, offender, remedy
        self.value, self.code, self.place = value, code, place
        self.parameter, self.example = parameter, example

    def replace(self, **fields: Any) -> Self:
        """Return the same error with some fields changed."""
        return type(self)(**{**{name: getattr(self, name) for name in _FIELDS}, **fields})


class InputTypeError(InputError, TypeError):
    """The input has the wrong type or dtype."""


def shape_error(rule: str, array: Any, remedy: str, code: str = "shape") -> InputError:
    """Return an error about an array that has another shape than it must have."""
    shape = tuple(array.shape)
    return InputError(rule, f"it has shape {shape}", remedy, value=shape, code=code)


class InputWarning(UserWarning):
    """The input is odd, but there is an answer; `code` names the kind of oddity."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)  # all that pickling calls the class with; it restores the code
        self.code = code


def warn(warning: Warning) -> None:
    """Issue a warning that points at the line outside altnorm which led to it."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and _is_ours(str(frame.f_globals.get("__name__", ""))):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=max(1, level - 1) if frame is None else level)


@contextmanager
def needing_extra(name: str) -> Iterator[None]:
    """Name the extra that brings what cannot be imported within the block."""
    try:
        yield
    except ImportError as error:
        remedy = f"install it with pip install 'altnorm[{name}]'"
        raise ImportError(f"altnorm.{name} needs the `{name}` extra; {remedy}") from error


def _is_ours(module: str) -> bool:
    package = module.partition(".")[0]
    return package == "sklearn" or (package == "altnorm" and not module.startswith("altnorm.cli"))
