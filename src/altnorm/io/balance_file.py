"""Read the class balance that a user knows from elsewhere."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.files import check_input
from altnorm.io.columns import listed


def read_balance(path: str | os.PathLike[str], names: Sequence[str]) -> np.ndarray:
    r"""Read one number per class from a CSV file of two columns: class, number.

    Parameters
    ----------
    path : str or path-like
        The file. Its first line is a header unless its second field is a number.
    names : sequence of str
        The classes; each must be there once, in any order.

    Returns
    -------
    ndarray of shape (n_classes,)
        The numbers, in the order of `names`; they need not sum to 1.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from altnorm.io.balance_file import read_balance
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "balance.csv"
    ...     _ = file.write_text("class,share\ncat,0.3\ndog,0.7\n")
    ...     read_balance(file, ["dog", "cat"])
    array([0.7, 0.3])
    """
    source = check_input(path)
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"'{source}' must be a CSV file in UTF-8",
            str(error),
            "Save it as 'CSV UTF-8'.",
            code="labels",
        ) from error
    if lines and (len(lines[0]) != 2 or not _is_number(lines[0][1])):
        lines = lines[1:]
    for line in lines:
        if len(line) != 2 or not _is_number(line[1]):
            raise InputError(
                f"Each line of '{source}' must hold a class and a number, 0 or greater",
                f"one is '{','.join(line)}'",
                "Write for example 'cat,0.3'.",
                code="labels",
            )
    _check_names(source, [line[0] for line in lines], names)
    values = {line[0]: float(line[1]) for line in lines}
    return np.array([values[name] for name in names])


def _check_names(source: Path, found: Sequence[str], names: Sequence[str]) -> None:
    """Raise unless the file names each class once, and nothing else."""
    wrong = {
        "missing": [name for name in names if name not in found],
        "unknown": [name for name in found if name not in names],
        "there twice": [name for name in names if found.count(name) > 1],
    }
    for what, offenders in wrong.items():
        if offenders:
            raise InputError(
                f"'{source}' must name each of the {len(names)} classes once",
                f"{listed(offenders)} {'is' if len(offenders) == 1 else 'are'} {what}",
                "Write a line per class.",
                value=offenders[0],
                code="labels",
            )


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < np.inf
    except ValueError:
        return False
