"""The paper's symbols as parameters: an error that names ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = Callable[Parameters, Result]


def names_symbols(
    **names: str,
) -> Callable[[Function[Parameters, Result]], Function[Parameters, Result]]:
    """Let a function or an `__init__` say what a symbol of the paper is called here.

    It is a TypeError, as for any unknown parameter. The signature that scikit-learn reads stays.
    """

    def decorate(function: Function[Parameters, Result]) -> Function[Parameters, Result]:
        @wraps(function)
        def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
            for symbol, name in names.items():
                if symbol in options:
                    raise TypeError(
                        f"There is no parameter `{symbol}`; the paper's {symbol} is `{name}` here. "
                        f"Write {name}=..."
                    )
            return function(*args, **options)

        return checked

    return decorate
