"""Run every method on every classifier: ``python -m experiments.suite --data FOLDER``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_records, write_csv
from experiments.suite.figure import draw_gains
from experiments.suite.files import suite_paths
from experiments.suite.measure import FIELDS, measure
from experiments.suite.tables import make_tables

PAGE = Path(__file__).parent / "results" / "README.md"


def measure_all(arguments: Namespace) -> None:
    """Measure all classifiers in a folder, and write the numbers down."""
    paths = suite_paths(arguments.data, quick=arguments.quick)
    parallel = Parallel(n_jobs=arguments.jobs, return_as="generator")
    rows = []
    for part in parallel(delayed(measure)(path, arguments.seed) for path in paths):
        print(f"done: {part[0]['classifier']}", flush=True)
        rows += part
    write_csv(
        arguments.output / "suite.csv", {name: [row[name] for row in rows] for name in FIELDS}
    )


def report(folder: Path) -> None:
    """Figure and page from the numbers."""
    rows = read_records(folder / "suite.csv")
    draw_gains(rows, folder)
    fill_page(PAGE, folder, make_tables(rows))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_arguments(
        "suite", __doc__, argv, data="the predictions (.npz)", has_tables=True
    )
    if not arguments.tables:
        measure_all(arguments)
    report(arguments.output)
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
