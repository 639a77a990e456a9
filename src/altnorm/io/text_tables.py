"""Columns as text, with commas or tabs in between: PyArrow's reader and writer, and a guard."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc, csv

from altnorm._base.errors import InputError, InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm.io.formats import DELIMITERS, Source, TableSource, is_compressed, open_plain
from altnorm.io.labels import not_numbers

_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons"}
_BLOCK = 2**23  # bytes that are read at a time, and the longest field that there may be
# What a spreadsheet may take for the start of a formula, in a cell or where it may cut the text
# into cells, whatever separates those of the file.
_FORMULA = re.compile(r"^[=+\-@\t\r]")
_INNER_FORMULA = re.compile(r"([,;\t\r\n]\"*)([=+\-@])")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def neutralise_formula(text: str) -> str:
    """Text that a spreadsheet shows and does not run: with a single quote before a formula.

    A formula is what begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return and is not
    a plain number; also behind a comma, a semicolon, a tab or a line break, and double quotes.
    """
    is_formula = _FORMULA.search(text) and not _NUMBER.fullmatch(text)
    inner = _INNER_FORMULA.sub(r"\1'\2", text)
    return f"'{inner}" if is_formula else inner


def open_text(
    source: Source, numbers: Collection[str], text: Collection[str] | None, stack: ExitStack
) -> TableSource:
    """Open a file to read it; columns that are not `numbers` stay the text they are.

    Where columns of `text` are named, all rows are read, and the types of the other columns are
    those that their values look like.
    """
    delimiter = DELIMITERS[source.format]
    with open_plain(source.path) as file:
        header = file.readline(_BLOCK).decode("utf-8-sig", "replace")
    most = max(_SEPARATORS, key=header.count)
    if most in header and delimiter not in header:
        raise file_error(
            f"The columns of '{source.path.name}' must be separated by {_SEPARATORS[delimiter]}",
            f"its first line has {_SEPARATORS[most]}",
            "Save it with commas as .csv, or with tabs as .tsv.",
        )
    if text is not None:
        table = _open(csv.read_csv, source, stack, column_types=dict.fromkeys(text, pa.string()))
        return TableSource(table.schema, _guarded(table.to_batches(), source.path, delimiter))
    types = dict.fromkeys(_header_names(source), pa.string())
    types |= dict.fromkeys(types.keys() & set(numbers), pa.float64())
    reader = _open(csv.open_csv, source, stack, column_types=types)
    return TableSource(reader.schema, _guarded(reader, source.path, delimiter))


def _header_names(source: Source) -> list[str]:
    with ExitStack() as stack, _open(csv.open_csv, source, stack) as peek:
        names: list[str] = peek.schema.names
        return names


def _open(read: Callable[..., Any], source: Source, stack: ExitStack, **convert: Any) -> Any:
    # A file as such, which is fastest, or what it decompresses to.
    compression = "gzip" if is_compressed(source.path) else None
    file = stack.enter_context(pa.input_stream(os.fspath(source.path), compression=compression))
    return read(
        file,
        csv.ReadOptions(block_size=_BLOCK),
        csv.ParseOptions(delimiter=DELIMITERS[source.format], newlines_in_values=True),
        csv.ConvertOptions(**convert),
    )


def wrong_number(source: Source, error: Exception) -> InputError | None:
    """The error for text where numbers must be, if it is this that PyArrow has found."""
    wrong = re.search(r"column #(\d+): .*CSV conversion error to double", str(error))
    if wrong is None:
        return None
    name = _header_names(source)[int(wrong[1])]
    as_text: dict[str, Any] = {"column_types": {name: pa.string()}, "include_columns": [name]}
    try:  # PyArrow names no row where it reads with several threads
        with ExitStack() as stack:
            return not_numbers(name, _open(csv.read_csv, source, stack, **as_text)[name])
    except pa.ArrowException:  # further on the file is damaged
        return None


def _guarded(batches: Any, source: Path, delimiter: str) -> Iterator[Any]:
    """The batches; warn of text that holds rows, raise at the end if the last quote is open.

    A stray quote at the start of a field makes text of all rows up to the next one, and PyArrow
    does not mind.
    """
    n_rows, n_swallowed, first, last = 0, 0, 0, None
    for batch in batches:
        swallowed = _swallowed_lines(batch, delimiter)
        if swallowed.any() and not n_swallowed:
            first = n_rows + int(np.flatnonzero(swallowed)[0])
        n_swallowed += int(swallowed.sum())
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


def _swallowed_lines(batch: Any, delimiter: str) -> np.ndarray:
    """How often lines break in each row's text, where they do so as often as rows would."""
    swallowed = np.zeros(batch.num_rows, dtype=int)
    # From a column of one row to the same column of a later one, each row has as many delimiters
    # as the header; in any other column the later row would be too long or too short.
    per_row = batch.num_columns - 1
    texts = [column for column in batch.columns if pa.types.is_string(column.type)]
    for column in texts if per_row else ():
        text = column.fill_null("")
        n_lines = np.asarray(pc.count_substring_regex(text, r"\r\n?|\n"))
        n_delimiters = np.asarray(pc.count_substring(text, delimiter))
        swallowed += np.where(n_delimiters == n_lines * per_row, n_lines, 0)
    return swallowed


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


def text_writer(
    file: Any, schema: Any, delimiter: str, stack: ExitStack, *, safe: bool
) -> Callable[[Any], None]:
    """Write names and text in quotes, numbers bare, and nested values as JSON.

    Where it is to be `safe` for spreadsheets, formulas are neutralised, in the header too.
    """
    names = [neutralise_formula(name) if safe else name for name in schema.names]
    types = [kind if _is_bare(kind) else pa.string() for kind in schema.types]
    plain = pa.schema(list(zip(names, types, strict=True)))
    options = csv.WriteOptions(delimiter=delimiter)
    writer = stack.enter_context(csv.CSVWriter(file, plain, write_options=options))

    def write(batch: Any) -> None:
        columns = [
            column if _is_bare(column.type) else _as_text(name, column, safe)
            for name, column in zip(schema.names, batch.columns, strict=True)
        ]
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=plain))

    return write


def _is_bare(kind: Any) -> bool:
    """Whether values of a type are written without quotes."""
    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    return (is_number and kind != pa.float16()) or pa.types.is_boolean(kind)


def _as_text(name: str, column: Any, safe: bool) -> Any:
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    try:
        if pa.types.is_nested(column.type):
            column = _mapped(column, lambda v: json.dumps(v, ensure_ascii=False, default=str))
        text = column.cast(pa.string())
    except pa.ArrowException as error:
        raise file_error(
            "A CSV file holds text",
            f"column '{shown(name)}' ({column.type}) cannot be written as text: "
            f"{str(error).splitlines()[0].rstrip('.')}",
            "Write a .parquet file.",
        ) from error
    return _mapped(text, neutralise_formula) if safe else text


def _mapped(column: Any, change: Callable[[Any], str]) -> Any:
    """A column of what is made of each value that is there."""
    texts = (None if value is None else change(value) for value in column.to_pylist())
    return pa.array(texts, pa.string())
