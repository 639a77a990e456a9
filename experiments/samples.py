"""Tell whether the committed pages are still what the code gives.

``python -m experiments.samples [--predictions DIR] [--datasets DIR]`` measures a few lines of every
study anew, most in seconds, and says which pages are out of date. The tests do the same for the
studies whose data lie in the repository, except for lines that take a minute; of those and of the
other studies they know only that the rule of evidence, which the lines of the evidence study fix,
has not changed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from experiments._output import read_records
from experiments.reproduce import WHERE, existing

__all__ = ["OUT_OF_DATE", "SAMPLES", "Folders", "Sample", "differences", "is_marked"]

ROOT = Path(__file__).parent
OUT_OF_DATE = "**Out of date.**"  # what a page says that was made by other code, and why
SMALL_FILE = "llm_mmlu16_llama13b.npz"
PAIRS = "CAN, cross-fitted"  # a line of both studies of several labels per row
TOLERANCE = 1e-3  # CSV files hold five digits; libraries differ in the last bits
TIMES = ("seconds",)  # fields that differ from run to run


class Folders(NamedTuple):
    """Where data lie that are not part of the repository."""

    predictions: Path | None = None
    datasets: Path | None = None


class Sample(NamedTuple):
    """Some lines of a study's table, and how to measure them anew."""

    study: str
    table: str  # name of the CSV file
    measure: Callable[[Folders], Iterable[Mapping[str, Any]]]
    needs: str | None = None  # "predictions" or "datasets"
    package: str | None = None  # what it imports that the core and its tests do not have
    slow: bool = False  # a minute: left to this command, not for the tests

    @property
    def folder(self) -> Path:
        """The study's results."""
        return ROOT / self.study / "results"


def is_marked(sample: Sample) -> bool:
    """Whether the page itself says that it is out of date."""
    return OUT_OF_DATE in (sample.folder / "README.md").read_text(encoding="utf-8")


def differences(sample: Sample, folders: Folders) -> list[str]:
    """Measure the lines anew; what has no equal among the committed lines is told."""
    committed = read_records(sample.folder / f"{sample.table}.csv")
    found = []
    for line in sample.measure(folders):
        wanted = {name: value for name, value in line.items() if name not in TIMES}
        if not any(_equal(wanted, record) for record in committed):
            found.append(", ".join(f"{name} {value}" for name, value in wanted.items()))
    return found


