"""NumPy files -> what predictions are made of: a matrix, class names and labels.

Only what is wanted is read, after the sizes that the arrays announce are known to fit together.
"""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from altnorm._base.errors import InputError, shown
from altnorm._base.files import file_error
from altnorm._base.words import plural
from altnorm.io.columns import (
    Parts,
    check_rows,
    check_zero_one,
    listed,
    names_of,
    read_labels,
)
from altnorm.io.formats import Layout, Source
from altnorm.method.topk import from_topk

_MOST_CLASSES = 10**6
_MOST_VALUES = 2**30  # 8 GB in double precision


def read_arrays(source: Source, layout: Layout, wanted: Any) -> Parts:
    """Read predictions from an .npz or .npy file; `wanted` are the classes, if they are known."""
    path = source.path
    with _open_arrays(source) as file:
        name = "" if source.format == "npy" else _matrix_name(file.names, layout, path)
        key = name or ("logits" if layout.logits else "proba")
        shape = _full_shape(file, name, key, path)
        is_truncated, has_classes = "indices" in file.names, "classes" in file.names
        _check_size(shape, path, is_truncated=is_truncated)
        label = _label_name(file, layout, shape, path)
        if has_classes:
            _check_classes(file.header("classes").shape, shape[1:], path)
        elif wanted is not None:
            _check_unnamed(names_of(wanted), shape[1], path)
        values = file.read(name)
        # Single, double or half precision: what the library computes with, or widens.
        values = values if values.dtype.itemsize <= 8 else values.astype(np.float64)
        if is_truncated:
            values, key = from_topk(file.read("indices"), values, shape[1], input=key), "proba"
        classes = file.read("classes") if has_classes else np.arange(shape[1])
        labels = None if label is None else file.read(label)
    _check_classes(len(set(names_of(classes))), classes.size, path)
    if labels is not None and labels.ndim == 2:
        labels = check_zero_one(labels, names_of(classes))
    elif labels is not None:
        labels = read_labels(labels.tolist(), classes, layout)
    return Parts(values, classes, labels, key)


def _matrix_name(names: list[str], layout: Layout, path: Path) -> str:
    """Which array holds the predictions."""
    choices = ["logits"] if layout.logits else ["proba", "logits"]
    if "indices" in names:
        choices = ["proba", "log_proba"]
    found = next((name for name in choices if name in names), None)
    if found is None:
        must = " or ".join(f"`{name}`" for name in choices)
        raise file_error(
            f"'{path}' must hold {must}",
            f"it holds {listed(names)}",
            "Save the predictions under that name: np.savez(path, proba=..., labels=...).",
            value=listed(names),
        )
    return found


def _full_shape(file: _ArrayFile, name: str, key: str, path: Path) -> tuple[int, ...]:
    """Rows and classes; those of truncated scores are not the shape of the array."""
    shape, dtype = file.header(name)
    if len(shape) != 2 or dtype.kind != "f":
        raise file_error(
            f"`{key}` in '{path}' must be a floating-point array with one row per example and "
            "one column per class",
            f"it is {dtype} of shape {shape}",
            "Save the probability of every class, not only of one; with two classes, [1 - p, p]."
            if len(shape) == 1
            else "Convert it, for example with astype(float), if it holds predictions.",
        )
    if "indices" not in file.names:
        return shape
    if "classes" in file.names:
        return (shape[0], *file.header("classes").shape)
    if "n_classes" not in file.names or file.header("n_classes").shape != ():
        raise file_error(
            f"`indices` in '{path}' needs the number of classes",
            "there is neither `classes` nor `n_classes`",
            "Add an array `classes` with their names, or the number `n_classes`.",
        )
    return (shape[0], int(file.read("n_classes")))


def _check_size(shape: tuple[int, ...], source: Path, *, is_truncated: bool) -> None:
    """Raise before anything is made that is larger than the file by orders of magnitude."""
    rows, classes = shape
    check_rows(rows)
    if classes > _MOST_CLASSES or (rows * classes > _MOST_VALUES and is_truncated):
        raise file_error(
            f"Predictions may have at most {_MOST_CLASSES:,} classes and, where `indices` leave "
            f"some out, {_MOST_VALUES:,} numbers",
            f"'{source}' has {plural(rows, 'row')} and says that there are {classes:,} classes",
            "Correct `n_classes`, or split the file.",
            value=classes,
        )


