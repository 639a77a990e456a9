"""``python -m experiments.confident_reference [--quick] [--tables] [--output DIR]``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.confident_reference import study
from experiments.confident_reference.tables import make_tables

PAGE = Path(__file__).parent / "results" / "README.md"
QUICK = study.Design(sizes=(10,), n_reference=500, n_test=2000, n_draws=2)


def measure(arguments: Namespace) -> list[study.Record]:
    """All worlds, all draws."""
    design = QUICK if arguments.quick else study.Design()
    worlds = product(design.sizes, study.SPREADS, range(design.n_draws))
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(study.measure)(*world, design, arguments.seed) for world in worlds
    )
    return list(chain(*parts))


def report(folder: Path) -> None:
    """Figure and page from the numbers."""
    from experiments.confident_reference.figures import draw_gains

    records = [study.Record(**line) for line in read_records(folder / "results.csv")]
    draw_gains(records, folder)
    fill_page(PAGE, folder, make_tables(records))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    about = "What a confident reference does to a calibrated classifier."
    arguments = parse_arguments("confident_reference", about, argv, has_tables=True)
    if not arguments.tables:
        records = [record._asdict() for record in measure(arguments)]
        write_records(arguments.output / "results.csv", records)
    if not arguments.measure:
        report(arguments.output)
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
