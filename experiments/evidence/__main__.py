"""``python -m experiments.evidence [--quick] [--part NAME | --tables] [--jobs N]``."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_type_hints

from experiments._output import fill_page, parse_arguments, write_csv
from experiments.evidence.figures import draw_evidence
from experiments.evidence.plan import PARTS, make_plan
from experiments.evidence.study import Case, Record, run
from experiments.evidence.tables import make_tables

PAGE = Path(__file__).parent / "results" / "README.md"


def main(argv: Sequence[str] | None = None) -> None:
    options: dict[str, dict[str, Any]] = {
        "--part": {"choices": PARTS, "help": "measure one part, and take the others as they are"},
        "--tables": {"action": "store_true", "help": "measure nothing, only make the page anew"},
    }
    arguments = parse_arguments(
        "evidence", "Does the verdict keep its word?", argv, options=options
    )
    folder = arguments.output
    parts = (arguments.part,) if arguments.part else PARTS
    for name in () if arguments.tables else parts:
        cases = [case for case in make_plan(quick=arguments.quick) if case.part == name]
        start = time.perf_counter()
        write_records(collect(cases, arguments.seed, arguments.jobs), folder / f"{name}.csv")
        print(f"{name}: {(time.perf_counter() - start) / 60:.1f} minutes", flush=True)
    records = [r for name in PARTS for r in read_records(folder / f"{name}.csv")]
    fill_page(PAGE, folder, make_tables(records))
    draw_evidence(records, folder)
    print(f"results in {folder}")


def collect(cases: Sequence[Case], seed: int, jobs: int) -> list[Record]:
    """Judge all data sets, and say when a world is done."""
    records: list[Record] = []
    for record in run(cases, seed=seed, n_jobs=jobs):
        if records and records[-1].world != record.world:
            print(f"  done: {records[-1].world}, {records[-1].n_rows:,} rows", flush=True)
        records.append(record)
    return records


def write_records(records: Sequence[Record], path: Path) -> None:
    """One line for each data set and estimator."""
    write_csv(path, {name: [getattr(r, name) for r in records] for name in Record._fields})


def read_records(path: Path) -> list[Record]:
    """What `write_records` wrote."""
    kinds = get_type_hints(Record)

    def parse(name: str, text: str) -> Any:
        return text == "True" if kinds[name] is bool else kinds[name](text)

    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Record(*(parse(name, row[name]) for name in Record._fields)) for row in rows]


if __name__ == "__main__":
    main()
