"""Relations in dialogues: ``python -m experiments.dialogre [--predictions DIR]``.

Scores the predictions that ``experiments.dialogre.train`` saved, before and after alternating
normalization and its peers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from experiments._output import write_csv
from experiments.dialogre.evaluation import read_predictions
from experiments.dialogre.figures import draw_gains
from experiments.dialogre.methods import BASE, METHODS
from experiments.dialogre.page import PAPER_GAINS, write_page
from experiments.dialogre.study import Measured, measure
from experiments.dialogre.tables import gain

RESULTS = Path(__file__).parent / "results"
SCORES = {"micro": "micro-F1", "macro": "macro-F1", "conversational": "F1c"}


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Arguments of the study."""
    parser = argparse.ArgumentParser(prog="python -m experiments.dialogre", description=__doc__)
    parser.add_argument(
        "--predictions",
        type=Path,
        default=RESULTS / "predictions",
        help="folder with the files of experiments.dialogre.train",
    )
    parser.add_argument("--second-look", type=Path, help="an .npz file of another classifier")
    parser.add_argument("--output", type=Path, help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="one seed and a small grid")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 is one a core")
    arguments = parser.parse_args(argv)
    if arguments.output is None:
        arguments.output = RESULTS / "quick" if arguments.quick else RESULTS
    arguments.output.mkdir(parents=True, exist_ok=True)
    return arguments


def measure_file(path: Path, quick: bool) -> list[Measured]:
    """All methods on the predictions in one file."""
    return measure(read_predictions(path), quick=quick)


def prediction_files(folder: Path, *, quick: bool) -> list[Path]:
    """The files of all seeds; of the first alone in a quick run."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise SystemExit(
            f"There are no .npz files in {folder}. Make them with `python -m "
            f"experiments.{folder.parents[1].name}.train`, or pass their folder with --predictions."
        )
    return paths[:1] if quick else paths


def write_rows(rows: Sequence[Measured], path: Path) -> None:
    """Measurements as CSV; a score that no row has is left out."""
    columns = {name: [getattr(row, name) for row in rows] for name in Measured._fields}
    if np.isnan(columns["conversational"]).all():
        del columns["conversational"]
    write_csv(path, columns)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study and write its results."""
    arguments = parse_arguments(argv)
    paths = prediction_files(arguments.predictions, quick=arguments.quick)
    n_seeds = len(paths)
    if arguments.second_look is not None:
        paths.append(arguments.second_look)
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(measure_file)(path, arguments.quick) for path in paths
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
