"""Relations in dialogues: ``python -m experiments.dialogre [--predictions FILE]``.

Scores the predictions that ``experiments.dialogre.train`` saved, before and after alternating
normalization and its peers.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from experiments._multilabel.arguments import Source, parse_with_predictions, prediction_sources
from experiments._multilabel.figures import draw_gains
from experiments._multilabel.grid import count_doubt
from experiments._multilabel.methods import BASE, METHODS
from experiments._multilabel.tables import gain
from experiments._output import fill_page, read_records, write_csv, write_records
from experiments.dialogre.data import N_RELATIONS
from experiments.dialogre.evaluation import read_predictions
from experiments.dialogre.study import Measured, measure
from experiments.dialogre.tables import PAPER, SCORES, make_tables

PAGE = Path(__file__).parent / "results" / "README.md"
SECOND_LOOK = {"type": Path, "metavar": "FILE", "help": "predictions (.npz) of another classifier"}


def measure_seed(source: Source, quick: bool) -> list[Measured]:
    """All methods on the predictions of one classifier."""
    return measure(read_predictions(*source), quick=quick)


def doubts_in(source: Source) -> Iterator[dict[str, Any]]:
    """How many entries are in doubt."""
    data = read_predictions(*source)
    for split, part in (("validation", data.val), ("test", data.test)):
        for found in count_doubt(part.proba, N_RELATIONS):
            yield {"classifier": data.name, "split": split} | found


def write_rows(rows: Sequence[Measured], path: Path) -> None:
    """Measurements as CSV; a score that no row has is left out."""
    columns = {name: [getattr(row, name) for row in rows] for name in Measured._fields}
    if np.isnan(columns["conversational"]).all():
        del columns["conversational"]
    write_csv(path, columns)


def read_rows(path: Path) -> list[Measured]:
    """What `write_rows` wrote; nothing if there is no such file."""
    records = read_records(path) if path.exists() else []
    unknown = dict.fromkeys(("val_macro", "conversational"), np.nan)
    return [Measured(**unknown | record) for record in records]


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
    for name, found in (("results", parts[:n_seeds]), ("second_look", parts[n_seeds:])):
        if found:
            write_rows([row for part in found for row in part], arguments.output / f"{name}.csv")


def report(folder: Path) -> None:
    """Figure and page from the numbers."""
    rows, second = (read_rows(folder / f"{name}.csv") for name in ("results", "second_look"))
    gains = {
        title: {name: gain(rows, name, field).values for name in METHODS if name != BASE}
        for field, title in SCORES.items()
    }
    draw_gains(gains, PAPER.gains("micro-F1", "macro-F1"), folder, "gains")
    fill_page(PAGE, folder, make_tables(rows, second, read_records(folder / "doubt.csv")))


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
