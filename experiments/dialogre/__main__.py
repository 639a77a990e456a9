"""Relations in dialogues: ``python -m experiments.dialogre [--predictions FILE]``.

Scores the predictions that ``experiments.dialogre.train`` saved, before and after alternating
normalization and its peers.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from experiments._multilabel.arguments import Source, parse_with_predictions, prediction_sources
from experiments._multilabel.figures import draw_gains
from experiments._multilabel.grid import count_doubt
from experiments._multilabel.methods import BASE, METHODS
from experiments._multilabel.tables import gain
from experiments._output import fill_page, read_records, write_records
from experiments.dialogre.data import N_RELATIONS
from experiments.dialogre.evaluation import read_predictions
from experiments.dialogre.study import Measured, measure, measure_authors
from experiments.dialogre.tables import PAPER, SCORES, SETTINGS, make_tables

PAGE = Path(__file__).parent / "results" / "README.md"
SECOND_LOOK = {"type": Path, "metavar": "FILE", "help": "predictions (.npz) of another classifier"}


def measure_seed(source: Source, quick: bool) -> list[Measured]:
    """All methods on the predictions of one classifier."""
    return measure(read_predictions(*source), quick=quick)


def measure_choices(source: Source, seed: int) -> list[Measured]:
    """The authors' choices on the predictions of one classifier."""
    return measure_authors(read_predictions(*source), SETTINGS, seed)


def doubts_in(source: Source) -> Iterator[dict[str, Any]]:
    """How many entries are in doubt."""
    data = read_predictions(*source)
    for split, part in (("validation", data.val), ("test", data.test)):
        for found in count_doubt(part.proba, N_RELATIONS):
            yield {"classifier": data.name, "split": split} | found


def read_rows(path: Path) -> list[Measured]:
    """Measurements; nothing if there is no such file."""
    return [Measured(**record) for record in read_records(path)] if path.exists() else []


def measure_all(arguments: Namespace) -> None:
    """Measure all classifiers, and write the numbers down."""
    sources = prediction_sources(arguments.predictions, quick=arguments.quick)
    n_seeds = len(sources)
    doubts = [row for source in sources for row in doubts_in(source)]
    write_records(arguments.output / "doubt.csv", doubts)
    if arguments.second_look is not None:
        sources.append(Source(arguments.second_look))
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(measure_seed)(source, arguments.quick) for source in sources
    )
    authors = Parallel(n_jobs=arguments.jobs)(
        delayed(measure_choices)(source, arguments.seed) for source in sources[:n_seeds]
    )
    tables = {"results": parts[:n_seeds], "second_look": parts[n_seeds:], "authors": authors}
    for name, measured in tables.items():
        rows = [row._asdict() for part in measured for row in part]
        if rows:
            write_records(arguments.output / f"{name}.csv", rows)


def report(folder: Path) -> None:
    """Figure and page from the numbers."""
    rows, authors, second = (
        read_rows(folder / f"{name}.csv") for name in ("results", "authors", "second_look")
    )
    gains = {
        title: {name: gain(rows, name, field).values for name in METHODS if name != BASE}
        for field, title in SCORES.items()
    }
    draw_gains(gains, PAPER.gains("micro-F1", "macro-F1"), folder, "gains")
    fill_page(PAGE, folder, make_tables(rows, authors, second, read_records(folder / "doubt.csv")))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_with_predictions("dialogre", __doc__, argv, {"--second-look": SECOND_LOOK})
    if not arguments.tables:
        measure_all(arguments)
    if not arguments.measure:
        report(arguments.output)
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
