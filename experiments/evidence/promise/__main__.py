"""Is the promise of a target accuracy kept? How much is decided of what could be.

``python -m experiments.evidence.promise [--data DIR] [--repetitions N] [--minutes M] [--tables]
[--output DIR]``: simulated predictions, and with ``--data`` those of real classifiers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments._output import fill_page, read_records, write_records
from experiments.evidence.promise.classifiers import measure_classifier, summary_table
from experiments.evidence.promise.simulated import TASKS, measure, promise_table, rules_table
from experiments.suite.files import suite_paths

PAGE = Path(__file__).parent / "results" / "README.md"
REPETITIONS = 500


def run(n_sets: int, minutes: float) -> Iterator[dict[str, Any]]:
    """Measure in turns, one data set of each task, until all are done or the time is up."""
    end = time.monotonic() + 60 * minutes
    for seed in range(n_sets):
        for task in TASKS:
            if time.monotonic() > end:
                return
            yield measure(task, seed)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study: one line per data set, one per classifier and rule, and the page."""
    parser = argparse.ArgumentParser(description="Is the promise of a target accuracy kept?")
    parser.add_argument("--data", type=Path, help="folder with predictions of real classifiers")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="data sets per world")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--tables", action="store_true", help="only the tables, from the CSV files")
    parser.add_argument("--output", type=Path, default=PAGE.parent)
    arguments = parser.parse_args(argv)
    worlds, real = (arguments.output / f"{name}.csv" for name in ("promise", "classifiers"))
    if not arguments.tables:
        write_records(worlds, list(run(arguments.repetitions, arguments.minutes)))
        if arguments.data is not None:
            paths = suite_paths(arguments.data)
            write_records(real, [r for path in paths for r in measure_classifier(path)])
    records = read_records(worlds)
    tables = {"promise": promise_table(records), "rules": rules_table(records)}
    if real.exists():
        tables["real"] = summary_table(read_records(real))
    fill_page(PAGE, arguments.output, tables)


if __name__ == "__main__":
    main()
