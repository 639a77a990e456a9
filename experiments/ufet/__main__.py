"""Ultra-fine entity typing: ``python -m experiments.ufet [--predictions FILE]``.

Scores the predictions that ``experiments.ufet.train`` saved, before and after alternating
normalization and its peers, and draws the score over the paper's grid.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from experiments._multilabel.arguments import Source, parse_with_predictions, prediction_sources
from experiments._multilabel.authors import fit_settings
from experiments._multilabel.figures import draw_gains
from experiments._multilabel.grid import GridPoint, count_doubt
from experiments._multilabel.methods import BASE, METHODS
from experiments._multilabel.tables import column, gain
from experiments._output import fill_page, read_records, write_csv, write_records
from experiments.ufet.data import N_TYPES
from experiments.ufet.evaluation import Predictions, read_predictions
from experiments.ufet.figures import Curves, draw_tuning, tuning_curves
from experiments.ufet.study import (
    Measured,
    Shifted,
    measure,
    measure_shifted,
    scan_validation,
    score,
)
from experiments.ufet.tables import PAPER, SCORES, SETTINGS, make_tables

PAGE = Path(__file__).parent / "results" / "README.md"
SHIFTS = (0.0, 1.0, 2.0, 3.0)


class Part(NamedTuple):
    """What is found for one seed."""

    points: list[GridPoint]
    rows: list[Measured]
    authors: list[Measured]
    shifted: list[Shifted]
    doubts: list[dict[str, Any]]


def measure_seed(source: Source, quick: bool) -> Part:
    """The grid, all methods, and the lowered logits, for the predictions of one seed."""
    data = read_predictions(*source)
    points = scan_validation(data, quick=quick)
    shifted = [measure_shifted(data, shift) for shift in (SHIFTS[:2] if quick else SHIFTS)]
    rows = measure(data, points, quick=quick)
    return Part(points, rows, measure_authors(data), shifted, doubts_in(data))


def measure_authors(data: Predictions) -> list[Measured]:
    """The settings that the paper lists, on one seed."""
    prior = float(data.frequencies.mean())
    return [score(data, fitted) for fitted in fit_settings(SETTINGS, data.val_proba, prior)]


def doubts_in(data: Predictions) -> list[dict[str, Any]]:
    """How many entries are in doubt, of all types that there are."""
    parts = (("validation", data.val_proba), ("test", data.test_proba))
    return [
        {"classifier": data.name, "split": split} | found
        for split, proba in parts
        for found in count_doubt(proba, N_TYPES)
    ]


def measure_all(arguments: Namespace) -> None:
    """Measure all seeds, and write the numbers down."""
    folder = arguments.output
    sources = prediction_sources(arguments.predictions, quick=arguments.quick)
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(measure_seed)(source, arguments.quick) for source in sources
    )
    rows = [row._asdict() for part in parts for row in part.rows]
    write_records(folder / "results.csv", rows)
    write_records(folder / "authors.csv", [r._asdict() for part in parts for r in part.authors])
    write_records(folder / "shifted.csv", [r._asdict() for part in parts for r in part.shifted])
    write_records(folder / "doubt.csv", [row for part in parts for row in part.doubts])
    write_curves(tuning_curves([p for part in parts for p in part.points]), folder / "tuning.csv")


def write_curves(curves: Curves, path: Path) -> None:
    """Score against alpha for each tau and depth, as CSV."""
    flat = [
        (threshold, depth, float(alpha), float(score))
        for (threshold, depth), curve in curves.items()
        for alpha, score in zip(*curve, strict=True)
    ]
    names = ("tau", "depth", "alpha", "val_macro")
    write_csv(path, dict(zip(names, zip(*flat, strict=True), strict=True)))


def read_curves(path: Path) -> Curves:
    """What `write_curves` wrote."""
    curves: dict[tuple[float, int], list[tuple[float, float]]] = {}
    for row in read_records(path):
        curves.setdefault((row["tau"], row["depth"]), []).append((row["alpha"], row["val_macro"]))
    return {key: tuple(np.array(curve).T) for key, curve in curves.items()}


def report(folder: Path) -> None:
    """Figures and page from the numbers."""
    rows, authors = (
        [Measured(**record) for record in read_records(folder / f"{name}.csv")]
        for name in ("results", "authors")
    )
    shifted = [Shifted(**record) for record in read_records(folder / "shifted.csv")]
    curves = read_curves(folder / "tuning.csv")
    draw_tuning(curves, float(column(rows, BASE, "val_macro").mean()), folder, "tuning")
    gains = {
        title: {name: gain(rows, name, field).values for name in METHODS if name != BASE}
        for field, title in SCORES.items()
    }
    draw_gains(gains, PAPER.gains("macro-F1", "micro-F1"), folder, "gains")
    doubts = read_records(folder / "doubt.csv")
    fill_page(PAGE, folder, make_tables(rows, authors, curves, shifted, doubts))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_with_predictions("ufet", __doc__, argv)
    if not arguments.tables:
        measure_all(arguments)
    if not arguments.measure:
        report(arguments.output)
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()
