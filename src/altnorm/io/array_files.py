"""NumPy files <-> predictions: a matrix, class names and labels.

Only what is wanted is read, after the sizes that the arrays announce are known to fit together.
"""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.files import file_error, replacing
from altnorm._base.frames import check_same_names
from altnorm._base.labels import check_indicator
from altnorm.estimator.topk import from_topk
from altnorm.io.formats import Layout, Source, unreadable
from altnorm.io.labels import check_rows, listed, name_taken, names_of, read_labels
from altnorm.io.predictions import Predictions

_NAMES = ("proba", "logits", "log_proba", "indices", "classes", "labels")  # of what is read
_MOST_CLASSES = 10**6
_MOST_VALUES = 2**30  # 8 GB in double precision


def read_arrays(source: Source, layout: Layout, wanted: Any) -> Predictions:
    """Read predictions from an .npz or .npy file; `wanted` are the classes, if they are known."""
    try:
        with ExitStack() as stack:
            return _read(_ArrayFile(source, layout, stack), layout, wanted)
    except InputError:
        raise
    # Damaged bytes surface as whatever zipfile, zlib, ast or NumPy happens to stumble over.
    except Exception as error:
        raise unreadable(source, error) from error


def _read(file: _ArrayFile, layout: Layout, wanted: Any) -> Predictions:
    is_truncated = "indices" in file.names
    kinds = ("proba", "log_proba") if is_truncated else ("proba", "logits")
    key = file.find(*(("logits",) if layout.logits and not is_truncated else kinds))
    shape = _full_shape(file, key, is_truncated=is_truncated)
    label = file.find(layout.label) if layout.label else "labels"
    if label in file.names and file.header(label)[0] not in (shape, shape[:1]):
        raise file_error(
            f"`{label}` must have one entry per row, shape {shape[:1]}, or be a 0/1 matrix of "
            f"shape {shape}",
            f"it has shape {file.header(label)[0]}",
            "Save the label of every row.",
        )
    classes = _read_classes(file, shape[1], wanted)
    order = list(range(shape[1]))
    if wanted is not None:
        places = {name: j for j, name in enumerate(names_of(classes))}
        check_same_names(names_of(wanted), list(places))
        order = [places[name] for name in names_of(wanted)]
        classes = np.asarray(wanted)[np.argsort(order)]  # of the type that the model knows
    values = file.read(key)
    # Single, double or half precision: what the library computes with, or widens.
    values = values if values.dtype.itemsize <= 8 else values.astype(np.float64)
    if is_truncated:
        values, key = from_topk(file.read("indices"), values, shape[1], input=key), "proba"
    labels = file.read(label) if label in file.names else None
    if labels is not None and labels.ndim == 2:
        labels = check_indicator(labels, shape).astype(np.uint8)[:, order]
    elif labels is not None:
        labels = read_labels(labels.tolist(), classes, layout)
    values = values if order == sorted(order) else values[:, order]
    return Predictions(values, classes[order], labels, key)


def _full_shape(file: _ArrayFile, key: str, *, is_truncated: bool) -> tuple[int, int]:
    """Rows and classes, before anything is made that is larger than the file by far."""
    shape, dtype = file.header(key)
    if len(shape) != 2 or dtype.kind != "f":
        raise file_error(
            f"`{key}` in '{file.path}' must be a floating-point array with one row per example and "
            "one column per class",
            f"it is {dtype} of shape {shape}",
            "Save the probability of every class, [1 - p, p] with two classes, as astype(float).",
        )
    rows, n_classes = shape
    if is_truncated:
        name = file.find("classes", "n_classes")
        n_classes = file.header(name)[0][0] if name == "classes" else int(file.read(name))
    check_rows(rows)
    if n_classes > _MOST_CLASSES or (rows * n_classes > _MOST_VALUES and is_truncated):
        raise file_error(
            f"Predictions may have at most {_MOST_CLASSES:,} classes and, where `indices` leave "
            f"some out, {_MOST_VALUES:,} numbers",
            f"'{file.path}' has {rows:,} rows and says that there are {n_classes:,} classes",
            "Correct `n_classes`, or split the file.",
            value=n_classes,
        )
    return rows, n_classes


