"""The paper's symbols as parameters: an error that names ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

Parameters = ParamSpec("Parameters")
Init = Callable[Parameters, None]


def names_symbols(**names: str) -> Callable[[Init[Parameters]], Init[Parameters]]:
    """Let an `__init__` say what a symbol of the paper is called here.

    It is a TypeError, as for any unknown parameter. The signature that scikit-learn reads stays.
    """

    def decorate(init: Init[Parameters]) -> Init[Parameters]:
        @wraps(init)
        def checked(*args: Parameters.args, **options: Parameters.kwargs) -> None:
            for symbol, name in names.items():
                if symbol in options:
                    raise TypeError(
                        f"There is no parameter `{symbol}`; the paper's {symbol} is `{name}` here. "
                        f"Write {name}=..."
                    )
            init(*args, **options)

        return checked

    return decorate
