"""Files of columns <-> streams of record batches: text, JSON lines, Parquet, Arrow and Feather.

Only a few batches are held at a time, whatever the size of the file.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from altnorm._base.errors import InputError, InputWarning, shown, warn
from altnorm._base.files import file_error, replacing
from altnorm.io.formats import (
    ARRAYS,
    DELIMITERS,
    PLAIN,
    STANDARD,
    TEXT,
    Layout,
    Source,
    check_spreadsheet,
    find_source,
    format_of,
    suffix_error,
    unreadable,
)
from altnorm.io.json_tables import NO_HINTS, FileHints, jsonl_writer, open_lines
from altnorm.io.text_tables import find_text, header_names, open_text, text_writer

_WRONG_NUMBER = re.compile(
    r"column #(\d+): (?:Row #\d+: )?CSV conversion error to double: invalid value '(.*)'"
)
_BROKEN = (OSError, EOFError, zlib.error, UnicodeError, OverflowError, MemoryError)
_BATCH_VALUES = 2**20  # a batch of 8 MB, enough for the per-batch work not to count
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # what an Arrow stream ends with
_GROUP_BYTES = 2**26  # a row group of the output, held until it is complete


class TableSource(NamedTuple):
    """An open file of columns."""

    schema: Any
    batches: Iterator[Any]  # the rows, in order; to be read once
    hints: FileHints = NO_HINTS
    n_rows: int | None = None  # where the file says so
    format: str = ""
    fixed_dictionaries: bool = False  # whether all batches share those of their columns

    def predicted(self) -> Iterator[Any]:
        """The batches without rows that have no predictions, as where a server failed."""
        for batch in self.batches:
            yield self._predicted(batch)[0]

    def read(self) -> tuple[Any, np.ndarray]:
        """All rows that have predictions, as a PyArrow table, and their numbers in the file."""
        return self._predicted(pa.Table.from_batches(self.batches, self.schema))

    def _predicted(self, rows: Any) -> tuple[Any, np.ndarray]:
        if not self.hints.classes:
            return rows, np.arange(rows.num_rows)
        is_valid = rows.column(self.hints.classes[0]).is_valid()  # all scores are there, or none
        return rows.filter(is_valid), np.flatnonzero(is_valid)


@contextmanager
def open_table(
    path: str | os.PathLike[str],
    layout: Layout = PLAIN,
    *,
    numbers: Collection[str] = (),
    text: Collection[str] | None = None,
) -> Iterator[TableSource]:
    """Open a file of columns to read it batch by batch.

    `numbers` are columns of text to read as numbers, the others stay what they are; also labels
    that scores by label may lack. With columns of `text` a CSV file is read as a whole: they stay
    text, and the types of all others are those that their values look like.
    """
    source = find_source(path, layout)
    _check_format(source.path, source.format)
    with ExitStack() as stack:
        with _reading(source):
            if source.format in DELIMITERS:
                delimiter = DELIMITERS[source.format]
                table = TableSource(*open_text(source.path, delimiter, numbers, text, stack))
            elif source.format in TEXT:
                table = TableSource(*open_lines(source.path, layout, numbers))
            elif source.format == "parquet":
                table = _open_parquet(source.path, stack)
            else:
                table = _open_arrow(source.path, stack)
            _check_names(table.schema.names, source.path)
        yield table._replace(batches=_checked(table, source), format=source.format)


def read_table(
    path: str | os.PathLike[str], layout: Layout = PLAIN, *, text: Collection[str] = ()
) -> Any:
    """Read all rows of a file, as `open_table` tells, as a PyArrow table."""
    with open_table(path, layout, text=text) as opened:
        return opened.read()[0]


@contextmanager
def write_table(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    numbers: Collection[str] = (),
    like: TableSource | None = None,
    force: bool = False,
    spreadsheet_safe: bool = False,
) -> Iterator[Callable[[Any], None]]:
    """Write a file of columns batch by batch; it is there, complete, after the block.

    Gives a function that takes the next batch. `numbers` are columns that hardly repeat, for which
    Parquet should build no dictionary; `like` is the file that rows come from, if they do.
    `spreadsheet_safe` puts a single quote before text that a spreadsheet would run as a formula,
    in CSV and TSV.
    """
    like = TableSource(schema, iter(())) if like is None else like
    is_standard = os.fspath(path) == STANDARD
    as_lines = like.format if like.format in (*DELIMITERS, "jsonl") else "csv"
    format = as_lines if is_standard else format_of(path)
    _check_format(Path(path), format)
    if spreadsheet_safe:
        check_spreadsheet(Path(path), format)
    with ExitStack() as stack:
        if not is_standard:
            target = stack.enter_context(replacing(path, force=force))
        compressed = Path(path).suffix.lower() in (".gz", ".feather")
        if format == "parquet":
            yield _parquet_writer(target, schema, stack, numbers)
        elif format == "arrow":
            decode = not like.fixed_dictionaries
            yield _arrow_writer(target, schema, stack, compressed=compressed, decode=decode)
        else:
            compression = "gzip" if compressed else None
            file: Any = (
                sys.stdout.buffer
                if is_standard
                else stack.enter_context(pa.output_stream(str(target), compression=compression))
            )
            if format in DELIMITERS:
                delimiter = DELIMITERS[format]
                yield text_writer(file, schema, delimiter, stack, safe=spreadsheet_safe)
            else:
                yield jsonl_writer(file, schema)


def _check_format(path: Path, format: str | None) -> None:
    if format is None or format in ARRAYS:
        raise suffix_error(path, "Rename it.", without=ARRAYS)


def _check_names(names: list[str], source: Path) -> None:
    for name, times in Counter(names).most_common(1):
        if times > 1:
            offender = f"'{source.name}' has {times} columns '{shown(name)}'"
            raise file_error("Column names must differ", offender, "Rename them.", value=name)


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Tell what PyArrow says about a bad file in one sentence."""
    try:
        yield
    except (FileNotFoundError, InputError):
        raise
    except (pa.ArrowException, *_BROKEN) as error:
        raise _in_our_words(source, error) from error


