"""``python -m experiments.label_shift --data DIR [--quick | --tables] [--output DIR]``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.label_shift.figures import draw_gains
from experiments.label_shift.study import Case, Design, Simulated, run, simulate
from experiments.label_shift.tables import make_tables
from experiments.suite.files import read_classifier, suite_paths

PAGE = Path(__file__).parent / "results" / "README.md"
QUICK = Design(
    sizes=(200,),
    n_repeats=1,
    n_unshifted=1,
    worlds=((4, 400, 200),),
    n_simulated=2,
    n_unchanged=2,
)
MOST_CLASSES = 200


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(
        "label_shift",
        "Adapt to another class balance?",
        argv,
        data="predictions (.npz)",
        has_tables=True,
    )
    folder = arguments.output
    if not arguments.tables:
        design = replace(QUICK if arguments.quick else Design(), seed=arguments.seed)
        start = time.perf_counter()
        cases = collect(arguments.data, design, quick=arguments.quick)
        write_records(folder / "cases.csv", [case._asdict() for case in cases])
        simulated = [one._asdict() for one in simulate(design)]
        write_records(folder / "simulated.csv", simulated)
        print(f"{(time.perf_counter() - start) / 60:.1f} minutes", flush=True)
    cases = [Case(**record) for record in read_records(folder / "cases.csv")]
    worlds = [Simulated(**record) for record in read_records(folder / "simulated.csv")]
    fill_page(PAGE, folder, make_tables(cases, worlds))
    draw_gains(cases, folder)
    print(f"results in {folder}")


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


if __name__ == "__main__":
    main()
