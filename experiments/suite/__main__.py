"""Run every method on every classifier: ``python -m experiments.suite --data FOLDER``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_records, write_csv
from experiments.suite.figure import draw_gains
from experiments.suite.files import suite_paths
from experiments.suite.measure import FIELDS, measure
from experiments.suite.tables import make_tables

PAGE = Path(__file__).parent / "results" / "README.md"
METHOD = {
    "action": "append",
    "metavar": "NAME",
    "default": [],
    "help": "measure this method alone (may be repeated); the other lines stay as they are",
}


def measure_all(arguments: Namespace) -> None:
    """Measure all classifiers in a folder, and write the numbers down."""
    paths = suite_paths(arguments.data, quick=arguments.quick)
    parallel = Parallel(n_jobs=arguments.jobs, return_as="generator")
    rows: list[dict[str, Any]] = []
    tasks = (delayed(measure)(path, arguments.seed, arguments.method) for path in paths)
    for path, part in zip(paths, parallel(tasks), strict=True):
        print(f"done: {path.stem}", flush=True)
        rows += part
    table = arguments.output / "suite.csv"
    if arguments.method:
        rows = replaced(read_records(table), rows)
    write_csv(table, {name: [row[name] for row in rows] for name in FIELDS})


def replaced(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The old lines, with those that were measured again in their places."""
    by_key = {(row["classifier"], row["method"]): row for row in new}
    return [by_key.get((row["classifier"], row["method"]), row) for row in old]


def report(folder: Path) -> None:
    """Figure and page from the numbers."""
    rows = read_records(folder / "suite.csv")
    draw_gains(rows, folder)
    published = read_records(PAGE.with_name("published.csv"))
    fill_page(PAGE, folder, make_tables(rows, published))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_arguments(
        "suite",
        __doc__,
        argv,
        data="the predictions (.npz)",
        options={"--method": METHOD},
        has_tables=True,
    )
    if not arguments.tables:
        measure_all(arguments)
    report(arguments.output)
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
