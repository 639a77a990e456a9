"""``python -m experiments.label_shift [--data DIR] [--part PART] [--quick | --tables]``.

Without ``--data`` only the simulated classifiers are measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from experiments._output import fill_page, parse_arguments, read_part, write_records
from experiments.label_shift.asking import Asked, ask_all
from experiments.label_shift.study import Design, Found, resampled, simulate
from experiments.label_shift.tables import make_tables
from experiments.suite.files import read_classifier, suite_paths

PAGE = Path(__file__).parent / "results" / "README.md"
QUICK = Design(
    n_new=(200,),
    n_classes=(3,),
    n_val=400,
    n_sources=1,
    n_sets=2,
    sizes=(200,),
    n_asked_sources=1,
    n_pool=400,
    n_asked=2,
)
PARTS: dict[str, type[Found] | type[Asked]] = {
    "simulated": Found,
    "resampled": Found,
    "asked": Asked,
}
NEEDS_DATA = "resampled"
MOST_CLASSES = 200
DATA = {"type": Path, "metavar": "DIR", "help": "folder with predictions, a .npz file each"}


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(
        "label_shift",
        "Another class balance: what a user's word gains, and what contradicts it.",
        argv,
        options={
            "--data": DATA,
            "--part": {"choices": PARTS, "help": "measure only this part"},
        },
        has_tables=True,
    )
    folder = arguments.output
    if not arguments.tables:
        design = replace(QUICK if arguments.quick else Design(), seed=arguments.seed)
        measures = {
            "simulated": simulate(design),
            "resampled": collect(arguments.data, design, quick=arguments.quick),
            "asked": ask_all(design),
        }
        chosen = list(PARTS) if arguments.part is None else [arguments.part]
        if arguments.data is None:
            chosen = [name for name in chosen if name != NEEDS_DATA]
        for name in chosen:
            start = time.perf_counter()
            write_records(folder / f"{name}.csv", [one._asdict() for one in measures[name]])
            print(f"{name}: {(time.perf_counter() - start) / 60:.1f} minutes", flush=True)
    read = {
        name: [kind(**record) for record in read_part(folder, PAGE, name)]
        for name, kind in PARTS.items()
    }
    fill_page(PAGE, folder, make_tables(**read))
    print(f"results in {folder}")


def collect(folder: Path, design: Design, *, quick: bool) -> Iterator[Found]:
    """Measure every classifier with one class per row and not too many classes."""
    for path in suite_paths(folder, quick=quick):
        classifier = read_classifier(path)
        if classifier.multilabel or classifier.val_proba.shape[1] > MOST_CLASSES:
            continue
        print(path.stem, flush=True)
        yield from resampled(classifier, design)


if __name__ == "__main__":
    main()
