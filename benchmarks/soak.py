"""Spoilt input for as long as you like: ``python -m benchmarks.soak [--minutes 10] [WHAT ...]``.

The cases are those of tests/fuzzing.py, with new seeds. Each series runs in a process of its own; a
case that crashes it, hangs, loses a row or ends in anything but an answer or one sentence is kept,
and the next one follows. With ``--cases N`` there are that many of each kind, however long they
take. Exit status 1 if any failed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.fuzzing import CASES

ROOT = Path(__file__).parent.parent
SERIES = 200  # cases in one process


class Tally(NamedTuple):
    """What was tried, and what came of it."""

    done: Counter[str]
    failed: Counter[str]
    ended: Counter[str]  # by command and exit status

    def __str__(self) -> str:
        kinds = [
            f"{what:10} {cases:8,} cases {self.failed[what]:4} failed"
            for what, cases in self.done.items()
        ]
        names = sorted({ended.split()[0] for ended in self.ended})
        commands = [
            f"{name:10} {self.ended[f'{name} 0']:8,} answered {self.ended[f'{name} 2']:8,} refused"
            for name in names
        ]
        total = f"{self.done.total():,} cases, {self.failed.total()} failed"
        return "\n".join([*kinds, "", *commands, "", total])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="Soak altnorm.")
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join(CASES)}")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cases", type=int, help="of each kind, instead of --minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("soak"), help="folder for what failed")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.what) - set(CASES))
    if unknown:
        parser.error(f"there is no '{unknown[0]}'; choose from {', '.join(CASES)}")
    plan = plan_series(options.what or list(CASES), options.seed, options.cases, options.minutes)
    tally = soak(plan, options.keep)
    print(tally)
    sys.exit(tally.failed.total() > 0)


def plan_series(
    names: Sequence[str], first_seed: int, cases: int | None, minutes: float
) -> Iterator[tuple[str, int, int]]:
    """Series to run, as kind, seed and number of cases: so many, or until the time is over."""
    end = time.monotonic() + 60 * minutes
    for seed in count(first_seed):
        left = SERIES if cases is None else cases - SERIES * (seed - first_seed)
        for what in names:
            if left <= 0 or (cases is None and time.monotonic() >= end):
                return
            yield what, seed, min(SERIES, left)


def soak(plan: Iterator[tuple[str, int, int]], keep: Path) -> Tally:
    """Run series of cases; after one that fails, go on with the next."""
    tally = Tally(Counter(), Counter(), Counter())
    for what, seed, size in plan:
        number = 0
        while number < size:
            last = run_series(what, seed, number, size, keep, tally.ended)
            tally.done[what] += (size if last is None else last + 1) - number
            tally.failed[what] += last is not None
            number = size if last is None else last + 1
    return tally


def run_series(
    what: str, seed: int, first: int, size: int, keep: Path, ended: Counter[str]
) -> int | None:
    """Run cases in a process of their own; return the number of the one that failed, if any."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "error", "-m", "tests.fuzzing", what]
        ran = subprocess.run(
            [*command, str(seed), str(first), str(size - first), folder],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        if ran.returncode == 0:
            ended.update(json.loads(ran.stdout))
            return None
        number = int((Path(folder) / "number").read_text())
        kept = keep / f"{what}-{seed}-{number}"
        pipe = shutil.ignore_patterns("pipe.csv")  # cannot be copied
        shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=pipe)
        (kept / "error.txt").write_text(ran.stderr)
        reason = (ran.stderr.strip().splitlines() or [f"status {ran.returncode}"])[-1]
        print(f"{what} seed {seed} case {number}: {reason[:200]} ({kept})", flush=True)
        return number


if __name__ == "__main__":
    main()
