"""Run the benchmarks and print the table: ``python -m benchmarks [NAME ...] [--write]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.harness import Row, discover
from benchmarks.machine import describe
from benchmarks.table import as_markdown, as_text

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "cpu.md"


def main() -> None:
    available = discover()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Print the timings.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(available)}")
    parser.add_argument("--write", action="store_true", help=f"also write {PAGE.name} in the docs")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(available))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(available)}")
    rows: list[Row] = []
    for name in options.names or available:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += available[name]()
    title = f"Measured on {describe()}."
    print(as_text(title, rows))
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(as_markdown(title, rows))


if __name__ == "__main__":
    main()
