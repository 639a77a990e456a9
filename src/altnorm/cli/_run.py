"""Run a command; translate known errors into one sentence and an exit status."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import typer

from altnorm._base.errors import InputError
from altnorm.cli._app import app
from altnorm.cli._remedies import REMEDIES
from altnorm.cli._screen import errors
from altnorm.cli._signals import signals_raise

DONE, SAYS_NO, BAD_INPUT, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130

# Typer's usage errors derive from Click's, which it has made its own in later versions.
ClickException: type[Any] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


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
    with warnings.catch_warnings(), signals_raise():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _warning_printer()
        try:
            _check_streams()
            status = app(list(arguments), standalone_mode=False, prog_name="altnorm")
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output has left: nothing more to say
            _silence_stdout()
            return DONE
        except Exception as error:
            return _tell(error)
        except KeyboardInterrupt:
            return _interrupted()
    return status if isinstance(status, int) else DONE


def _check_streams() -> None:
    """Raise if there is nowhere to print to; let no character be one that cannot be printed."""
    if sys.stdout is None:
        raise InputError(
            "Standard output is closed",
            remedy="Redirect it to a file or to /dev/null.",
            code="option",
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _silence_stdout() -> None:
    """Print no more: Python would try again at the end, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(error: Exception) -> int:
    """Tell an error in one sentence, if it is a known one; return the exit status."""
    if isinstance(error, typer.Abort):
        return _interrupted()
    if isinstance(error, ClickException):
        sentence = " ".join(error.format_message().split()).rstrip(".") + "."
        errors.print(f"Error: {sentence} See --help.", markup=False, soft_wrap=True)
        return BAD_INPUT
    # A full disk behind standard output fails once more when Python exits, unless it is silenced.
    if isinstance(error, OSError) and error.filename is None and _stdout_fails():
        _silence_stdout()
    if isinstance(error, (InputError, OSError, ImportError, MemoryError)) or _is_arrow(error):
        errors.print(f"Error: {one_sentence(error)}", markup=False, soft_wrap=True)
        return BAD_INPUT
    # Not one of those that tell a user what to do: the trace is for us.
    traceback.print_exception(error)
    errors.print("This is an error in altnorm. Please report it with the lines above.")
    return INTERNAL


def _stdout_fails() -> bool:
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return True
    return False


def _is_arrow(error: Exception) -> bool:
    """Whether PyArrow could not do what a file asked for, or the file was not sound."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(error, arrow.ArrowException)


def one_sentence(error: Exception) -> str:
    """Return the message of an error in the words of the command line, on one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f" ('{error.filename}')" if error.filename else ""
        return f"{error.strerror}{where}; nothing was written."
    if isinstance(error, MemoryError):
        return f"There is not enough memory ({error or 'no more was given'}); nothing was written."
    if isinstance(error, InputError) and error.code in REMEDIES:
        error = error.replace(remedy=REMEDIES[error.code])
    return " ".join(str(error).split())


def _interrupted() -> int:
    errors.print("Interrupted; nothing was written.")
    return INTERRUPTED


def _warning_printer() -> Callable[..., None]:
    """Tell each kind of warning once, on one line; numbers differ from batch to batch."""
    shown = set()

    def show(message: Any, category: type[Warning], filename: str, line: int, *more: Any) -> None:
        kind = getattr(message, "code", (category, filename, line))
        if issubclass(category, UserWarning) and kind not in shown:
            shown.add(kind)
            text = " ".join(str(message).split())
            errors.print(f"Warning: {text}", markup=False, soft_wrap=True)

    return show
