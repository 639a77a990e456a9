"""Columns as text, with commas or tabs in between."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from altnorm._base.files import file_error
from altnorm.io.formats import is_compressed

DELIMITERS = {"csv": ",", "tsv": "\t"}
_BLOCK = 2**23
_FORMULA = r"^[=+\-@\t]"  # what a spreadsheet may take for the start of a formula
_NUMBER = r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$"


def open_text(source: Path, delimiter: str, numbers: Collection[str], stack: ExitStack) -> Any:
    """Open a reader of record batches; columns that are not `numbers` stay the text they are."""
    import pyarrow as pa
    from pyarrow import csv

    options = _options(delimiter)
    with ExitStack() as peeking, csv.open_csv(_input(source, peeking), **options) as peek:
        names = peek.schema.names
    types = {name: pa.float64() if name in numbers else pa.string() for name in names}
    convert = csv.ConvertOptions(column_types=types)
    return csv.open_csv(_input(source, stack), convert_options=convert, **options)


def read_text(source: Path, delimiter: str, text: Collection[str]) -> Any:
    """Read all rows; types are those that the values look like, but for the columns of `text`."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(column_types={name: pa.string() for name in text})
    with ExitStack() as stack:
        file = _input(source, stack)
        return csv.read_csv(file, convert_options=convert, **_options(delimiter))


def _input(source: Path, stack: ExitStack) -> Any:
    """What PyArrow reads from: a file as such, which is fastest, or what it decompresses to."""
    import pyarrow as pa

    if not is_compressed(source):
        return stack.enter_context(pa.OSFile(os.fspath(source)))
    return stack.enter_context(pa.input_stream(os.fspath(source), compression="gzip"))


def _options(delimiter: str) -> dict[str, Any]:
    from pyarrow import csv

    return {
        "read_options": csv.ReadOptions(block_size=_BLOCK),
        "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
    }


def writable(path: Path, stack: ExitStack, *, compressed: bool) -> IO[bytes]:
    """Open a file to write text to; without a time in it where it is compressed."""
    file: Any = stack.enter_context(path.open("wb"))
    if compressed:
        file = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
    return file


def text_writer(file: IO[bytes], schema: Any, delimiter: str) -> Callable[[Any], None]:
    """Write text as it was read, quoted only where it must be; PyArrow's writer quotes all text."""
    import pyarrow as pa

    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise file_error(
            f"A CSV file cannot hold the nested column '{nested[0]}'",
            remedy="Write a .parquet file.",
        )
    names = [pa.array([name], pa.large_string()) for name in schema.names]
    file.write(_lines([_quoted(name, delimiter) for name in names], delimiter))

    def write(batch: Any) -> None:
        if batch.num_rows:
            columns = zip(schema.names, batch.columns, strict=True)
            fields = [_fields(name, column, delimiter) for name, column in columns]
            file.write(_lines(fields, delimiter))

    return write


def _lines(columns: list[Any], delimiter: str) -> Any:
    """Lines for equally long arrays of text, as one buffer."""
    import pyarrow as pa
    from pyarrow import compute as pc

    # Typed scalars: large strings, so that a long batch does not overflow 32-bit offsets.
    text = pa.large_string()
    between, newline, nothing = (pa.scalar(s, text) for s in (delimiter, "\n", ""))
    lines = pc.binary_join_element_wise(
        *columns, between, null_handling="replace", null_replacement=""
    )
    lines = pc.binary_join_element_wise(lines, nothing, newline)
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    return lines.buffers()[2]


def _fields(name: str, column: Any, delimiter: str) -> Any:
    """A column as text; only that of numbers and times is sure to need no quotes."""
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        text = column.cast(pa.large_string())
    except pa.ArrowException as error:
        raise file_error(
            "A CSV file holds text",
            f"column '{name}' ({column.type}) cannot be written as text: "
            f"{str(error).splitlines()[0].rstrip('.')}",
            "Write a .parquet file.",
        ) from error
    plain = pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type)
    return text if plain else _quoted(text, delimiter)


def _quoted(text: Any, delimiter: str) -> Any:
    """Text in quotes where a reader or a spreadsheet would take it for something else."""
    import pyarrow as pa
    from pyarrow import compute as pc

    quote, nothing = (pa.scalar(s, pa.large_string()) for s in ('"', ""))
    quoted = pc.binary_join_element_wise(
        quote, pc.replace_substring(text, '"', '""'), quote, nothing
    )
    formula = pc.and_not(
        pc.match_substring_regex(text, _FORMULA), pc.match_substring_regex(text, _NUMBER)
    )
    special = pc.match_substring_regex(text, f'["{re.escape(delimiter)}\r\n]')
    return pc.if_else(pc.or_(special, formula), quoted, text)