def _equal(line: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    return all(name in record and _same(value, record[name]) for name, value in line.items())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return str(a) == str(b)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _evidence(world: str, n_rows: int) -> Callable[[Folders], Iterable[Mapping[str, Any]]]:
    def measure(folders: Folders) -> Iterable[Mapping[str, Any]]:
        from experiments.evidence import plan, study

        cases = [case for case in plan.CASES if case.key == (world, n_rows, "accuracy")]
        return study.run("worlds", cases, 1, n_jobs=1)

    return measure


def _promise(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.evidence.promise import simulated

    return [simulated.measure(task, 0) for task in simulated.TASKS[:2]]


def _simulation(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.simulation.draws import Design
    from experiments.simulation.study import simulate, table

    columns = table(simulate(Design(sizes=(3,), random_state=0)))
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _geometry(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.simulation.geometry import __main__ as geometry, study

    rates = study.larger_rates((3,), 20, geometry.DEPTH, 0)
    names = ("m", "measured", "predicted")
    return [
        dict(zip(names, line, strict=True))
        for line in zip(rates.m.tolist(), rates.measured, rates.predicted, strict=True)
    ]


def _calibrated(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.reference_choice import calibrated

    return [record._asdict() for record in calibrated.measure(10, 2.0, 0, calibrated.Design(), 0)]


def _benchmark(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.benchmark import __main__ as benchmark, methods
    from experiments.benchmark.classifiers import train
    from experiments.benchmark.sources import SOURCES, read_thirds

    digits = next(source for source in SOURCES if source.package == "scikit-learn")
    classifier = train(read_thirds(digits, Path()), "naive_bayes")
    about = benchmark.describe(digits, "naive_bayes", classifier)
    chosen = [m for m in methods.METHODS if m.name in ("temperature", "matrix", "Adjuster")]
    return [about | record for m in chosen for record in benchmark.measure(classifier, m)]


def _scikit_learn(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.benchmark.scikit_learn.__main__ import measure

    return [*measure("iris", "naive Bayes", 0), *measure("wine", "decision tree", 0)]


def _last_layer(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.last_layer import study

    return [record._asdict() for record in study.run(0, study.Design())]


def _label_shift(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.label_shift import study

    return [one._asdict() for one in islice(study.simulate(study.Design()), 3)]


def _label_shift_asked(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.label_shift import asking, study

    return [one._asdict() for one in islice(asking.ask_all(study.Design()), 3)]


def _dialogre(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments._multilabel.methods import fit_thresholds
    from experiments.dialogre import evaluation, study

    data = evaluation.read_predictions(_predictions("dialogre"), "dialogre_seed0")
    fitted = fit_thresholds(data.val.proba, data.val.labels)
    return [study.score(data, one)._asdict() for one in fitted]


def _dialogre_search(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments._multilabel.methods import fit_cross_fitted
    from experiments.dialogre import evaluation, study

    data = evaluation.read_predictions(_predictions("dialogre"), "dialogre_seed0")
    options = {"scoring": study.f1_with_tuned_t2}
    fitted = fit_cross_fitted(PAIRS, "pairs", data.val.proba, data.val.labels, options)
    return [study.score(data, one)._asdict() for one in fitted]


def _ufet(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments._multilabel.methods import fit_thresholds
    from experiments.ufet import evaluation, study

    data = evaluation.read_predictions(_predictions("ufet"), "ufet_seed0")
    fitted = fit_thresholds(data.val_proba, data.val_labels)
    return [study.score(data, one)._asdict() for one in fitted]


def _ufet_search(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments._multilabel.methods import fit_cross_fitted
    from experiments.ufet import evaluation, study

    data = evaluation.read_predictions(_predictions("ufet"), "ufet_seed0")
    labels, options = data.val_labels, study.CV_OPTIONS
    fitted = fit_cross_fitted(PAIRS, "pairs", data.val_proba, labels, options)
    return [study.score(data, one)._asdict() for one in fitted]


def _predictions(study: str) -> Path:
    return ROOT / study / "results" / "predictions.npz"


def _suite(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.suite.__main__ import make_tasks
    from experiments.suite.measure import measure

    tasks = make_tasks([_file(folders)], 0, few=False)["suite"]
    return [line for task in tasks for line in measure(task, 0)]


def _asking(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.asking import __main__ as asking, study

    return [one._asdict() for one in study.measure(_file(folders), asking.RUNS, 0)]


def _language(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.language.study import measure

    return measure(_file(folders), 1, 0, budgets=())


def _reference_choice(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.reference_choice import __main__ as choice, study

    data = study.read_limited(_file(folders), choice.FULL.max_rows, 0)
    return [study.describe(data, choice.FULL)]


def _thresholds(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.reference_choice import thresholds

    return thresholds.measure((folders.predictions or Path()) / thresholds.FILE)


def _blur(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.blur import study

    path = study.blur_path(folders.predictions, 32)
    return [{"sigma": 32} | study.measure_doubt(path)._asdict()]


def _blur_published(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.blur import published, study

    path = study.blur_path(folders.predictions, 32)
    alpha, depth = study.PAPER_SETTINGS[-1]
    return [
        published.measure_setting(path, 32, published.NAIVE, 1.0, 1),
        published.measure_setting(path, 32, published.OWN, alpha, depth),
    ]


def _blur_search(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.blur import __main__ as blur, study

    few = study.Grid((1.0,), (), 1, blur.FULL.search)
    lines = study.measure_split(study.blur_path(folders.predictions, 32), 32, 0, 0, few)
    return [line for line in lines if line["method"] != study.BEST]


def _corruption(folders: Folders) -> Iterable[Mapping[str, Any]]:
    from experiments.blur.corruption import __main__ as corruption, study

    design = corruption.FULL._replace(rates={"typos": ()})  # clean text alone
    return study.measure(folders.datasets, "banking77", study.MODELS[1], design, 0)


def _file(folders: Folders) -> Path:
    return Path(folders.predictions or ".") / SMALL_FILE


SAMPLES = (
    Sample("evidence", "worlds", _evidence("confused pairs", 200)),
    Sample("evidence", "worlds", _evidence("bias 2", 200)),
    Sample("evidence/promise", "promise", _promise, package="mapie", slow=True),
    Sample("simulation", "results", _simulation),
    Sample("simulation", "rates", _geometry),
    Sample("reference_choice", "calibrated", _calibrated),
    Sample("benchmark", "results", _benchmark),
    Sample("benchmark", "scikit_learn", _scikit_learn),
    Sample("last_layer", "results", _last_layer, package="torch"),
    Sample("label_shift", "simulated", _label_shift),
    Sample("label_shift", "asked", _label_shift_asked),
    Sample("dialogre", "results", _dialogre),
    Sample("dialogre", "results", _dialogre_search, slow=True),
    Sample("ufet", "results", _ufet),
    Sample("ufet", "results", _ufet_search, slow=True),
    Sample("suite", "suite", _suite, "predictions", package="probmetrics"),
    Sample("asking", "asking", _asking, "predictions"),
    Sample("language", "language", _language, "predictions"),
    Sample("reference_choice", "classifiers", _reference_choice, "predictions"),
    Sample("reference_choice", "thresholds", _thresholds, "predictions"),
    Sample("blur", "doubt", _blur, "predictions"),
    Sample("blur", "published", _blur_published, "predictions"),
    Sample("blur", "gains", _blur_search, "predictions"),
    Sample("blur", "corruption", _corruption, "datasets"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Say which pages are out of date; 1 if one of them does not say so itself."""
    parser = argparse.ArgumentParser(prog="python -m experiments.samples", description=__doc__)
    for name in Folders._fields:
        parser.add_argument(f"--{name}", type=Path, metavar="DIR")
    parser.add_argument("studies", nargs="*", help="studies to look at; all without")
    arguments = parser.parse_args(argv)
    folders = Folders(*(existing(name, getattr(arguments, name)) for name in Folders._fields))
    silent = 0
    for sample in SAMPLES:
        if arguments.studies and sample.study not in arguments.studies:
            continue
        state = _state(sample, folders)
        silent += state.startswith("OUT OF DATE") and not is_marked(sample)
        print(f"{sample.study}/{sample.table}: {state}", flush=True)
    return int(silent > 0)


def _state(sample: Sample, folders: Folders) -> str:
    if sample.needs and getattr(folders, sample.needs) is None:
        return f"not looked at: give the folder with --{sample.needs} ({WHERE} says how to get it)"
    if sample.package and find_spec(sample.package) is None:
        return f"not looked at: it needs {sample.package}, which is not installed"
    found = differences(sample, folders)
    mark = " (and the page says so)" if is_marked(sample) else ""
    if not found:
        return "as committed, but the page says that others are not" if mark else "up to date"
    return f"OUT OF DATE{mark}: {len(found)} of the sampled lines, now: {found[0]}"


if __name__ == "__main__":
    sys.exit(main())
