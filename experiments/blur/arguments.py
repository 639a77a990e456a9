"""Arguments of the studies that read data from a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from experiments._output import parse_arguments

__all__ = ["parse_with_data"]


def parse_with_data(
    name: str, description: str, argv: Sequence[str] | None, *, holds: str
) -> argparse.Namespace:
    """Arguments of a study, and ``--data``, the folder that holds what it reads.

    Parameters
    ----------
    name, description, argv
        As for :func:`experiments._output.parse_arguments`.
    holds : str
        What the folder holds.

    Returns
    -------
    argparse.Namespace
        With a `data` that exists.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--data", type=Path)
    known, rest = parser.parse_known_args(argv)
    help_text = f"{description} Required: --data DIR, the folder that holds {holds}."
    arguments = parse_arguments(name, help_text, rest)
    if known.data is None or not known.data.is_dir():
        raise SystemExit(f"Pass the folder that holds {holds}: --data DIR (it is {known.data}).")
    arguments.data = known.data
    return arguments
