"""``python -m experiments.reference_choice --data DIR [--quick] [--output DIR]``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.reference_choice import study
from experiments.reference_choice.figures import draw_sizes
from experiments.reference_choice.results import Results, collect
from experiments.reference_choice.tables import make_tables
from experiments.suite.files import suite_paths

PAGE = Path(__file__).parent / "results" / "README.md"
HOLDS = "predictions, one .npz file per classifier"
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


def main(argv: Sequence[str] | None = None) -> None:
    about = "How to choose A0."
    arguments = parse_arguments("reference_choice", about, argv, data=HOLDS, has_tables=True)
    design = QUICK if arguments.quick else FULL
    if not arguments.tables:
        write(measure(arguments, design), arguments.output)
    if not arguments.measure:
        report(design, arguments.output)
    print(f"results in {arguments.output}")


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
    """Figure and page from the numbers."""
    results = Results(*(read_records(folder / f"{name}.csv") for name in Results._fields))
    draw_sizes(results.gains, design, folder)
    fill_page(PAGE, folder, make_tables(results, design))


if __name__ == "__main__":
    main()
