"""The command line of the multi-label studies, and the files of predictions that they read."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments._output import parse_arguments

__all__ = ["parse_with_predictions", "prediction_files"]


def parse_with_predictions(
    name: str,
    description: str | None,
    argv: Sequence[str] | None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Namespace:
    """Arguments of a study that scores the predictions its ``train.py`` saved."""
    where = {
        "type": Path,
        "metavar": "DIR",
        "default": Path(__file__).parents[1] / name / "results" / "predictions",
        "help": f"folder with the files of experiments.{name}.train",
    }
    return parse_arguments(
        name, description, argv, options={"--predictions": where, **(options or {})}
    )


def prediction_files(folder: Path, *, quick: bool) -> list[Path]:
    """The files of all seeds; of the first alone in a quick run."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise SystemExit(
            f"There are no .npz files in {folder}. Make them with the study's train.py, or pass "
            "their folder with --predictions."
        )
    return paths[:1] if quick else paths
