"""Ultra-fine entity typing: ``python -m experiments.ufet [--predictions DIR]``.

Scores the predictions that ``experiments.ufet.train`` saved, before and after alternating
normalization and its peers, and draws the score over the paper's grid.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from joblib import Parallel, delayed

from experiments._output import write_csv
from experiments.dialogre.__main__ import prediction_files
from experiments.dialogre.figures import draw_gains
from experiments.dialogre.grid import GridPoint
from experiments.dialogre.methods import BASE, METHODS
from experiments.dialogre.tables import column, gain
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

RESULTS = Path(__file__).parent / "results"
SHIFTS = (0.0, 1.0, 2.0, 3.0)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments of the study."""
    parser = argparse.ArgumentParser(prog="python -m experiments.ufet", description=__doc__)
    parser.add_argument(
        "--predictions",
        type=Path,
        default=RESULTS / "predictions",
        help="folder with the files of experiments.ufet.train",
    )
    parser.add_argument("--output", type=Path, help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="one seed and a small grid")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of 2 GB each")
    arguments = parser.parse_args(argv)
    if arguments.output is None:
        arguments.output = RESULTS / "quick" if arguments.quick else RESULTS
    arguments.output.mkdir(parents=True, exist_ok=True)
    return arguments


class Part(NamedTuple):
    """What is found in one file of predictions."""

    points: list[GridPoint]
    rows: list[Measured]
    shifted: list[Shifted]
    n_types: int


def measure_file(path: Path, quick: bool) -> Part:
    """The grid, all methods, and the lowered logits, for the predictions in one file."""
    data = read_predictions(path)
    points = scan_validation(data, quick=quick)
    shifted = [measure_shifted(data, shift) for shift in (SHIFTS[:2] if quick else SHIFTS)]
    rows = measure(data, points, quick=quick)
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
    arguments = parse_arguments(argv)
    paths = prediction_files(arguments.predictions, quick=arguments.quick)
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(measure_file)(path, arguments.quick) for path in paths
    )
    print(write_results(parts, arguments.output, quick=arguments.quick))


if __name__ == "__main__":
    main()
