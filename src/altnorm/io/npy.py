"""NumPy files -> arrays: only those that are wanted, sizes compared before anything is read."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, NamedTuple

import numpy as np

from altnorm._base.errors import InputError, shown
from altnorm.io.formats import Source


class Header(NamedTuple):
    """What an array says about itself before its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class ArrayFile:
    """An open .npz file, or an .npy file, whose one array has the name "".

    Parameters
    ----------
    source : Source
        The file.
    stack : contextlib.ExitStack
        Closes what is opened.
    """

    def __init__(self, source: Source, stack: ExitStack) -> None:
        self._path = source.path
        self._zip: zipfile.ZipFile | None = None
        if source.format == "npz":
            self._zip = stack.enter_context(zipfile.ZipFile(source.path))
            self.names = [name.removesuffix(".npy") for name in self._zip.namelist()]
        else:
            self.names = [""]

    def header(self, name: str) -> Header:
        """Shape and type of an array, checked against the size that the file has."""
        with self._open(name) as (file, size):
            major, _ = np.lib.format.read_magic(file)
            read = getattr(np.lib.format, f"read_array_header_{min(major, 2)}_0")
            shape, _, dtype = read(file)
            needed = file.tell() + math.prod(shape) * dtype.itemsize
        if dtype.hasobject:
            raise ValueError("pickled objects are never loaded")
        if min(shape, default=0) < 0 or needed > size:
            raise ValueError(f"{needed:,} bytes are announced and {size:,} are there")
        return Header(shape, dtype)

    def read(self, name: str) -> np.ndarray:
        """Return an array; numbers in the machine's own byte order."""
        self.header(name)
        with self._open(name) as (file, _):
            array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        if array.dtype.kind == "U":
            _check_characters(array)
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        if self._zip is None:
            with self._path.open("rb") as file:
                yield file, self._path.stat().st_size
            return
        stored = name if name in self._zip.namelist() else f"{name}.npy"
        info = self._zip.getinfo(stored)
        with self._zip.open(info) as file:
            yield file, info.file_size


def _check_characters(text: np.ndarray) -> None:
    """Raise if text holds numbers that are no characters, on which Python stumbles later."""
    numbers = np.frombuffer(text.tobytes(), dtype=f"{text.dtype.str[0]}u4")
    if numbers.size and numbers.max() > sys.maxunicode:
        raise ValueError("its text holds code points beyond Unicode")


@contextmanager
def open_arrays(source: Source) -> Iterator[ArrayFile]:
    """Open a NumPy file; whatever is wrong with its bytes is told in one sentence.

    Parameters
    ----------
    source : Source
        An .npz or .npy file.

    Yields
    ------
    ArrayFile
        Names, headers and arrays.
    """
    try:
        with ExitStack() as stack:
            yield ArrayFile(source, stack)
    except InputError:
        raise
    # Damaged bytes surface as whatever zipfile, zlib, ast or NumPy happens to stumble over.
    except Exception as error:
        reason = str(error).strip().splitlines()[0].rstrip(". ") if str(error) else "it is empty"
        raise InputError(
            f"'{source.path}' cannot be read as .{source.format}, it may be cut off, damaged or "
            f"hold pickled objects: {shown(reason, 300)}."
        ) from error
