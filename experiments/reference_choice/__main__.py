"""``python -m experiments.reference_choice --data DIR [--quick] [--output DIR]``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import parse_arguments, write_csv
from experiments.reference_choice import study
from experiments.reference_choice.figures import draw_sizes
from experiments.reference_choice.page import write_page
from experiments.reference_choice.results import Results, collect
from experiments.suite.files import suite_paths

HOLDS = "predictions, one .npz file a classifier"
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
    search={"alphas": (0.5, 1.0, 4.0), "depths": (1,), "n_repeats": 1},
)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("reference_choice", "How to choose A0.", argv, data=HOLDS)
    design = QUICK if arguments.quick else FULL
    report(measure(arguments, design), design, arguments.output, quick=arguments.quick)
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


def report(results: Results, design: study.Design, folder: Path, *, quick: bool) -> None:
    """Write tables, the figure and the page."""
    for name, table in (("gains", results.gains), ("classifiers", results.classifiers)):
        write_csv(folder / f"{name}.csv", {key: [row[key] for row in table] for key in table[0]})
    draw_sizes(results.gains, design, folder)
    (folder / "README.md").write_text(write_page(results, design, quick=quick), encoding="utf-8")


if __name__ == "__main__":
    main()
