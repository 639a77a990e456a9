"""Columns as text, with commas or tabs in between."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from altnorm._base.errors import InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm.io.formats import is_compressed, open_plain

DELIMITERS = {"csv": ",", "tsv": "\t"}
_SEPARATORS = {"commas": ",", "tabs": "\t", "semicolons": ";"}
_BLOCK = 2**23  # bytes that are read at a time, and the longest field that there may be
_LINE_END = re.compile(r"\r\n?|\n")
_FORMULA = r"^[=+\-@\t\r]"  # what a spreadsheet may take for the start of a formula
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def neutralise_formula(text: str) -> str:
    """Text that a spreadsheet shows and does not run: with a single quote before a formula.

    A formula is what begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return and is not
    a plain number.
    """
    is_formula = re.search(_FORMULA, text) and not re.fullmatch(_NUMBER, text)
    return f"'{text}" if is_formula else text


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

    names, file = _check_form(source, delimiter), _input(source, stack)
    if text is not None:
        table = read_csv(file, **_options(delimiter, {name: pa.string() for name in text}))
        return table.schema, iter(table.to_batches())
    types = {name: pa.float64() if name in numbers else pa.string() for name in names}
    reader = open_csv(file, **_options(delimiter, types))
    return reader.schema, iter(reader)


def _check_form(source: Path, delimiter: str) -> list[str]:
    """Names of the columns, once these and the quotes are known to be what they should."""
    with open_plain(source) as file:
        header = file.readline(_BLOCK).decode("utf-8-sig", "replace")
    others = {name: header.count(char) for name, char in _SEPARATORS.items()}
    most = max(others, key=others.__getitem__)
    if others[most] and delimiter not in header:
        own = next(name for name, char in _SEPARATORS.items() if char == delimiter)
        raise file_error(
            f"The columns of '{source.name}' must be separated by {own}",
            f"its first line has {most}",
            "Save it with commas as .csv, or with tabs as .tsv.",
        )
    names = header_names(source, delimiter)
    check_quotes(source, delimiter, len(names))
    return names


def header_names(source: Path, delimiter: str) -> list[str]:
    """Names of the columns."""
    from pyarrow.csv import open_csv

    with ExitStack() as stack, open_csv(_input(source, stack), **_options(delimiter)) as peek:
        return peek.schema.names


def check_quotes(source: Path, delimiter: str, n_columns: int) -> None:
    """Raise if a quoted field does not end, or not where it should; warn of those with rows.

    A stray quote at the start of a field makes text of all rows up to the next one, and no parser
    minds.
    """
    with open_plain(source) as file:
        if not any(b'"' in block for block in iter(lambda: file.read(_BLOCK), b"")):
            return
    swallowed = []
    for field in _long_fields(source, delimiter):
        _check_end(field, source.name)
        n_rows = field.n_rows(delimiter, n_columns)
        if n_rows:
            swallowed.append((field, n_rows))
    if swallowed:
        (first, last, *_), _ = swallowed[0]
        message = (
            f"{sum(n for _, n in swallowed):,} lines of '{source.name}' that look like rows are "
            f"text within quotes, the first of them in the field from line {first} to line {last}. "
            f"If they are rows, remove the quote in line {first} or write it twice within quotes."
        )
        warn(InputWarning(message, "quoted_rows"))


class _LongField(NamedTuple):
    """A quoted field of several lines, or without an end."""

    first: int  # line
    last: int
    column: int
    text: str
    end: str  # the quote, if there is one
    behind: str  # what stands between it and the next field

    def n_rows(self, delimiter: str, n_columns: int) -> int:
        """How many of its lines look like rows."""
        start, *more = (line.count(delimiter) for line in _LINE_END.split(self.text))
        if n_columns < 2 or not more:
            return 0
        # The rest of one row, and the start of another: a quote is missing in both.
        is_torn = (start, more[-1]) == (n_columns - 1 - self.column, self.column)
        return more.count(n_columns - 1) + (is_torn and self.column < n_columns - 1)


def _check_end(field: _LongField, name: str) -> None:
    if not field.end:
        raise file_error(
            "Every quoted field must end",
            f"the one that begins in line {field.first} of '{name}' does not, so all that follows "
            "would be its text",
            "Remove the quote, or write it twice within quotes; the file may also be cut off.",
            value=field.first,
        )
    if field.behind:
        raise file_error(
            "A quote must end its field",
            f"that in line {field.last} of '{name}' is followed by text, and the field begins in "
            f"line {field.first}, so rows between them would be lost",
            f"A quote may be missing in line {field.first}; write quotes within quotes twice.",
            value=field.first,
        )


def _long_fields(source: Path, delimiter: str) -> Iterator[_LongField]:
    """Quoted fields of several lines, and the one at the end of the file if it has no end."""
    pattern = re.compile(
        rf'(?:"([^"]*(?:""[^"]*)*)("?))?([^{delimiter}\r\n]*)(?:{delimiter}|\r\n?|\n|\Z)'
    )
    for line, record in _records(source, delimiter):
        for column, found in enumerate(pattern.finditer(record)):
            text, end, behind = found.groups()
            if text is not None:
                first, line = line, line + len(_LINE_END.findall(text))
                if line > first or not end:
                    yield _LongField(first, line, column, text, end, behind)


def _records(source: Path, delimiter: str) -> Iterator[tuple[int, str]]:
    """Records of several lines, as they are written, with the line in which each begins."""
    lines: list[str] = []

    def kept(file: Iterable[str]) -> Iterator[str]:
        # An empty line at the end becomes part of a field that has no end.
        for line in chain(file, ["\n"]):
            lines.append(line)
            yield line

    before = csv.field_size_limit(_BLOCK)
    try:
        with io.TextIOWrapper(open_plain(source), "utf-8-sig", "replace", newline="") as file:
            reader = csv.reader(kept(file), delimiter=delimiter)
            for _ in reader:
                if len(lines) > 1:
                    yield reader.line_num - len(lines) + 1, "".join(lines)
                lines.clear()
    except csv.Error:  # a field is longer than any that PyArrow reads
        yield reader.line_num - len(lines) + 1, "".join(lines)
    finally:
        csv.field_size_limit(before)


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
    header = _written(pa.array(schema.names, pa.large_string()), delimiter, safe)
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
    return pc.binary_join_element_wise(lines, nothing, newline).buffers()[2]


def _as_text(name: str, column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
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
    is_plain = [pa.types.is_primitive(kind) or pa.types.is_decimal(kind) for kind in types]
    text = [j for j, plain in enumerate(is_plain) if not plain]
    if not text:
        return columns
    # All at once: a file may have more columns than rows.
    joined = _written(pa.concat_arrays([columns[j] for j in text]), delimiter, safe)
    n_rows = len(columns[0])
    quoted = {j: joined.slice(i * n_rows, n_rows) for i, j in enumerate(text)}
    return [quoted.get(j, column) for j, column in enumerate(columns)]


def _written(text: Any, delimiter: str, safe: bool) -> Any:
    """Text in quotes where a reader or a spreadsheet would take it for something else.

    Where it is to be `safe`, formulas are neutralised as by `neutralise_formula`.
    """
    import pyarrow as pa
    from pyarrow import compute as pc

    single, double, nothing = (pa.scalar(s, pa.large_string()) for s in ("'", '"', ""))
    is_number = pc.match_substring_regex(text, _NUMBER)
    is_formula = pc.and_not(pc.match_substring_regex(text, _FORMULA), is_number)
    if safe:
        text = pc.if_else(is_formula, pc.binary_join_element_wise(single, text, nothing), text)
    doubled = pc.replace_substring(text, '"', '""')
    quoted = pc.binary_join_element_wise(double, doubled, double, nothing)
    special = pc.match_substring_regex(text, f'["{re.escape(delimiter)}\r\n]')
    return pc.if_else(pc.or_(special, is_formula), quoted, text)
