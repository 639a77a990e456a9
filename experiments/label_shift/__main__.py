"""``python -m experiments.label_shift --data DIR [--quick] [--output DIR]``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from experiments._output import parse_arguments, write_csv
from experiments.label_shift.figures import draw_gains
from experiments.label_shift.page import write_page
from experiments.label_shift.study import METHODS, Case, Design, Simulated, run, simulate
from experiments.suite.files import read_classifier, suite_paths

QUICK = Design(sizes=(200,), n_repeats=1, n_unshifted=1, worlds=((4, 400, 200),), n_simulated=2)
MOST_CLASSES = 200


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(
        "label_shift", "Adapt to another class balance?", argv, data="predictions (.npz)"
    )
    design = replace(QUICK if arguments.quick else Design(), seed=arguments.seed)
    start = time.perf_counter()
    cases = collect(arguments.data, design, quick=arguments.quick)
    simulated = list(simulate(design))
    seconds = time.perf_counter() - start
    write_tables(cases, simulated, arguments.output)
    page = write_page(cases, simulated, design, seconds=seconds, quick=arguments.quick)
    (arguments.output / "README.md").write_text(page, encoding="utf-8")
    draw_gains(cases, arguments.output)
    print(f"results in {arguments.output}")


def collect(folder: Path, design: Design, *, quick: bool) -> list[Case]:
    """Measure every classifier with one class per row and not too many classes."""
    cases: list[Case] = []
    for path in suite_paths(folder, quick=quick):
        classifier = read_classifier(path)
        if classifier.multilabel or classifier.val_proba.shape[1] > MOST_CLASSES:
            continue
        with warnings.catch_warnings():
            # Bare EM may take long to settle; where it is then is its answer.
            warnings.simplefilter("ignore", ConvergenceWarning)
            cases += run(classifier, design)
        print(f"done: {classifier.name}", flush=True)
    return cases


def write_tables(cases: Sequence[Case], simulated: Sequence[Simulated], folder: Path) -> None:
    """One line for each re-sampled set, and one for each simulated one."""
    names = [name for name in Case._fields if name != "scores"]
    columns = {name: [getattr(case, name) for case in cases] for name in names}
    columns |= {name: [case.scores[name] for case in cases] for name in METHODS}
    write_csv(folder / "cases.csv", columns)
    write_csv(
        folder / "simulated.csv",
        {name: [getattr(one, name) for one in simulated] for name in Simulated._fields},
    )


if __name__ == "__main__":
    main()
