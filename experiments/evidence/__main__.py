"""``python -m experiments.evidence [--quick] [--output DIR]``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from joblib import effective_n_jobs

from experiments._output import parse_arguments, write_csv
from experiments.evidence.figures import draw_evidence
from experiments.evidence.page import write_page
from experiments.evidence.study import Design, Record, run

QUICK = Design(
    sizes=(200, 300),
    n_null=2,
    n_many=2,
    n_sharp=2,
    n_biased=2,
    n_fresh=2000,
    search={"alphas": (0.5, 1.0, 2.0), "depths": (1,)},
)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("evidence", "Does the verdict keep its word?", argv)
    design = replace(QUICK if arguments.quick else Design(), seed=arguments.seed)
    start = time.perf_counter()
    records = collect(design, arguments.jobs)
    seconds = time.perf_counter() - start
    page = write_page(
        records,
        design,
        seconds=seconds,
        jobs=effective_n_jobs(arguments.jobs),
        quick=arguments.quick,
    )
    (arguments.output / "README.md").write_text(page, encoding="utf-8")
    write_records(records, arguments.output)
    draw_evidence(records, arguments.output)
    print(f"results in {arguments.output}")


def collect(design: Design, jobs: int) -> list[Record]:
    """Judge all data sets, and say when a world is done."""
    records: list[Record] = []
    for found in run(design, n_jobs=jobs):
        if records and records[-1].world != found[0].world:
            print(f"done: {records[-1].world}", flush=True)
        records += found
    return records


def write_records(records: Sequence[Record], folder: Path) -> None:
    """One line for each data set and variant."""
    columns = {name: [getattr(r, name) for r in records] for name in Record._fields}
    write_csv(folder / "results.csv", columns)


if __name__ == "__main__":
    main()
