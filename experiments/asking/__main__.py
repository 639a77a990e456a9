"""``python -m experiments.asking --data FOLDER [--quick] [--output DIR]``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.asking.figures import draw_labels
from experiments.asking.study import Summary, measure
from experiments.asking.tables import make_tables
from experiments.suite.files import suite_paths

PAGE = Path(__file__).parent / "results" / "README.md"
RUNS, QUICK_RUNS = 500, 20


def measure_all(arguments: Namespace) -> None:
    """Measure all classifiers in a folder, and write the numbers down."""
    paths = suite_paths(arguments.data, quick=arguments.quick)
    n_runs = QUICK_RUNS if arguments.quick else RUNS
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(measure)(path, n_runs, arguments.seed) for path in paths
    )
    found = [one._asdict() for part in parts for one in part]
    write_records(arguments.output / "asking.csv", found)


def report(folder: Path) -> None:
    """Figure and page from the numbers."""
    found = [Summary(**record) for record in read_records(folder / "asking.csv")]
    draw_labels(found, folder)
    fill_page(PAGE, folder, make_tables(found))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_arguments(
        "asking", __doc__, argv, data="the predictions (.npz)", has_tables=True
    )
    if not arguments.tables:
        measure_all(arguments)
    if not arguments.measure:
        report(arguments.output)
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
