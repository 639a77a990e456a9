"""The command line of the multi-label studies, and the files of predictions that they read."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments._multilabel.files import seed_names
from experiments._output import parse_arguments

__all__ = ["Source", "parse_with_predictions", "prediction_sources"]


class Source(NamedTuple):
    """Where the predictions of one classifier are: a file, and a name in it if it holds several."""

    path: Path
    seed: str | None = None


def parse_with_predictions(
    name: str,
    description: str | None,
    argv: Sequence[str] | None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Namespace:
    """Arguments of a study that scores the predictions its ``train.py`` saved."""
    where = {
        "type": Path,
        "metavar": "FILE",
        "default": Path(__file__).parents[1] / name / "results" / "predictions.npz",
        "help": f"predictions (.npz) that experiments.{name}.train made",
    }
    options = {"--predictions": where, **(options or {})}
    return parse_arguments(name, description, argv, options=options, has_tables=True)


def prediction_sources(path: Path, *, quick: bool) -> list[Source]:
    """All seeds in a file; the first alone in a quick run."""
    if not path.is_file():
        raise SystemExit(
            f"There is no file {path}. Make it with the study's train.py, or pass another one with "
            "--predictions."
        )
    sources = [Source(path, seed) for seed in seed_names(path)]
    return sources[:1] if quick else sources
