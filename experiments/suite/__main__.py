"""Run every method on every classifier: ``python -m experiments.suite --data FOLDER``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.suite.files import read_classifier, suite_paths
from experiments.suite.measure import UNTOUCHED, Task, measure
from experiments.suite.methods import ADJUSTER, FEW_LABELS_METHODS, FEW_METHODS, make_methods
from experiments.suite.trends import read_points

PAGE = Path(__file__).parent / "results" / "README.md"
FEW, DRAWS = (100, 300, 1000), 3
ORDERS = 5  # of the rows, beside that of the file
TABLES = ("suite", "labels", "few", "few_labels", "orders")
ORDER_FIELDS = (
    *("classifier", "classes", "labels", "order", "adopted", "reason", "family", "decision"),
    *("promised", "gain", "ci_low", "ci_high", "seconds"),
)
ONLY = {"metavar": "PATTERN", "default": "*", "help": "only these classifiers, such as 'cifar10_*'"}
SKIP_FEW = {"action": "store_true", "help": "all labels in the order of the file only"}


def make_tasks(paths: Sequence[Path], seed: int, *, few: bool) -> dict[str, list[Task]]:
    """What is to be measured, by the table it goes to."""
    tasks: dict[str, list[Task]] = {name: [] for name in TABLES}
    for path in paths:
        data = read_classifier(path, seed=seed)
        table = "labels" if data.multilabel else "suite"
        tasks[table] += [Task(path, name) for name in (UNTOUCHED, *make_methods(data))]
        if few:
            table, names = (
                ("few_labels", FEW_LABELS_METHODS) if data.multilabel else ("few", FEW_METHODS)
            )
            tasks[table] += [
                Task(path, name, n, draw)
                for n in FEW
                if n < len(data.val_y)
                for draw in range(DRAWS)
                for name in names
            ]
            tasks["orders"] += [Task(path, ADJUSTER, order=k) for k in range(ORDERS + 1)]
    return tasks


def measure_all(arguments: Namespace) -> None:
    """Measure the classifiers of a folder, and write the numbers down."""
    paths = suite_paths(arguments.data, quick=arguments.quick)
    paths = [path for path in paths if fnmatch(path.stem, arguments.only)]
    tasks = make_tasks(paths, arguments.seed, few=not arguments.skip_few)
    # Once each, and the longest first, so that no process is left with one at the end.
    order = sorted(
        {task for some in tasks.values() for task in some},
        key=lambda task: (task.n_labels > 0, -task.path.stat().st_size, task),
    )
    work = (delayed(measure)(task, arguments.seed) for task in order)
    parallel = Parallel(n_jobs=arguments.jobs, return_as="generator", batch_size=1)
    found: dict[Task, list[dict[str, Any]]] = {}
    for task, records in zip(order, parallel(work), strict=True):
        found[task] = records
        print(*task[1:], task.path.stem, f"{records[0]['seconds']:.1f} s", flush=True)
    for table, some in tasks.items():
        if some:
            records = [record for task in some for record in found[task]]
            if table == "orders":  # of both kinds of classifiers, which have other scores
                records = [{name: found[task][0][name] for name in ORDER_FIELDS} for task in some]
            write_records(arguments.output / f"{table}.csv", records)


def report(folder: Path) -> None:
    """Figure and page from the numbers."""
    # Where it is measured there may be nothing to draw with.
    from experiments.suite.figure import draw_gains, draw_trends
    from experiments.suite.tables import make_tables

    paths = {name: folder / f"{name}.csv" for name in TABLES}
    records = {name: read_records(path) for name, path in paths.items() if path.exists()}
    draw_gains(records["suite"], folder)
    draw_trends(read_points(records["suite"]), folder)
    fill_page(PAGE, folder, make_tables(records))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_arguments(
        "suite",
        __doc__,
        argv,
        data="the predictions (.npz)",
        options={"--only": ONLY, "--skip-few": SKIP_FEW},
        has_tables=True,
    )
    if not arguments.tables:
        measure_all(arguments)
    if not arguments.measure:
        report(arguments.output)
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
