"""What a file holds and how: as the caller says or by its name; files that are compressed; `-`."""

from __future__ import annotations

import atexit
import gzip
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from altnorm._base.errors import InputError, shown
from altnorm._base.files import check_input, file_error

SUFFIXES = {
    ".npz": "npz",
    ".npy": "npy",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
FORMATS = (*dict.fromkeys(SUFFIXES.values()), "lm-eval")
"""What `--format` takes."""
TEXT = ("csv", "tsv", "jsonl", "lm-eval")  # may be compressed; values have no types of their own
ARRAYS = ("npz", "npy")
STANDARD = "-"
"""The name that stands for the standard input or output."""


@dataclass(frozen=True)
class Layout:
    """Which columns of a table (or arrays of an .npz file) hold what.

    Parameters
    ----------
    label : str, optional
        Column of the labels: class names or indices. In an .npz file "labels" by default. With
        dots, a field of a nested column: "doc.answer".
    prefix : str, default=""
        Starts the name of each class column; the rest is the class name. Without a prefix and
        without known classes, every floating-point column stands for a class.
    label_prefix : str, optional
        Starts the name of each 0/1 label column of a multi-label table.
    other : sequence of str
        Floating-point columns that are not classes.
    logits : bool, default=False
        Whether the file holds logits. An .npz file says so itself, by the name of the array.
    format : str, optional
        Format of the file, where its name does not say it: "npz", "npy", "csv", "tsv", "jsonl",
        "lm-eval" (a sample log of lm-evaluation-harness), "parquet" or "arrow".
    gaps : bool, default=False
        Whether rows may lack a label; theirs is then None.
    group : str, optional
        Column of a table that says which rows belong together.
    classes : sequence of str
        Names of the classes, in the order in which to have them; where they are known.
    labels : path, optional
        File with the labels: a table of ids and labels.
    id : str, optional
        Column of the ids, here and in the file of labels; else rows are counted from 0.
    """

    label: str | None = None
    prefix: str = ""
    label_prefix: str | None = None
    other: Sequence[str] = ()
    logits: bool = False
    format: str | None = None
    gaps: bool = False
    group: str | None = None
    classes: Sequence[str] = ()
    labels: Path | None = None
    id: str | None = None


PLAIN = Layout()
"""Nobody has said anything about the file."""


class Source(NamedTuple):
    """A file to read."""

    path: Path
    format: str

    @property
    def is_table(self) -> bool:
        """Whether it holds columns."""
        return self.format not in ARRAYS

    @property
    def is_text(self) -> bool:
        """Whether the types of its columns are read from how values look."""
        return self.format in TEXT


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Format that a name tells; .gz may follow that of text."""
    name = Path(path).name.lower()
    inner = name.removesuffix(".gz")
    format = SUFFIXES.get(Path(inner).suffix)
    return format if inner == name or format in TEXT else None


def find_source(path: str | os.PathLike[str], layout: Layout) -> Source:
    """Say where to read from: a file that exists, or a copy of the standard input for `-`."""
    format = layout.format
    if format is not None and format not in FORMATS:
        raise file_error(f"--format must be one of {', '.join(FORMATS)}", f"it is '{format}'")
    is_standard = os.fspath(path) == STANDARD
    if is_standard and format is None:
        raise file_error(
            "Standard input has no name that would tell its format",
            remedy="Pass --format, for example --format csv.",
        )
    source = _copy_stdin() if is_standard else check_input(path)
    format = format or format_of(source)
    if format is None:
        raise suffix_error(source, "Rename it, or say with --format what it holds.")
    return Source(source, format)


def suffix_error(
    path: Path, remedy: str, what: str = "A file of predictions", without: Collection[str] = ()
) -> InputError:
    """Return the error for a name that tells no format, or none of those that will do."""
    suffixes = [suffix for suffix, format in SUFFIXES.items() if format not in without]
    rule = f"{what} must end in one of {', '.join(suffixes)}"
    return file_error(rule, f"'{path.name}' does not", remedy, value=path.name)


def unreadable(source: Source, error: Exception) -> InputError:
    """Return the error for a file whose bytes are not what its format asks for."""
    if not source.path.stat().st_size:
        return file_error(f"'{source.path}' is empty.")
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(". ")
    return file_error(
        f"'{source.path}' cannot be read as {source.format}, it may be cut off or damaged: "
        f"{shown(reason, 300)}."
    )


@cache
def _copy_stdin() -> Path:
    """Copy the standard input to a file, once: tables are read twice, and some from their end."""
    handle, name = tempfile.mkstemp(prefix="altnorm-")
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return Path(name)


def is_compressed(path: Path) -> bool:
    """Whether a file is one of gzip, told by its first bytes."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def open_plain(path: Path) -> IO[bytes]:
    """Open a file to read bytes; a compressed one as what it holds."""
    opened: Any = gzip.open if is_compressed(path) else open
    return opened(path, "rb")
