"""The paper's symbols as parameters: an error that names ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

CHOSEN_BY_FIT = {
    symbol: f"AlternatingNormalizer.{name}"
    for symbol, name in {"alpha": "alpha", "d": "depth", "tau": "threshold"}.items()
}


def names_symbols(**names: str) -> Callable[[Function], Function]:
    """Let a function or an `__init__` say what a symbol of the paper is called here.

    A name with a dot is a parameter of another class. It is a TypeError, as for any unknown
    parameter. The signature that scikit-learn reads stays.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            for symbol, name in names.items():
                if symbol in options:
                    owner, _, own = name.rpartition(".")
                    where = f"of {owner}; here the fit chooses it."
                    start = f"There is no parameter `{symbol}`; the paper's {symbol} is `{own}` "
                    raise TypeError(start + (where if owner else f"here. Write {own}=..."))
            return function(*args, **options)

        return cast(Function, checked)

    return decorate
