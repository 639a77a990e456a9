"""``python -m experiments.reference_choice [--data DIR] [--quick] [--output DIR]``.

Without ``--data`` only the simulated classifiers are measured.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_part, write_records
from experiments.reference_choice import calibrated, study, thresholds
from experiments.reference_choice.figures import draw_calibrated, draw_sizes
from experiments.reference_choice.results import Results, collect
from experiments.reference_choice.tables import make_tables
from experiments.suite.files import suite_paths

PAGE = Path(__file__).parent / "results" / "README.md"
DATA = {"type": Path, "metavar": "DIR", "help": "folder with predictions, a .npz file each"}
MULTILABEL = ("dialogre", "coco", "ptbxl", "chestxray")
FULL = study.Design(
    sizes=(50, 100, 200, 500, 1000),
    near_sizes=(50, 200, 1000),
    n_draws=5,
    alphas=(0.5, 1.0, 2.0, 4.0, 8.0),
    smoothings=(0.0, 0.1, 1.0),
    max_rows=5000,
    search={},
)
QUICK = FULL._replace(
    sizes=(50, 200),
    near_sizes=(50, 200),
    n_draws=2,
    alphas=(0.5, 1.0, 4.0),
    max_rows=1000,
    search={"alphas": (0.5, 1.0, 4.0), "depths": (1,)},
)
QUICK_CALIBRATED = calibrated.Design(sizes=(10,), n_reference=500, n_test=2000, n_draws=2)


def main(argv: Sequence[str] | None = None) -> None:
    options = {"--data": DATA}
    about = "How to choose A0."
    arguments = parse_arguments("reference_choice", about, argv, options=options, has_tables=True)
    design = QUICK if arguments.quick else FULL
    if not arguments.tables:
        records = [record._asdict() for record in measure_calibrated(arguments)]
        write_records(arguments.output / "calibrated.csv", records)
        if arguments.data is not None:
            write(measure(arguments, design), arguments.output)
            if (supernovae := arguments.data / thresholds.FILE).exists():
                write_records(arguments.output / "thresholds.csv", thresholds.measure(supernovae))
    if not arguments.measure:
        report(design, arguments.output)
    print(f"results in {arguments.output}")


def measure_calibrated(arguments: Namespace) -> list[calibrated.Record]:
    """All simulated worlds, all draws."""
    design = QUICK_CALIBRATED if arguments.quick else calibrated.Design()
    worlds = product(design.sizes, calibrated.SPREADS, range(design.n_draws))
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(calibrated.measure)(*world, design, arguments.seed) for world in worlds
    )
    return list(chain(*parts))


def measure(arguments: Namespace, design: study.Design) -> Results:
    """Measure all single-label classifiers."""
    paths = suite_paths(arguments.data, quick=arguments.quick)
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(study.measure)(path, design, arguments.seed)
        for path in paths
        if not path.stem.startswith(MULTILABEL)
    )
    return collect(parts, design)


def write(results: Results, folder: Path) -> None:
    """Write the numbers down."""
    for name, table in results._asdict().items():
        write_records(folder / f"{name}.csv", table)


def report(design: study.Design, folder: Path) -> None:
    """Figures and page from the numbers."""
    results = Results(*(read_part(folder, PAGE, name) for name in Results._fields))
    simulated = [calibrated.Record(**line) for line in read_part(folder, PAGE, "calibrated")]
    draw_sizes(results.gains, design, folder)
    draw_calibrated(simulated, folder)
    tables = make_tables(results, design) | calibrated.calibrated_tables(simulated)
    fill_page(PAGE, folder, tables)


if __name__ == "__main__":
    main()