def _label_name(file: _ArrayFile, layout: Layout, shape: tuple[int, ...], path: Path) -> str | None:
    """Which array holds the labels, if there is one; its shape is known to fit."""
    name = layout.label or "labels"
    if name not in file.names:
        if layout.label:
            raise file_error(
                f"'{path}' has no array `{name}`",
                f"it has {listed(file.names)}",
                "Name the array of labels with --label.",
                value=name,
            )
        return None
    found = file.header(name).shape
    if found not in (shape, shape[:1]):
        raise file_error(
            f"`labels` must have one entry per row, shape {shape[:1]}, or be a 0/1 matrix of "
            f"shape {shape}",
            f"it has shape {found}",
            "Save the label of every row.",
            value=found,
        )
    return name


def _check_classes(found: Any, expected: Any, source: Path) -> None:
    """Raise unless `classes` has the shape, or the number of different names, that it should."""
    if found != expected:
        n = expected if isinstance(expected, int) else expected[0]
        what = f"{found} different names" if isinstance(found, int) else f"shape {found}"
        raise file_error(
            f"`classes` in '{source}' must name each of the {n} columns once",
            f"it has {what}",
            "Save the class names in the order of the columns.",
            value=found,
        )


def _check_unnamed(wanted: list[str], n_columns: int, source: Path) -> None:
    """Raise if columns without names would have to be matched to named classes by position."""
    if len(wanted) != n_columns or set(wanted) != set(names_of(np.arange(n_columns))):
        raise file_error(
            "Columns are matched by class name, never by position alone",
            f"'{source}' has {n_columns} columns without names, the model knows {listed(wanted)}",
            "Write an .npz file with an array `classes`, one name per column in the file's order.",
        )


class _Header(NamedTuple):
    """What an array says about itself before its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class _ArrayFile:
    """An open .npz file, or an .npy file, whose one array has the name ""."""

    def __init__(self, source: Source, stack: ExitStack) -> None:
        self._path = source.path
        self._stored: dict[str, zipfile.ZipInfo] = {}
        self.names = [""]
        if source.format == "npz":
            self._zip = stack.enter_context(zipfile.ZipFile(source.path))
            self._stored = {one.filename.removesuffix(".npy"): one for one in self._zip.infolist()}
            self.names = list(self._stored)

    def header(self, name: str) -> _Header:
        """Shape and type of an array, checked against the size that the file has."""
        with self._open(name) as (file, size):
            major, _ = np.lib.format.read_magic(file)
            read = getattr(np.lib.format, f"read_array_header_{min(major, 2)}_0")
            shape, _, dtype = read(file)
            needed = file.tell() + math.prod(shape) * dtype.itemsize
        if dtype.hasobject:
            raise file_error(
                "Arrays must hold numbers or text, and pickled objects are never loaded",
                (f"`{name}` in " if name else "") + f"'{self._path}' holds such objects",
                "Save a plain type, for example labels=np.asarray(labels, str).",
            )
        # Fewer would be rows that nobody reads.
        if min(shape, default=0) < 0 or needed != size:
            raise ValueError(f"{needed:,} bytes are announced and {size:,} are there")
        return _Header(shape, dtype)

    def read(self, name: str) -> np.ndarray:
        """Return an array; numbers in the machine's own byte order."""
        self.header(name)
        with self._open(name) as (file, _):
            array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        if array.dtype.kind == "U":
            # Numbers that are no characters are a stumbling block for Python later.
            points = np.frombuffer(array.tobytes(), dtype=f"{array.dtype.str[0]}u4")
            if points.max(initial=0) > sys.maxunicode:
                raise ValueError("its text holds code points beyond Unicode")
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        info = self._stored.get(name)
        opened: Any = self._path.open("rb") if info is None else self._zip.open(info)
        with opened as file:
            yield file, self._path.stat().st_size if info is None else info.file_size


@contextmanager
def _open_arrays(source: Source) -> Iterator[_ArrayFile]:
    """Open a NumPy file; whatever is wrong with its bytes is told in one sentence."""
    try:
        with ExitStack() as stack:
            yield _ArrayFile(source, stack)
    except InputError:
        raise
    # Damaged bytes surface as whatever zipfile, zlib, ast or NumPy happens to stumble over.
    except Exception as error:
        reason = str(error).strip().splitlines()[0].rstrip(". ") if str(error) else "it is empty"
        raise file_error(
            f"'{source.path}' cannot be read as .{source.format}, it may be cut off or damaged: "
            f"{shown(reason, 300)}."
        ) from error
