"""Columns as text, with commas or tabs in between."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from altnorm._base.errors import shown
from altnorm._base.files import file_error
from altnorm.io.formats import is_compressed
from altnorm.io.quotes import QuoteWatch

DELIMITERS = {"csv": ",", "tsv": "\t"}
_BLOCK = 2**23
_FORMULA = r"^[=+\-@\t\r]"  # what a spreadsheet may take for the start of a formula
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def neutralise_formula(text: str) -> str:
    """Text that a spreadsheet shows and does not run: with a single quote before a formula.

    A formula is what begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return and is not
    a plain number.

    Parameters
    ----------
    text : str
        A cell.

    Returns
    -------
    str
        The cell, as it was unless it may be a formula.

    Examples
    --------
    >>> from altnorm.io.text_tables import neutralise_formula
    >>> neutralise_formula("=HYPERLINK(A1)"), neutralise_formula("-1.5"), neutralise_formula("a=b")
    ("'=HYPERLINK(A1)", '-1.5', 'a=b')
    """
    is_formula = re.search(_FORMULA, text) and not re.fullmatch(_NUMBER, text)
    return f"'{text}" if is_formula else text


def open_text(
    source: Path, delimiter: str, numbers: Collection[str], stack: ExitStack
) -> tuple[Any, Iterator[Any]]:
    """Schema and record batches; columns that are not `numbers` stay the text they are."""
    import pyarrow as pa
    from pyarrow import csv

    names = _header(source, delimiter)
    types = {name: pa.float64() if name in numbers else pa.string() for name in names}
    convert = csv.ConvertOptions(column_types=types)
    watch = QuoteWatch(_input(source, stack), source.name, delimiter, len(names))
    reader = csv.open_csv(watch, convert_options=convert, **_options(delimiter))
    return reader.schema, _watched(reader, watch)


def read_text(source: Path, delimiter: str, text: Collection[str]) -> Any:
    """Read all rows; types are those that the values look like, but for the columns of `text`."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(column_types={name: pa.string() for name in text})
    n_columns = len(_header(source, delimiter))
    with ExitStack() as stack:
        watch = QuoteWatch(_input(source, stack), source.name, delimiter, n_columns)
        with _telling(watch):
            table = csv.read_csv(watch, convert_options=convert, **_options(delimiter))
    watch.finish()
    return table


def _header(source: Path, delimiter: str) -> list[str]:
    from pyarrow import csv

    with ExitStack() as stack, csv.open_csv(_input(source, stack), **_options(delimiter)) as peek:
        return peek.schema.names


def _watched(reader: Any, watch: QuoteWatch) -> Iterator[Any]:
    with _telling(watch):
        yield from reader
    watch.finish()


@contextmanager
def _telling(watch: QuoteWatch) -> Iterator[None]:
    """Tell of a field without an end rather than of what PyArrow makes of it."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid:
        if watch.too_long:
            watch.finish()
        raise


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


def text_writer(
    file: IO[bytes], schema: Any, delimiter: str, *, safe: bool = False
) -> Callable[[Any], None]:
    """Write text as it was read, quoted only where it must be; PyArrow's writer quotes all text.

    Where it is to be `safe` for spreadsheets, formulas are neutralised, in the header too.
    """
    import pyarrow as pa

    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise file_error(
            f"A CSV file cannot hold the nested column '{shown(nested[0])}'",
            remedy="Write a .parquet file.",
        )
    header = pa.array(schema.names, pa.large_string())
    header = _quoted(_neutralised(header) if safe else header, delimiter)
    file.write(delimiter.join(header.to_pylist()).encode() + b"\n")

    def write(batch: Any) -> None:
        if batch.num_rows:
            columns = zip(schema.names, batch.columns, strict=True)
            fields = [_as_text(name, column) for name, column in columns]
            file.write(_lines(_cells(schema, fields, delimiter, safe), delimiter))

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


def _as_text(name: str, column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(pa.large_string())
    except pa.ArrowException as error:
        raise file_error(
            "A CSV file holds text",
            f"column '{shown(name)}' ({column.type}) cannot be written as text: "
            f"{str(error).splitlines()[0].rstrip('.')}",
            "Write a .parquet file.",
        ) from error


def _cells(schema: Any, columns: list[Any], delimiter: str, safe: bool) -> list[Any]:
    """Columns with quotes where they are needed; only numbers and times are sure to need none."""
    import pyarrow as pa

    types = [getattr(field.type, "storage_type", field.type) for field in schema]
    text = [j for j, kind in enumerate(types) if not _is_plain(kind)]
    if not text:
        return columns
    # All at once: a file may have more columns than rows.
    joined = pa.concat_arrays([columns[j] for j in text])
    joined = _quoted(_neutralised(joined) if safe else joined, delimiter)
    n_rows = len(columns[0])
    quoted = {j: joined.slice(i * n_rows, n_rows) for i, j in enumerate(text)}
    return [quoted.get(j, column) for j, column in enumerate(columns)]


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_primitive(kind) or pa.types.is_decimal(kind)


def _neutralised(text: Any) -> Any:
    """As `neutralise_formula`, for an array."""
    import pyarrow as pa
    from pyarrow import compute as pc

    quote, nothing = (pa.scalar(s, pa.large_string()) for s in ("'", ""))
    quoted = pc.binary_join_element_wise(quote, text, nothing)
    return pc.if_else(_is_formula(text), quoted, text)


def _is_formula(text: Any) -> Any:
    from pyarrow import compute as pc

    is_number = pc.match_substring_regex(text, _NUMBER)
    return pc.and_not(pc.match_substring_regex(text, _FORMULA), is_number)


def _quoted(text: Any, delimiter: str) -> Any:
    """Text in quotes where a reader or a spreadsheet would take it for something else."""
    import pyarrow as pa
    from pyarrow import compute as pc

    quote, nothing = (pa.scalar(s, pa.large_string()) for s in ('"', ""))
    quoted = pc.binary_join_element_wise(
        quote, pc.replace_substring(text, '"', '""'), quote, nothing
    )
    special = pc.match_substring_regex(text, f'["{re.escape(delimiter)}\r\n]')
    return pc.if_else(pc.or_(special, _is_formula(text)), quoted, text)
