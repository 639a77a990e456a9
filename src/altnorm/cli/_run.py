"""The commands, put together; run one, and tell known errors in one sentence."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from altnorm._base.errors import InputError
from altnorm._base.files import recording
from altnorm.cli import importing
from altnorm.cli._commands import COMMANDS, Command
from altnorm.cli._options import command_of

DONE, BAD_INPUT, INTERNAL = 0, 2, 3  # 1 is a verdict that says no
INTERRUPTED, READER_LEFT = 130, 141  # as a shell tells of SIGINT and of SIGPIPE
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _PlainHelp:
    """Help without the signs of later versions of Typer: VAL for {VAL}, and no type of a flag."""

    def collect_usage_pieces(self, context: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(context)]  # type: ignore[misc]

    def get_params(self, context: Any) -> list[Any]:
        params: list[Any] = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class _Command(_PlainHelp, TyperCommand):
    """A command."""


class _Group(_PlainHelp, TyperGroup):
    """The program itself."""


def make_app() -> typer.Typer:
    """Put the program together."""
    app = typer.Typer(
        cls=_Group,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Start with: altnorm demo",
    )
    app.callback(invoke_without_command=True)(altnorm)
    for name, kind in COMMANDS.items():
        # Lines are broken by the terminal, not by the source.
        parts = str(kind.__doc__).split("\n\n")
        help = "\n\n".join(" ".join(part.split()) for part in parts)
        function = command_of(kind, partial(_call, kind.module, name))
        app.command(name, cls=_Command, help=help, epilog=f"Example: {kind.example}")(function)
    return app


def _call(module: str, name: str, options: Command) -> Any:
    """Run a command by the function of its name, whose module comes with NumPy and much else."""
    with importing():
        function = getattr(import_module(f"altnorm.cli.{module}"), name)
    return function(options)


def altnorm(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Better probabilities and decisions from a classifier you already have."""
    if version:
        print(f"altnorm {metadata.version('altnorm')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


# Typer's usage errors derive from Click's, which it has made its own in later versions.
ClickException: type[Any] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def run(arguments: Sequence[str]) -> int:
    """Run a command, of which `arguments` follow ``altnorm``; return the exit status."""
    with warnings.catch_warnings(), signals_raise(), recording() as written:
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _warning_printer()
        try:
            _check_streams()
            status = make_app()(list(arguments), standalone_mode=False, prog_name="altnorm")
            sys.stdout.flush()
        except (BrokenPipeError, SystemExit) as leaving:
            # Of a closed pipe Typer makes an exit, with the status of a verdict that says no.
            closed_pipe = leaving.__context__ if isinstance(leaving, SystemExit) else leaving
            if not isinstance(closed_pipe, BrokenPipeError):
                raise
            _silence_stdout()
            return READER_LEFT
        except (KeyboardInterrupt, typer.Abort):
            return _interrupted(written)
        except Exception as error:
            return _tell(error, written)
    if status == INTERRUPTED:  # later versions of Typer make a status of an interrupt
        return _interrupted(written)
    return status if isinstance(status, int) else DONE


@contextmanager
def signals_raise() -> Iterator[None]:
    """Turn the signals that end a process into SystemExit, unless someone else handles them."""
    # Only the main thread may set handlers, and one that somebody has set is theirs.
    is_main = threading.current_thread() is threading.main_thread()
    unhandled = [s for s in _SIGNALS if is_main and signal.getsignal(s) is signal.SIG_DFL]
    try:
        for number in unhandled:
            signal.signal(number, _exit)
        yield
    finally:
        for number in unhandled:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _check_streams() -> None:
    """Raise if there is nowhere to print to; let no character be one that cannot be printed."""
    if sys.stdout is None:
        raise InputError(
            "Standard output is closed", remedy="Redirect it to a file or to /dev/null."
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _silence_stdout() -> None:
    """Print no more: Python would try again at the end, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(error: Exception, written: Sequence[Path]) -> int:
    """Tell an error in one sentence, if it is a known one; return the exit status."""
    from altnorm.cli._screen import errors

    if isinstance(error, ClickException):
        # "Input should be a valid integer, unable to parse string as an integer", says Typer.
        reason = re.sub("Value error, |, unable to parse .*", "", error.format_message())
        sentence = " ".join(reason.split()).rstrip(".")
        errors.say(f"Error: {sentence}{'' if sentence.endswith('?') else '.'} See --help.")
        return BAD_INPUT
    # A full disk behind standard output fails once more when Python exits, unless it is silenced.
    if isinstance(error, OSError) and error.filename is None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            _silence_stdout()
    arrow = sys.modules.get("pyarrow")  # it could not do what a file asked for
    ours = (InputError, OSError, ImportError, MemoryError)
    if isinstance(error, ours if arrow is None else (*ours, arrow.ArrowException)):
        errors.say(f"Error: {one_sentence(error, written)}")
        return BAD_INPUT
    # Not one of those that tell a user what to do: the trace is for us.
    traceback.print_exception(error)
    errors.print("This is an error in altnorm. Please report it with the lines above.")
    return INTERNAL


def one_sentence(error: Exception, written: Sequence[Path] = ()) -> str:
    """Return the message of an error in the words of the command line, on one line."""
    from altnorm.cli._screen import in_options

    if isinstance(error, OSError) and error.strerror:
        where = f" ('{error.filename}')" if error.filename else ""
        return f"{error.strerror}{where}; {_left_behind(written)}."
    if isinstance(error, MemoryError):
        reason = str(error) or "out of memory"
        return f"There is not enough memory ({reason}); {_left_behind(written)}."
    if isinstance(error, InputError):
        error = in_options(error)
    return " ".join(str(error).split())


def _interrupted(written: Sequence[Path]) -> int:
    from altnorm.cli._screen import errors

    errors.say(f"Interrupted; {_left_behind(written)}.")
    return INTERRUPTED


def _left_behind(written: Sequence[Path]) -> str:
    """Say which files were complete before something went wrong."""
    if not written:
        return "nothing was written"
    names = " and ".join(f"'{path}'" for path in written)
    return f"{names} {'was' if len(written) == 1 else 'were'} written"


def _warning_printer() -> Callable[..., None]:
    """Tell each kind of warning once, on one line; numbers differ from batch to batch."""
    shown = set()

    def show(message: Any, category: type[Warning], filename: str, line: int, *more: Any) -> None:
        kind = getattr(message, "code", (category, filename, line))
        if issubclass(category, UserWarning) and kind not in shown:
            from altnorm.cli._screen import errors, with_options

            shown.add(kind)
            text = " ".join(with_options(str(message)).split())
            errors.say(f"Warning: {text}")

    return show
