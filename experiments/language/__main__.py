"""``python -m experiments.language --data FOLDER [--quick] [--tables] [--output DIR]``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.language.figures import draw_budgets
from experiments.language.study import (
    language_paths,
    measure,
    measure_without_labels,
    single_label_paths,
)
from experiments.language.tables import make_tables

DRAWS, QUICK_DRAWS = 5, 3
PAGE = Path(__file__).parent / "results" / "README.md"


def measure_all(arguments: Namespace) -> None:
    """Measure all sets, and without labels all classifiers, and write the numbers down."""
    folder, quick = arguments.data, arguments.quick
    n_draws = QUICK_DRAWS if quick else DRAWS
    parallel = Parallel(n_jobs=arguments.jobs)
    others = single_label_paths(folder, quick=quick)
    without = parallel(delayed(measure_without_labels)(path) for path in others)
    paths = language_paths(folder, quick=quick)
    parts = parallel(delayed(measure)(path, n_draws, arguments.seed) for path in paths)
    for name, found in (("no_labels", without), ("language", parts)):
        write_records(arguments.output / f"{name}.csv", [one for part in found for one in part])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all sets in a folder."""
    arguments = parse_arguments(
        "language", __doc__, argv, data="the predictions (.npz)", has_tables=True
    )
    if not arguments.tables:
        measure_all(arguments)
    if not arguments.measure:
        names = ("language", "no_labels")
        records, unlabelled = (read_records(arguments.output / f"{name}.csv") for name in names)
        draw_budgets(records, arguments.output)
        fill_page(PAGE, arguments.output, make_tables(records, unlabelled))
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
