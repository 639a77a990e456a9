"""``python -m experiments.evidence [--quick] [--jobs N] [--output DIR] [--measure | --tables]``."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.evidence import plan
from experiments.evidence.plan import REPETITIONS
from experiments.evidence.study import run

PAGE = Path(__file__).parent / "results" / "README.md"
CASES = {"worlds": plan.CASES, "intervals": plan.INTERVAL_CASES, "costs": plan.COST_CASES}
QUICK_ROWS, QUICK_REPETITIONS = 300, 2


def measure_all(arguments: Namespace) -> None:
    """Measure the parts, and write the numbers down."""
    n_sets = arguments.repetitions or (QUICK_REPETITIONS if arguments.quick else REPETITIONS)
    for name, cases in CASES.items():
        if arguments.quick:
            cases = tuple(case for case in cases if case.n_rows <= QUICK_ROWS) or cases[:1]
        start = time.perf_counter()
        records = list(run(name, cases, n_sets, seed=arguments.seed, n_jobs=arguments.jobs))
        write_records(arguments.output / f"{name}.csv", records)
        print(f"{name}: {(time.perf_counter() - start) / 60:.1f} minutes", flush=True)


def report(folder: Path) -> None:
    """Figure and page from the numbers."""
    # Where it is measured there may be nothing to draw with.
    from experiments.evidence.figures import draw_evidence
    from experiments.evidence.tables import make_tables

    records = {name: read_records(folder / f"{name}.csv") for name in CASES}
    draw_evidence(records["worlds"], records["intervals"], folder)
    fill_page(PAGE, folder, make_tables(records))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    options = {"--repetitions": {"type": int, "help": f"data sets per world, {REPETITIONS}"}}
    arguments = parse_arguments(
        "evidence", "Does the verdict keep its word?", argv, options=options, has_tables=True
    )
    if not arguments.tables:
        measure_all(arguments)
    if not arguments.measure:
        report(arguments.output)
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
