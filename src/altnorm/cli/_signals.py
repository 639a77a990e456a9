"""Let the signals that end a process unwind it, so that no half-written file stays behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def signals_raise() -> Iterator[None]:
    """Turn the signals that end a process into SystemExit, unless someone else handles them."""
    changed = {}
    # Only the main thread may set handlers, and one that somebody has set is theirs.
    if threading.current_thread() is threading.main_thread():
        changed = {s: signal.getsignal(s) for s in _SIGNALS}
        changed = {s: old for s, old in changed.items() if old is signal.SIG_DFL}
    try:
        for number in changed:
            signal.signal(number, _exit)
        yield
    finally:
        for number, old in changed.items():
            signal.signal(number, old)


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
