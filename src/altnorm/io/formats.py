"""What a file holds and how: as the caller says or by its name; files that are compressed; `-`."""

from __future__ import annotations

import atexit
import gzip
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
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
DELIMITERS = {"csv": ",", "tsv": "\t"}
TEXT = (*DELIMITERS, "jsonl", "lm-eval")  # may be compressed; values have no types of their own
ARRAYS = ("npz", "npy")
MODEL_SUFFIX = ".safetensors"
STANDARD = "-"
"""The name that stands for the standard input or output."""


@dataclass(frozen=True)
class Layout:
    """Which columns of a table (or arrays of an .npz file) hold what.

    Without a `prefix` and without known `classes`, every floating-point column stands for a class.
    """

    label: str | None = None  # labels: class names or indices; "doc.answer": a field of a column
    prefix: str = ""  # starts the name of each class column; the rest is the class name
    label_prefix: str | None = None  # starts the name of each 0/1 column of several labels
    other: Sequence[str] = ()  # floating-point columns that are not classes
    logits: bool = False  # an .npz file says so itself, by the name of the array
    format: str | None = None  # one of `FORMATS`, where the file's name does not say it
    gaps: bool = False  # whether rows may lack a label; theirs is then None
    group: str | None = None  # says which rows belong together
    classes: Sequence[str] = ()  # in the order in which to have them; where they are known
    labels: Path | None = None  # another file with the labels: a table of ids and labels
    id: str | None = None  # ids, here and in the file of labels; else rows are counted from 0


PLAIN = Layout()
"""Nobody has said anything about the file."""


class Source(NamedTuple):
    """A file to read, and one of `FORMATS`."""

    path: Path
    format: str


class TableSource(NamedTuple):
    """An open file of columns, and what it says itself about these."""

    schema: Any
    batches: Iterator[Any]  # the rows, in order; to be read once
    classes: Sequence[str] = ()
    label: str | None = None
    id: str | None = None
    ordered: bool = True  # whether all rows give the classes in this order: an index is a class
    n_rows: int | None = None
    format: str = ""
    fixed_dictionaries: bool = False  # whether all batches share those of their columns


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Format that a name tells; .gz may follow that of text."""
    name = Path(path).name.lower()
    inner = name.removesuffix(".gz")
    format = SUFFIXES.get(Path(inner).suffix)
    return format if inner == name or format in TEXT else None


def find_source(path: str | os.PathLike[str], layout: Layout) -> Source:
    """Say where to read from: a file that exists, or a copy of the standard input for `-`."""
    if layout.format not in (None, *FORMATS):
        raise file_error(
            f"--format must be one of {', '.join(FORMATS)}", f"it is '{layout.format}'"
        )
    is_standard = os.fspath(path) == STANDARD
    source = Path(path) if is_standard else check_input(path)
    format = layout.format or format_of(source)
    if format is None and source.suffix == MODEL_SUFFIX:
        raise file_error(
            "Predictions are needed",
            f"'{source.name}' is a model",
            "A model comes first, as in `altnorm apply MODEL IN`; `altnorm check` takes it as "
            "--model.",
        )
    if format is None:
        rename = "" if is_standard else ", or rename it"
        raise _suffix_error(source, f"Pass --format, for example --format csv{rename}.")
    return Source(_copy_stdin() if is_standard else source, format)


def find_target(
    path: str | os.PathLike[str], *, standard: str | None = None, spreadsheet_safe: bool = False
) -> str:
    """Say in which format to write: that of the name, or `standard` for the standard output."""
    target = Path(path)
    format = standard if os.fspath(path) == STANDARD else format_of(path)
    if format is None:
        raise _suffix_error(target, "Choose another name.")
    if target.name.lower().removesuffix(".gz").endswith(".json"):
        offender = f"'{target.name}' would not be one JSON value"
        raise file_error("Rows are written as JSON lines", offender, "Name it .jsonl.")
    if spreadsheet_safe and format not in DELIMITERS:
        raise file_error(
            "Only CSV and TSV files need to be made safe for spreadsheets",
            f"'{target.name}' is neither",
            "Leave --spreadsheet-safe out, or name a .csv file.",
        )
    return format


def _suffix_error(path: Path, remedy: str) -> InputError:
    rule = f"The name of the file must end in one of {', '.join(SUFFIXES)}"
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
