"""A progress bar that says what remains; silence where nobody would see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def track(items: Iterable[T], total: int, what: str, *, enabled: bool) -> Iterator[T]:
    """Yield `items`, showing how many of `total` are done; needs Rich, silent without it."""
    if not enabled:
        yield from items
        return
    try:
        from rich.console import Console
        from rich.progress import track as rich_track
    except ImportError:
        yield from items
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from items
        return
    yield from rich_track(items, description=what, total=total, console=console, transient=True)