def _read_classes(file: _ArrayFile, n: int, wanted: Any) -> np.ndarray:
    """What the columns stand for; those without names are matched to classes 0 .. n-1 only."""
    if "classes" not in file.names:
        numbers = np.arange(n)
        if wanted is not None and sorted(names_of(wanted)) != sorted(names_of(numbers)):
            raise file_error(
                "Columns are matched by class name, never by position alone",
                f"'{file.path}' has {n} columns without names, the model knows "
                f"{listed(names_of(wanted))}",
                "Write an .npz file with an array `classes`, one name per column in the file's "
                "order.",
            )
        return numbers
    shape, _ = file.header("classes")
    classes = file.read("classes") if shape == (n,) else np.empty(0)
    n_names = len(set(names_of(classes)))
    if n_names != n:
        raise file_error(
            f"`classes` in '{file.path}' must name each of the {n} columns once",
            f"it has shape {shape}" if shape != (n,) else f"it has {n_names} different names",
            "Save the class names in the order of the columns.",
        )
    return classes


class _ArrayFile:
    """An open .npz file, or an .npy file: one array, whose name is what it should hold."""

    def __init__(self, source: Source, layout: Layout, stack: ExitStack) -> None:
        self.path = source.path
        self.names = ["logits" if layout.logits else "proba"]
        self._stored: dict[str, zipfile.ZipInfo] = {}
        if source.format == "npz":
            self._zip = stack.enter_context(zipfile.ZipFile(source.path))
            stored = self._zip.infolist()
            self._stored = {info.filename.removesuffix(".npy"): info for info in stored}
            self.names = list(self._stored)

    def find(self, *choices: str) -> str:
        """The first of some names under which there is an array."""
        for name in choices:
            if name in self.names:
                return name
        raise file_error(
            f"'{self.path}' must hold {' or '.join(f'`{name}`' for name in choices)}",
            f"it holds {listed(self.names)}",
            "Save it under that name: np.savez(path, proba=..., labels=..., classes=...).",
            value=listed(self.names),
        )

    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of an array, checked against the size that the file has."""
        with self._open(name) as (file, size):
            major, _ = np.lib.format.read_magic(file)
            read = getattr(np.lib.format, f"read_array_header_{min(major, 2)}_0")
            shape, _, dtype = read(file)
            needed = file.tell() + math.prod(shape) * dtype.itemsize
        if dtype.hasobject:
            raise file_error(
                "Arrays must hold numbers or text, and pickled objects are never loaded",
                f"`{name}` in '{self.path}' holds such objects",
                "Save a plain type, for example labels=np.asarray(labels, str).",
            )
        # Fewer would be rows that nobody reads.
        if min(shape, default=0) < 0 or needed != size:
            raise ValueError(f"{needed:,} bytes are announced and {size:,} are there")
        return shape, dtype

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
        opened: Any = self.path.open("rb") if info is None else self._zip.open(info)
        with opened as file:
            yield file, self.path.stat().st_size if info is None else info.file_size


def write_arrays(
    predictions: Predictions, path: Path, added: Mapping[str, np.ndarray], *, force: bool
) -> None:
    """Write an .npz file, or an .npy file, which has no place for anything but probabilities."""
    taken = [name for name in added if name in _NAMES]
    if taken:
        raise name_taken(taken[0])
    with replacing(path, force=force) as temporary, temporary.open("wb") as file:
        if path.suffix.lower() == ".npy":
            np.save(file, predictions.proba, allow_pickle=False)
            return
        arrays = {predictions.input: predictions.proba, "classes": predictions.classes}
        if predictions.labels is not None:
            arrays["labels"] = predictions.labels
        arrays |= added
        # Objects become text, so that there is nothing to pickle: older NumPy would take
        # `allow_pickle` for an array.
        plain = {k: np.array(names_of(v)) if v.dtype == object else v for k, v in arrays.items()}
        np.savez_compressed(file, **plain)  # type: ignore[arg-type]
