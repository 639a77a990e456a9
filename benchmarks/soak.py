"""Damaged input for as long as you like: ``python -m benchmarks.soak [--minutes 10] [WHAT ...]``.

The cases are those of tests/fuzzing.py, with new seeds. Each series runs in a process of its own; a
case that crashes it, hangs or ends in anything but an answer or one sentence is kept, and the next
one follows. Exit status 1 if there was any.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path

from tests.fuzzing import CASES

ROOT = Path(__file__).parent.parent
SERIES = 200  # cases in one process


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="Soak altnorm.")
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join(CASES)}")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("soak"), help="folder for what failed")
    options = parser.parse_args()
    unknown = sorted(set(options.what) - set(CASES))
    if unknown:
        parser.error(f"there is no '{unknown[0]}'; choose from {', '.join(CASES)}")
    end = time.monotonic() + 60 * options.minutes
    done, failed = soak(options.what or list(CASES), options.seed, end, options.keep)
    for what, cases in done.items():
        print(f"{what:10} {cases:8,} cases {failed[what]:4} failed")
    sys.exit(failed.total() > 0)


def soak(
    names: list[str], first_seed: int, end: float, keep: Path
) -> tuple[Counter[str], Counter[str]]:
    """Run series of cases in turn until the time is over; count cases and failures."""
    done: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for seed in count(first_seed):
        for what in names:
            number = 0
            while number < SERIES and time.monotonic() < end:
                last = run_series(what, seed, number, keep)
                done[what] += (SERIES if last is None else last + 1) - number
                failed[what] += last is not None
                number = SERIES if last is None else last + 1
        if time.monotonic() >= end:
            return done, failed
    raise AssertionError("there is always another seed")


def run_series(what: str, seed: int, first: int, keep: Path) -> int | None:
    """Run cases in a process of their own; return the number of the one that failed, if any."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.fuzzing", what, str(seed), str(first)]
        ran = subprocess.run(
            [*command, str(SERIES - first), folder],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        if ran.returncode == 0:
            return None
        number = int((Path(folder) / "number").read_text())
        kept = keep / f"{what}-{seed}-{number}"
        shutil.copytree(folder, kept, dirs_exist_ok=True)
        (kept / "error.txt").write_text(ran.stderr)
        reason = (ran.stderr.strip().splitlines() or [f"status {ran.returncode}"])[-1]
        print(f"{what} seed {seed} case {number}: {reason[:200]} ({kept})", flush=True)
        return number


if __name__ == "__main__":
    main()
