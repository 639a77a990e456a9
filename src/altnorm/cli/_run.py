"""Run a command; translate known errors into one sentence and an exit status."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import typer

from altnorm._validation import InputError
from altnorm.cli._app import app
from altnorm.cli._screen import errors

__all__ = ["run"]

DONE, SAYS_NO, BAD_INPUT, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130

# Typer's usage errors derive from Click's, which it has made its own in later versions.
ClickException: type[Any] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)

_WORDS = {
    "pass input='logits'": "pass --logits when you tune",
    "turn them into probabilities first (softmax)": "pass --logits when you tune",
    "multilabel=": "--multilabel ",
}


def run(arguments: Sequence[str]) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str
        What follows ``altnorm`` on the command line.

    Returns
    -------
    int
        Exit status.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _warning_printer()
        try:
            status = app(list(arguments), standalone_mode=False, prog_name="altnorm")
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output has left: nothing more to say
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return DONE
        except Exception as error:
            return _tell(error)
        except KeyboardInterrupt:
            return _interrupted()
    return status if isinstance(status, int) else DONE


def _tell(error: Exception) -> int:
    """Tell an error in one sentence, if it is a known one; return the exit status."""
    if isinstance(error, typer.Abort):
        return _interrupted()
    if isinstance(error, ClickException):
        sentence = " ".join(error.format_message().split()).rstrip(".") + "."
        errors.print(f"Error: {sentence} See --help.", markup=False, soft_wrap=True)
        return BAD_INPUT
    if isinstance(error, (InputError, OSError, ImportError)):
        errors.print(f"Error: {one_sentence(error)}", markup=False, soft_wrap=True)
        return BAD_INPUT
    traceback.print_exception(error)
    errors.print("This is an error in altnorm. Please report it with the lines above.")
    return INTERNAL


def one_sentence(error: Exception) -> str:
    """Return the message of an error in the words of the command line, on one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f" ('{error.filename}')" if error.filename else ""
        return f"{error.strerror}{where}; nothing was written."
    message = " ".join(str(error).split())
    for python, shell in _WORDS.items():
        message = message.replace(python, shell)
    return message


def _interrupted() -> int:
    errors.print("Interrupted; nothing was written.")
    return INTERRUPTED


def _warning_printer() -> Callable[..., None]:
    """Tell each kind of warning once, on one line; numbers differ from batch to batch."""
    told = set()

    def show(message: Any, category: type[Warning], *details: Any, **more: Any) -> None:
        text = " ".join(str(message).split())
        kind = re.sub(r"\d+", "", text)
        if issubclass(category, UserWarning) and kind not in told:
            told.add(kind)
            errors.print(f"Warning: {text}", markup=False, soft_wrap=True)

    return show
