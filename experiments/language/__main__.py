"""``python -m experiments.language --data FOLDER [--quick] [--tables] [--output DIR]``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.language.figures import draw_budgets
from experiments.language.study import language_paths, measure
from experiments.language.tables import make_tables

DRAWS, QUICK_DRAWS = 10, 3
PAGE = Path(__file__).parent / "results" / "README.md"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all sets in a folder."""
    arguments = parse_arguments(
        "language", __doc__, argv, data="the predictions (.npz)", has_tables=True
    )
    table = arguments.output / "language.csv"
    if not arguments.tables:
        paths = language_paths(arguments.data, quick=arguments.quick)
        n_draws = QUICK_DRAWS if arguments.quick else DRAWS
        parts = Parallel(n_jobs=arguments.jobs)(
            delayed(measure)(path, n_draws, arguments.seed) for path in paths
        )
        write_records(table, [record for part in parts for record in part])
    if not arguments.measure:
        records = read_records(table)
        draw_budgets(records, arguments.output)
        fill_page(PAGE, arguments.output, make_tables(records))
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
