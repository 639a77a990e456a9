"""Ultra-fine entity typing: ``python -m experiments.ufet [--predictions FILE]``.

Scores the predictions that ``experiments.ufet.train`` saved, before and after alternating
normalization and its peers, and draws the score over the paper's grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from joblib import Parallel, delayed

from experiments._multilabel.arguments import Source, parse_with_predictions, prediction_sources
from experiments._multilabel.figures import draw_gains
from experiments._multilabel.grid import GridPoint
from experiments._multilabel.methods import BASE, METHODS
from experiments._multilabel.tables import column, gain
from experiments._output import write_csv
from experiments.ufet.evaluation import read_predictions
from experiments.ufet.figures import draw_tuning, tuning_curves
from experiments.ufet.page import PAPER_GAINS, SCORES, write_page
from experiments.ufet.study import (
    Measured,
    Shifted,
    measure,
    measure_shifted,
    scan_validation,
)

SHIFTS = (0.0, 1.0, 2.0, 3.0)


class Part(NamedTuple):
    """What is found for one seed."""

    points: list[GridPoint]
    rows: list[Measured]
    shifted: list[Shifted]
    n_types: int


def measure_seed(source: Source, quick: bool, seed: int) -> Part:
    """The grid, all methods, and the lowered logits, for the predictions of one seed."""
    data = read_predictions(*source)
    points = scan_validation(data, quick=quick)
    shifted = [measure_shifted(data, shift) for shift in (SHIFTS[:2] if quick else SHIFTS)]
    rows = measure(data, points, quick=quick, seed=seed)
    return Part(points, rows, shifted, data.levels.size)


def write_results(parts: Sequence[Part], folder: Path, *, quick: bool) -> str:
    """Write tables, figures and the page, which is returned."""
    points = [point for part in parts for point in part.points]
    rows = [row for part in parts for row in part.rows]
    shifted = [row for part in parts for row in part.shifted]
    for name, records in (("results", rows), ("shifted", shifted)):
        columns = zip(records[0]._fields, zip(*records, strict=True), strict=True)
        write_csv(folder / f"{name}.csv", dict(columns))
    draw(rows, points, folder)
    page = write_page(rows, points, shifted, n_types=parts[0].n_types, quick=quick)
    (folder / "README.md").write_text(page, encoding="utf-8")
    return page


def draw(rows: Sequence[Measured], points: Sequence[GridPoint], folder: Path) -> None:
    """The two figures, and the curves as CSV."""
    curves = tuning_curves(points)
    flat = [
        (threshold, depth, float(alpha), float(score))
        for (threshold, depth), curve in curves.items()
        for alpha, score in zip(*curve, strict=True)
    ]
    columns = zip(("tau", "depth", "alpha", "val_macro"), zip(*flat, strict=True), strict=True)
    write_csv(folder / "tuning.csv", dict(columns))
    draw_tuning(curves, float(column(rows, BASE, "val_macro").mean()), folder, "tuning")
    gains = {
        title: {name: gain(rows, name, field).values for name in METHODS if name != BASE}
        for field, title in list(SCORES.items())[:2]
    }
    draw_gains(gains, PAPER_GAINS, folder, "gains")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_with_predictions("ufet", __doc__, argv)
    sources = prediction_sources(arguments.predictions, quick=arguments.quick)
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(measure_seed)(source, arguments.quick, arguments.seed) for source in sources
    )
    print(write_results(parts, arguments.output, quick=arguments.quick))


if __name__ == "__main__":
    main()
