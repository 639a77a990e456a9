"""Columns as text, with commas or tabs in between: PyArrow's reader and writer, and a guard."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from altnorm._base.errors import InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm.io.formats import is_compressed, open_plain

DELIMITERS = {"csv": ",", "tsv": "\t"}
_SEPARATORS = {"commas": ",", "tabs": "\t", "semicolons": ";"}
_BLOCK = 2**23  # bytes that are read at a time, and the longest field that there may be
_LINE_END = r"\r\n?|\n"
_FORMULA = r"^[=+\-@\t\r]"  # what a spreadsheet may take for the start of a formula
# The same after what some spreadsheet separates cells by, whatever the file does.
_INNER_FORMULA = r"([,;\t\r\n])([=+\-@])"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def neutralise_formula(text: str) -> str:
    """Text that a spreadsheet shows and does not run: with a single quote before a formula.

    A formula is what begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return and is not
    a plain number; also behind a comma, a semicolon, a tab or a line break, by which a spreadsheet
    may cut the text into cells.
    """
    is_formula = re.search(_FORMULA, text) and not re.fullmatch(_NUMBER, text)
    inner = re.sub(_INNER_FORMULA, r"\1'\2", text)
    return f"'{inner}" if is_formula else inner


def open_text(
    source: Path,
    delimiter: str,
    numbers: Collection[str],
    text: Collection[str] | None,
    stack: ExitStack,
) -> tuple[Any, Iterator[Any]]:
    """Schema and record batches; columns that are not `numbers` stay the text they are.

    Where columns of `text` are named, all rows are read, and the types of the other columns are
    those that their values look like.
    """
    import pyarrow as pa
    from pyarrow.csv import open_csv, read_csv

    _check_delimiter(source, delimiter)
    file = _input(source, stack)
    if text is not None:
        table = read_csv(file, **_options(delimiter, {name: pa.string() for name in text}))
        return table.schema, _guarded(table.to_batches(), source, delimiter)
    names = header_names(source, delimiter)
    types = {name: pa.float64() if name in numbers else pa.string() for name in names}
    reader = open_csv(file, **_options(delimiter, types))
    return reader.schema, _guarded(reader, source, delimiter)


def _check_delimiter(source: Path, delimiter: str) -> None:
    """Raise if the first line is separated by something else."""
    with open_plain(source) as file:
        header = file.readline(_BLOCK).decode("utf-8-sig", "replace")
    counts = {name: header.count(char) for name, char in _SEPARATORS.items()}
    most = max(counts, key=counts.__getitem__)
    if counts[most] and delimiter not in header:
        expected = next(name for name, char in _SEPARATORS.items() if char == delimiter)
        raise file_error(
            f"The columns of '{source.name}' must be separated by {expected}",
            f"its first line has {most}",
            "Save it with commas as .csv, or with tabs as .tsv.",
        )


def header_names(source: Path, delimiter: str) -> list[str]:
    """Names of the columns."""
    from pyarrow.csv import open_csv

    with ExitStack() as stack, open_csv(_input(source, stack), **_options(delimiter)) as peek:
        return peek.schema.names


def _guarded(batches: Any, source: Path, delimiter: str) -> Iterator[Any]:
    """The batches; warn of text that holds rows, raise at the end if the last quote is open.

    A stray quote at the start of a field makes text of all rows up to the next one, and PyArrow
    does not mind.
    """
    n_rows, n_swallowed, first, last = 0, 0, 0, None
    for batch in batches:
        for row, count in _swallowed_rows(batch, delimiter):
            first = first if n_swallowed else n_rows + row
            n_swallowed += count
        n_rows += batch.num_rows
        if batch.num_rows and batch.num_columns:
            last = batch.column(batch.num_columns - 1)[-1].as_py()
        yield batch
    _check_last_quote(source, last)
    if n_swallowed:
        message = (
            f"{n_swallowed:,} lines of '{source.name}' that look like rows are text within quotes, "
            f"the first of them in row {first}. If they are rows, remove the quote there or write "
            "it twice within quotes."
        )
        warn(InputWarning(message, "quoted_rows"))


def _swallowed_rows(batch: Any, delimiter: str) -> Iterator[tuple[int, int]]:
    """Rows of a batch whose text has lines that look like rows, and how many these are."""
    import pyarrow as pa
    from pyarrow import compute as pc

    n_columns = batch.num_columns
    if n_columns < 2:
        return
    found = []
    for column, values in enumerate(batch.columns):
        if not pa.types.is_string(values.type):
            continue
        has_lines = pc.match_substring_regex(values, "[\r\n]")
        for row in pc.indices_nonzero(has_lines).to_pylist():
            start, *more = (
                line.count(delimiter) for line in re.split(_LINE_END, values[row].as_py())
            )
            # The end of one row, and the start of another: a quote is missing in both.
            is_torn = (start, more[-1]) == (n_columns - 1 - column, column)
            count = more.count(n_columns - 1) + (is_torn and column < n_columns - 1)
            if count:
                found.append((row, count))
    yield from sorted(found)


def _check_last_quote(source: Path, last: Any) -> None:
    """Raise if the last field, whose value is `last`, begins with a quote that nothing ends.

    In any other column PyArrow misses the fields that follow it.
    """
    if not isinstance(last, str | None):
        return
    value = (last or "").encode().replace(b'"', b'""')
    with open_plain(source) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - len(value) - 2))
        end = file.read()
    # A value of nothing but quotes looks the same at its end, but has one more of them.
    if end.endswith(b'"' + value) and not end.endswith(b'""' + value):
        raise file_error(
            "Every quoted field must end",
            f"the last one of '{source.name}' does not, and begins with '{shown(last or '', 40)}'",
            "Remove the quote, or write it twice within quotes; the file may also be cut off.",
            value=last,
        )


def _input(source: Path, stack: ExitStack) -> Any:
    """What PyArrow reads from: a file as such, which is fastest, or what it decompresses to."""
    import pyarrow as pa

    compression = "gzip" if is_compressed(source) else None
    return stack.enter_context(pa.input_stream(os.fspath(source), compression=compression))


def _options(delimiter: str, types: dict[str, Any] | None = None) -> dict[str, Any]:
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

    return {
        "convert_options": ConvertOptions(column_types=types),
        "read_options": ReadOptions(block_size=_BLOCK),
        "parse_options": ParseOptions(delimiter=delimiter, newlines_in_values=True),
    }


def writable(path: Path, stack: ExitStack, *, compressed: bool) -> IO[bytes]:
    """Open a file to write text to; without a time in it where it is compressed."""
    file: Any = stack.enter_context(path.open("wb"))
    if compressed:
        file = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
    return file


def text_writer(
    file: IO[bytes], schema: Any, delimiter: str, stack: ExitStack, *, safe: bool = False
) -> Callable[[Any], None]:
    """Write names and text in quotes, numbers bare, and nested values as JSON.

    Where it is to be `safe` for spreadsheets, formulas are neutralised, in the header too.
    """
    import pyarrow as pa
    from pyarrow.csv import CSVWriter, WriteOptions

    names = [neutralise_formula(name) if safe else name for name in schema.names]
    types = [kind if _is_bare(kind) else pa.string() for kind in schema.types]
    plain = pa.schema(list(zip(names, types, strict=True)))
    options = WriteOptions(delimiter=delimiter)
    writer = stack.enter_context(CSVWriter(file, plain, write_options=options))

    def write(batch: Any) -> None:
        columns = [
            column if _is_bare(column.type) else _as_text(name, column, safe)
            for name, column in zip(schema.names, batch.columns, strict=True)
        ]
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=plain))

    return write


def _is_bare(kind: Any) -> bool:
    """Whether values of a type are written without quotes."""
    import pyarrow as pa

    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    return (is_number and kind != pa.float16()) or pa.types.is_boolean(kind)


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _as_text(name: str, column: Any, safe: bool) -> Any:
    import pyarrow as pa
    from pyarrow import compute as pc

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_nested(column.type):
            column = pa.array(map(_as_json, column.to_pylist()), pa.string())
        text = column.cast(pa.string())
    except pa.ArrowException as error:
        raise file_error(
            "A CSV file holds text",
            f"column '{shown(name)}' ({column.type}) cannot be written as text: "
            f"{str(error).splitlines()[0].rstrip('.')}",
            "Write a .parquet file.",
        ) from error
    if not safe:
        return text
    # As `neutralise_formula` does.
    is_number = pc.match_substring_regex(text, _NUMBER)
    is_formula = pc.and_not(pc.match_substring_regex(text, _FORMULA), is_number)
    inner = pc.replace_substring_regex(text, _INNER_FORMULA, r"\1'\2")
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", inner, ""), inner)
