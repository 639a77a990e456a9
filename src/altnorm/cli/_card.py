"""A model card in Markdown: what a model does, what speaks for it, and what it is not for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from altnorm.cli._screen import advised, escaped

LIMITS = (
    "It is for predictions of the classifier that it was fitted to, on data like its validation "
    "data. After either has changed, fit it again.",
    "It sees predictions only. What all of them get wrong, such as a class that the classifier has "
    "never met, it cannot put right.",
    "`altnorm apply --strict` and `altnorm check NEW --model MODEL` tell when predictions no "
    "longer look like those at fit; only labels tell whether it still helps.",
)


def card_lines(
    path: Path, facts: Sequence[tuple[str, str]], verdict: Any, applied: str
) -> Iterator[str]:
    """The card of a model file; `facts` are what `altnorm info` shows, a name and a text each."""
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    yield f"# Model card: {_plain(path.name)}\n"
    yield "| | |\n|---|---|"
    for name, text in (*facts, ("written", f"{written:%Y-%m-%d %H:%M} UTC")):
        yield f"| {name} | {_plain(text).replace('|', '&#124;')} |"
    yield "\n## Evidence\n"
    if verdict is None:
        yield "None: it was fitted without labels, so it is unknown whether it helps."
    else:
        yield f"{_plain(str(verdict))}\n\n{_plain(applied)}"
        if verdict.gates:
            yield f"\n## What had to hold\n\n```\n{verdict.gates}\n```"
        yield from _listed("Cautions", [advised(c.code, c.text) for c in verdict.cautions])
    yield from _listed("Limits", LIMITS)


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"\n## {title}\n"
        yield from (f"- {_plain(line)}" for line in lines)


def _plain(text: str) -> str:
    """Text on one line, in the words of the command line, that no reader takes for HTML."""
    line = escaped(" ".join(text.split())).replace("&", "&amp;")
    return re.sub("<(?=[A-Za-z/!?])", "&lt;", line)
