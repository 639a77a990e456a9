"""The paper's symbols as parameters: an error that names ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = Callable[Parameters, Result]

CHOSEN_BY_FIT = {
    symbol: f"AlternatingNormalizer.{name}"
    for symbol, name in {"alpha": "alpha", "d": "depth", "tau": "threshold"}.items()
}


def names_symbols(
    **names: str,
) -> Callable[[Function[Parameters, Result]], Function[Parameters, Result]]:
    """Let a function or an `__init__` say what a symbol of the paper is called here.

    A name with a dot is a parameter of another class. It is a TypeError, as for any unknown
    parameter. The signature that scikit-learn reads stays.
    """

    def decorate(function: Function[Parameters, Result]) -> Function[Parameters, Result]:
        @wraps(function)
        def checked(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
            for symbol, name in names.items():
                if symbol in options:
                    owner, _, own = name.rpartition(".")
                    chosen = f"of {owner}; here the fit chooses it."
                    raise TypeError(
                        f"There is no parameter `{symbol}`; the paper's {symbol} is `{own}` "
                        + (chosen if owner else f"here. Write {own}=...")
                    )
            return function(*args, **options)

        return checked

    return decorate
