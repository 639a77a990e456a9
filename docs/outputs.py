"""The Python blocks of a page, and the output that is shown below them.

``python docs/outputs.py [PAGE ...]`` runs the blocks and renews the output; the tests run them,
too, and compare. Output is a ``text`` block that follows its ``python`` block at once.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["Block", "run_blocks"]

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """What a block printed, and what the page says it prints (None: nothing is said)."""

    code: str
    printed: str
    shown: str | None


def run_blocks(text: str, name: str, names: dict[str, object] | None = None) -> list[Block]:
    """Run the blocks of a page one after the other, in one namespace."""
    names = {} if names is None else names
    blocks = []
    for found in BLOCK.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(found["code"], name, "exec"), names)
        blocks.append(Block(found["code"], printed.getvalue(), found["shown"]))
    return blocks


def renew(page: Path) -> None:
    """Write what the blocks print below them."""
    text = page.read_text(encoding="utf-8")
    blocks = iter(run_blocks(text, page.name))

    def with_output(found: re.Match[str]) -> str:
        block = next(blocks)
        output = f"```text\n{block.printed.rstrip()}\n```\n" if block.printed.strip() else ""
        return f"```python\n{block.code}```\n{output}"

    page.write_text(BLOCK.sub(with_output, text), encoding="utf-8")


if __name__ == "__main__":
    pages = [Path(name) for name in sys.argv[1:]] or sorted(Path(__file__).parent.glob("*.md"))
    for page in pages:
        renew(page)
