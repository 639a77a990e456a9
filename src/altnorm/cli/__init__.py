"""The command line: ``altnorm``.

Exit status 0: done. 1: a verdict that says no, with ``--strict``. 2: bad input, told in one
sentence. 3: an error in altnorm itself. 130: interrupted. 141: the output pipe was closed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import _exit
from typing import Any

__all__ = ["main"]

LEAST_COLUMNS = 40  # in fewer, tables break every word; a narrower terminal may break the lines


def main() -> None:
    """Run the command line and exit."""
    # A terminal that does not know its width says 0; Rich would print in no columns: nothing.
    columns = os.environ.get("COLUMNS", "80")
    if not columns.strip("0"):
        del os.environ["COLUMNS"]
    elif columns.isdecimal() and int(columns) < LEAST_COLUMNS:
        os.environ["COLUMNS"] = str(LEAST_COLUMNS)
    with importing():
        try:
            import rich  # noqa: F401
            import typer  # noqa: F401
        except ImportError:
            print(
                "Error: the command line needs the extra `cli`: pip install 'altnorm[cli]'",
                file=sys.stderr,
            )
            sys.exit(2)
        from altnorm.cli._run import run
    sys.exit(run(sys.argv[1:]))


@contextmanager
def importing() -> Iterator[None]:
    """Let an interrupt end the process: it would surface anywhere in the libraries' imports."""
    is_main = threading.current_thread() is threading.main_thread()  # others may set no handler
    before = signal.signal(signal.SIGINT, _leave) if is_main else None
    try:
        yield
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)


def _leave(*_: Any) -> None:
    os.write(2, b"Interrupted; nothing was written.\n")
    _exit(130)  # no unwinding: it would surface in the middle of a library