def _in_our_words(source: Source, error: Exception) -> InputError:
    """The error for what PyArrow cannot read."""
    wrong = _WRONG_NUMBER.search(str(error))
    if wrong:
        column, value = wrong.groups()
        delimiter = DELIMITERS[source.format]
        name = header_names(source.path, delimiter)[int(column)]
        row = find_text(source.path, delimiter, name, value)
        where = "" if row is None else f" in row {row}"
        offender = f"'{shown(name)}' holds '{shown(value)}'{where}"
        return file_error("Class columns must hold numbers", offender, "Correct it.")
    if source.is_text and "UTF8" in str(error):
        rule = f"'{source.path}' must be text in UTF-8"
        return file_error(rule, "some of its bytes are not", "Save it in that encoding.")
    return unreadable(source, error)


def _checked(table: TableSource, source: Source) -> Iterator[Any]:
    """The batches, each known to be sound, and no fewer rows than the file says.

    A damaged file may fail at any batch. PyArrow trusts what it says about itself: a wrong offset
    reads, or crashes on, memory that is not the file's.
    """
    n_read = 0
    while True:
        with _reading(source):
            batch = next(table.batches, None)
            if batch is None:
                break
            batch.validate(full=True)
        n_read += batch.num_rows
        yield batch
    if table.n_rows not in (None, n_read):
        raise _damaged(source.path, f"has {table.n_rows:,} rows and {n_read:,} can be read")


def _damaged(source: Path, what: str) -> InputError:
    return file_error(f"'{source}' is damaged", f"it says that it {what}", "Write it again.")


def _open_parquet(source: Path, stack: ExitStack) -> TableSource:
    # A buffer a column: without it, whole column chunks of a row group are held at once.
    file = stack.enter_context(parquet.ParquetFile(source, buffer_size=2**16, pre_buffer=False))
    metadata = file.metadata
    batches = file.iter_batches(batch_size=_batch_rows(metadata.num_columns))
    return TableSource(file.schema_arrow, batches, n_rows=metadata.num_rows)


