"""Files of columns <-> streams of record batches: text, JSON lines, Parquet, Arrow and Feather.

Only a few batches are held at a time, whatever the size of the file.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from altnorm._base.errors import InputError, InputWarning, shown, warn
from altnorm._base.files import file_error, replacing
from altnorm.io import formats, json_tables, text_tables
from altnorm.io.formats import Layout, Source, TableSource

_BROKEN = (OSError, EOFError, zlib.error, UnicodeError, OverflowError, MemoryError)
_BATCH_VALUES = 2**20  # a batch of 8 MB, enough for the per-batch work not to count
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # what an Arrow stream ends with
_GROUP_BYTES = 2**26  # a row group of the output, held until it is complete


@contextmanager
def open_table(
    path: str | os.PathLike[str],
    layout: Layout = formats.PLAIN,
    *,
    numbers: Collection[str] = (),
    text: Collection[str] | None = None,
) -> Iterator[TableSource]:
    """Open a file of columns to read it batch by batch.

    `numbers` are columns of text to read as numbers, the others stay what they are; also labels
    that scores by label may lack. With columns of `text` a CSV file is read as a whole: they stay
    text, and the types of all others are those that their values look like.
    """
    source = formats.find_source(path, layout)
    if source.format in formats.ARRAYS:
        rule, offender = "The file must be a table", f"'{source.path.name}' holds arrays"
        raise file_error(rule, offender, "Write a table, such as .csv or .parquet.")
    with ExitStack() as stack:
        with _reading(source):
            if source.format in formats.DELIMITERS:
                table = text_tables.open_text(source, numbers, text, stack)
            elif source.format in formats.TEXT:
                table = json_tables.open_lines(source.path, layout, numbers)
            elif source.format == "parquet":
                table = _open_parquet(source.path, stack)
            else:
                table = _open_arrow(source.path, stack)
            for name, times in Counter(table.schema.names).most_common(1):
                if times > 1:
                    rule = "Column names must differ"
                    offender = f"'{source.path.name}' has {times} columns '{shown(name)}'"
                    raise file_error(rule, offender, "Rename them.", value=name)
        yield table._replace(batches=_checked(table, source), format=source.format)


def read_table(path: str | os.PathLike[str], *, text: Collection[str] = ()) -> Any:
    """Read all rows of a file, as `open_table` tells, as a PyArrow table."""
    with open_table(path, text=text) as opened:
        return read_rows(opened)[0]


def read_rows(table: TableSource) -> tuple[Any, np.ndarray]:
    """All rows that have predictions, as a PyArrow table, and their numbers in the file."""
    rows = pa.Table.from_batches(table.batches, table.schema)
    is_there = find_predicted(table, rows)
    return rows if is_there.all() else rows.filter(pa.array(is_there)), np.flatnonzero(is_there)


def find_predicted(table: TableSource, rows: Any) -> np.ndarray:
    """Which rows of a batch have predictions: where a server failed there are none."""
    if not table.classes:
        return np.ones(rows.num_rows, dtype=bool)
    return np.asarray(rows.column(table.classes[0]).is_valid())  # all scores are there, or none


@contextmanager
def write_table(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    like: TableSource | None = None,
    force: bool = False,
    spreadsheet_safe: bool = False,
) -> Iterator[Callable[[Any], None]]:
    """Write a file of columns batch by batch; it is there, complete, after the block.

    Gives a function that takes the next batch. `like` is the file that rows come from, if they do.
    `spreadsheet_safe` puts a single quote before text that a spreadsheet would run as a formula,
    in CSV and TSV.
    """
    like = TableSource(schema, iter(())) if like is None else like
    as_lines = like.format if like.format in (*formats.DELIMITERS, "jsonl") else "csv"
    format = formats.find_target(path, standard=as_lines, spreadsheet_safe=spreadsheet_safe)
    compressed = Path(path).suffix.lower() in (".gz", ".feather")
    with ExitStack() as stack:
        if os.fspath(path) == formats.STANDARD:
            file: Any = sys.stdout.buffer
        else:
            target = stack.enter_context(replacing(path, force=force))
            compression = "gzip" if compressed and format in formats.TEXT else None
            file = stack.enter_context(pa.output_stream(str(target), compression=compression))
        if format == "parquet":
            yield _parquet_writer(file, schema, stack)
        elif format == "arrow":
            decode = not like.fixed_dictionaries
            yield _arrow_writer(file, schema, stack, compressed=compressed, decode=decode)
        elif format in formats.DELIMITERS:
            yield text_tables.text_writer(
                file, schema, formats.DELIMITERS[format], stack, safe=spreadsheet_safe
            )
        else:
            yield json_tables.jsonl_writer(file, schema)


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Tell what PyArrow says about a bad file in one sentence."""
    try:
        yield
    except (FileNotFoundError, InputError):
        raise
    except (pa.ArrowException, *_BROKEN) as error:
        if source.format in formats.TEXT and "UTF8" in str(error):
            rule = f"'{source.path}' must be text in UTF-8"
            remedy = "Save it in that encoding."
            raise file_error(rule, "some of its bytes are not", remedy) from error
        wrong = text_tables.wrong_number(source, error)
        raise wrong or formats.unreadable(source, error) from error


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


def _damaged(source: Path, claim: str) -> InputError:
    return file_error(f"'{source}' is damaged", f"it says that it {claim}", "Write it again.")


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


def _parquet_writer(file: Any, schema: Any, stack: ExitStack) -> Callable[[Any], None]:
    # Numbers hardly repeat: a dictionary of them would be built for nothing.
    repeats = [field.name for field in schema if not pa.types.is_floating(field.type)]
    writer = stack.enter_context(parquet.ParquetWriter(file, schema, use_dictionary=repeats))
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
    file: Any, schema: Any, stack: ExitStack, *, compressed: bool, decode: bool
) -> Callable[[Any], None]:
    # A file holds one dictionary per column, so columns whose dictionaries change are decoded.
    plain = pa.schema(map(_decoded, schema), schema.metadata) if decode else schema
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)
    writer = stack.enter_context(pa.ipc.new_file(file, plain, options=options))
    return lambda batch: writer.write_table(pa.Table.from_batches([batch]).cast(plain))


def _decoded(field: Any) -> Any:
    """The field with the type of its values, in records and lists too, in place of a dictionary."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        return field.with_type(kind.value_type)
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct(map(_decoded, kind)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return field.with_type(make(_decoded(kind.value_field)))
    if pa.types.is_fixed_size_list(kind):
        return field.with_type(pa.list_(_decoded(kind.value_field), kind.list_size))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_decoded(kind.key_field), _decoded(kind.item_field)))
    return field
