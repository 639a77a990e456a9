"""Relations in dialogues: ``python -m experiments.dialogre [--predictions FILE]``.

Scores the predictions that ``experiments.dialogre.train`` saved, before and after alternating
normalization and its peers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from experiments._multilabel.arguments import Source, parse_with_predictions, prediction_sources
from experiments._multilabel.figures import draw_gains
from experiments._multilabel.methods import BASE, METHODS
from experiments._multilabel.tables import gain
from experiments._output import write_csv
from experiments.dialogre.evaluation import read_predictions
from experiments.dialogre.page import PAPER_GAINS, SCORES, write_page
from experiments.dialogre.study import Measured, measure

SECOND_LOOK = {"type": Path, "metavar": "FILE", "help": "predictions (.npz) of another classifier"}


def measure_seed(source: Source, quick: bool, seed: int) -> list[Measured]:
    """All methods on the predictions of one classifier."""
    return measure(read_predictions(*source), quick=quick, seed=seed)


def write_rows(rows: Sequence[Measured], path: Path) -> None:
    """Measurements as CSV; a score that no row has is left out."""
    columns = {name: [getattr(row, name) for row in rows] for name in Measured._fields}
    if np.isnan(columns["conversational"]).all():
        del columns["conversational"]
    write_csv(path, columns)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_with_predictions("dialogre", __doc__, argv, {"--second-look": SECOND_LOOK})
    sources = prediction_sources(arguments.predictions, quick=arguments.quick)
    n_seeds = len(sources)
    if arguments.second_look is not None:
        sources.append(Source(arguments.second_look))
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(measure_seed)(source, arguments.quick, arguments.seed) for source in sources
    )
    rows = [row for part in parts[:n_seeds] for row in part]
    second = [row for part in parts[n_seeds:] for row in part]
    write_rows(rows, arguments.output / "results.csv")
    if second:
        write_rows(second, arguments.output / "second_look.csv")
    gains = {
        title: {name: gain(rows, name, field).values for name in METHODS if name != BASE}
        for field, title in SCORES.items()
    }
    draw_gains(gains, PAPER_GAINS, arguments.output, "gains")
    page = write_page(rows, second, quick=arguments.quick)
    (arguments.output / "README.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
