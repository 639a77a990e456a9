"""What pages show that a command gave: output of blocks, and numbers of the studies.

``python docs/outputs.py [PAGE ...]`` renews both, and the tests compare.

*Blocks.* Output is a ``text`` block that follows its ``python`` or ``console`` block at once. Lines
of a ``console`` block begin with ``$``.

*Numbers.* What stands between ``<!-- numbers NAME -->`` and ``<!-- end -->`` is made by the
function of that name in `NUMBERS`, from the results of a study.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the studies' own names of classifiers

from docs import study_numbers, suite_numbers  # noqa: E402

__all__ = ["NUMBERS", "PAGES", "Block", "fill_numbers", "run_blocks"]

PAGES = [ROOT / "README.md", ROOT / "paper" / "paper.md", *sorted((ROOT / "docs").glob("*.md"))]
NUMBERS = suite_numbers.NUMBERS | study_numbers.NUMBERS

BLOCK = re.compile(
    r"^```(?P<kind>python|console)\n(?P<code>.*?)^```\n(?:```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
FILLED = re.compile(r"(<!-- numbers ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Block(NamedTuple):
    """What a block printed, and what the page says it prints (None: nothing is said)."""

    code: str
    printed: str
    shown: str | None


def run_blocks(text: str, name: str, names: dict[str, object] | None = None) -> list[Block]:
    """Run the blocks of a page one after the other, in one namespace and in this folder."""
    names = {} if names is None else names
    blocks = []
    for found in BLOCK.finditer(text):
        if found["kind"] == "console":
            printed = "".join(map(run_command, found["code"].splitlines()))
        else:
            printed = run_python(found["code"], name, names)
        blocks.append(Block(found["code"], printed, found["shown"]))
    return blocks


def run_python(code: str, name: str, names: dict[str, object]) -> str:
    """What a block of Python prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), names)
    return printed.getvalue()


def run_command(line: str) -> str:
    """What a line of a shell prints; `altnorm` is that of this environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["bash", "-c", line.removeprefix("$ ")],
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def fill_numbers(text: str) -> str:
    """Return a page with the numbers of the studies as they are now."""
    if not suite_numbers.SUITE.exists():
        return text
    return FILLED.sub(lambda found: f"{found[1]}{NUMBERS[found[2]]()}\n{found[3]}", text)


def renew(page: Path) -> None:
    """Write what the blocks print below them, and the numbers of the studies."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        blocks = iter(run_blocks(text, page.name))

    def with_output(found: re.Match[str]) -> str:
        printed = "\n".join(line.rstrip() for line in next(blocks).printed.splitlines()).strip("\n")
        output = f"```text\n{printed}\n```\n" if printed else ""
        return f"```{found['kind']}\n{found['code']}```\n{output}"

    page.write_text(fill_numbers(BLOCK.sub(with_output, text)), encoding="utf-8")


if __name__ == "__main__":
    named = [Path(name).resolve() for name in sys.argv[1:]]
    for page in named or PAGES:
        print(page.name, flush=True)
        renew(page)