def _open_arrow(source: Path, stack: ExitStack) -> TableSource:
    file = stack.enter_context(pa.OSFile(os.fspath(source)))
    # Both a file and a stream are called .arrow; only the file says so in its first bytes.
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    if is_file:
        reader = stack.enter_context(pa.ipc.open_file(file))
        _check_batches(reader.num_record_batches, source)
        batches: Iterator[Any] = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = stack.enter_context(pa.ipc.open_stream(file))
        batches = _to_the_end(reader, file, source)
    # Parts of a batch share its memory, and are not too large to work on.
    size = _batch_rows(len(reader.schema))
    parts = (
        batch.slice(start, size) for batch in batches for start in range(0, batch.num_rows, size)
    )
    return TableSource(reader.schema, parts, fixed_dictionaries=is_file)


def _batch_rows(n_columns: int) -> int:
    return max(1, _BATCH_VALUES // max(1, n_columns))


def _check_batches(n_batches: int, source: Path) -> None:
    """Raise unless an Arrow file holds as many batches as its last part, the footer, lists."""
    # Bodies of messages are mapped, not read.
    with pa.memory_map(os.fspath(source)) as file:
        file.seek(file.size() - 10)  # the length of the footer, and the name of the format again
        footer = file.size() - 10 - int.from_bytes(file.read(4), "little")
        file.seek(8)
        messages, n_held = pa.ipc.MessageReader.open_stream(file), 0
        try:
            messages.read_next_message()  # the schema
        except (OSError, pa.ArrowException):
            return  # Polars writes it as no message, and so where others begin is not known
        while file.tell() < footer and (message := next(messages, None)) is not None:
            n_held += message.type == "record batch"
    if n_held != n_batches:
        raise _damaged(source, f"has {n_batches:,} batches of rows and holds {n_held:,}")


def _to_the_end(reader: Any, file: Any, source: Path) -> Iterator[Any]:
    """The batches of a stream; warn, or raise, if it does not end where it says that it does."""
    yield from reader
    n_after = file.size() - file.tell()
    if n_after:
        raise _damaged(source, f"ends, and {n_after:,} bytes follow")
    file.seek(max(0, file.size() - len(_END)))
    if file.read() != _END:
        message = (
            f"'{source.name}' does not say where it ends, as a stream should. It may have been cut "
            "off after a batch of rows."
        )
        warn(InputWarning(message, "no_end"))


def _parquet_writer(
    path: Path, schema: Any, stack: ExitStack, numbers: Collection[str]
) -> Callable[[Any], None]:
    repeats = sorted(set(schema.names).difference(numbers))
    writer = stack.enter_context(parquet.ParquetWriter(path, schema, use_dictionary=repeats))
    # Small batches are held back: each would become a row group, and readers are slow on many.
    held: list[Any] = []

    def flush() -> None:
        if held:
            writer.write_table(pa.Table.from_batches(held, schema))
            held.clear()

    def write(batch: Any) -> None:
        held.append(batch)
        if sum(part.nbytes for part in held) >= _GROUP_BYTES:
            flush()

    # After an error the file is thrown away, so what is held need not be written.
    stack.push(lambda kind, error, trace: None if kind else flush())
    return write


def _arrow_writer(
    path: Path, schema: Any, stack: ExitStack, *, compressed: bool, decode: bool
) -> Callable[[Any], None]:
    # A file holds one dictionary per column, so columns whose dictionaries change are decoded.
    fields = (field.with_type(_decoded(field.type)) for field in schema)
    plain = pa.schema(fields, schema.metadata) if decode else schema
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)
    file = stack.enter_context(pa.OSFile(os.fspath(path), "wb"))
    writer = stack.enter_context(pa.ipc.new_file(file, plain, options=options))
    return lambda batch: writer.write_table(pa.Table.from_batches([batch]).cast(plain))


def _decoded(kind: Any) -> Any:
    """The same type without dictionaries, also within lists and records."""
    if pa.types.is_dictionary(kind):
        return _decoded(kind.value_type)
    if not pa.types.is_nested(kind):
        return kind
    inner = [kind.field(i) for i in range(kind.num_fields)]
    fields = [field.with_type(_decoded(field.type)) for field in inner]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_large_list(kind):
        return pa.large_list(*fields)
    return pa.list_(*fields) if pa.types.is_list(kind) else kind
