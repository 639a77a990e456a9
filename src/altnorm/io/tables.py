"""Files of columns <-> streams of record batches: text, JSON lines, Parquet, Arrow and Feather.

Only a few batches are held at a time, whatever the size of the file.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from altnorm._base.errors import InputError, InputWarning, shown, warn
from altnorm._base.files import file_error, replacing
from altnorm.io.formats import ARRAYS, SUFFIXES, Source, find_source, format_of
from altnorm.io.jsonl import Lines, ScoreLines, jsonl_writer, open_lines, read_lines
from altnorm.io.sample_logs import SampleLog, is_sample
from altnorm.io.text_tables import DELIMITERS, open_text, read_text, text_writer, writable

NAMES = {
    "csv": "CSV",
    "tsv": "TSV",
    "jsonl": "JSON lines",
    "lm-eval": "a sample log",
    "parquet": "Parquet",
    "arrow": "Arrow",
}
_BROKEN = (OSError, EOFError, zlib.error, UnicodeError, OverflowError, MemoryError)
_BATCH_VALUES = 2**20  # a batch of 8 MB, enough for the per-batch work not to count
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # what an Arrow stream ends with
_GROUP_BYTES = 2**26  # a row group of the output, held until it is complete


@dataclass(frozen=True)
class TableSource:
    """An open file of columns.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns.
    batches : iterator of pyarrow.RecordBatch
        The rows, in order; to be read once.
    n_rows : int or None
        Number of rows, where the file says so.
    codec : str
        Compression of the values, where the file says so.
    """

    schema: Any
    batches: Iterator[Any]
    n_rows: int | None = None
    codec: str = "snappy"


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether the name is that of a file of columns."""
    return format_of(path) not in (None, *ARRAYS)


@contextmanager
def open_table(
    path: str | os.PathLike[str],
    *,
    numbers: Collection[str] = (),
    format: str | None = None,
    usual: bool = False,
) -> Iterator[TableSource]:
    """Open a file of columns to read it batch by batch.

    Parameters
    ----------
    path : str or path-like
        A .csv, .tsv, .jsonl, .parquet, .arrow or .feather file; "-" for the standard input.
    numbers : collection of str
        Columns of text to read as numbers, the others stay what they are; labels that scores by
        label may lack.
    format : str, optional
        Format, where the name does not say it.
    usual : bool, default=False
        Of a sample log, keep only the questions with the usual number of options.

    Yields
    ------
    TableSource
        Schema and batches.
    """
    source = _table_source(path, format)
    with ExitStack() as stack:
        with _reading(source):
            if source.format in DELIMITERS:
                delimiter = DELIMITERS[source.format]
                table = TableSource(*open_text(source.path, delimiter, set(numbers), stack))
            elif source.format in ("jsonl", "lm-eval"):
                table = TableSource(*_open_lines(source, numbers, format, usual))
            elif source.format == "parquet":
                table = _open_parquet(source.path, stack)
            else:
                table = _open_arrow(source.path, stack)
            _check_names(table.schema.names, source.path)
        # A damaged file may fail at any batch, long after it was opened.
        batches = _guarded(table.batches, source)
        yield TableSource(table.schema, batches, table.n_rows, table.codec)


def read_table(
    path: str | os.PathLike[str],
    *,
    text: Collection[str] = (),
    numbers: Collection[str] = (),
    format: str | None = None,
    usual: bool = False,
) -> Any:
    """Read a whole file of columns.

    Parameters
    ----------
    path : str or path-like
        As for `open_table`.
    text : collection of str
        Columns of a CSV file to read as text whatever they look like.
    numbers, format, usual
        As for `open_table`.

    Returns
    -------
    pyarrow.Table
        All rows.
    """
    import pyarrow as pa

    source = _table_source(path, format)
    if source.format in DELIMITERS:
        with _reading(source):
            table = read_text(source.path, DELIMITERS[source.format], text)
            _check_names(table.schema.names, source.path)
        return table
    with open_table(path, numbers=numbers, format=format, usual=usual) as opened:
        return pa.Table.from_batches(opened.batches, opened.schema)


def _open_lines(
    source: Source, numbers: Collection[str], format: str | None, usual: bool
) -> tuple[Any, Iterator[Any]]:
    """Open JSON lines; what they hold is told by the first, unless `format` insists."""
    first = next(read_lines(source.path), (0, {}))[1]
    shape: Any = ScoreLines(numbers) if isinstance(first.get("scores"), dict) else Lines()
    if format == "lm-eval" or (format is None and is_sample(first)):
        shape = SampleLog(usual=usual)
    return open_lines(source.path, shape, numbers)


@contextmanager
def write_table(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    numbers: Collection[str] = (),
    codec: str = "snappy",
    force: bool = False,
    spreadsheet_safe: bool = False,
) -> Iterator[Callable[[Any], None]]:
    """Write a file of columns batch by batch; it is there, complete, after the block.

    Parameters
    ----------
    path : str or path-like
        A .csv, .tsv, .jsonl (these also with .gz), .parquet, .arrow or .feather file.
    schema : pyarrow.Schema
        Names and types of the columns.
    numbers : collection of str
        Columns of numbers that hardly repeat, for which Parquet should build no dictionary.
    codec : str
        Compression, for Parquet.
    force : bool, default=False
        Whether an existing file may be replaced.
    spreadsheet_safe : bool, default=False
        Whether text that a spreadsheet would run as a formula is written with a single quote
        before it (`altnorm.io.text_tables.neutralise_formula`), for CSV and TSV.

    Yields
    ------
    callable
        Takes the next record batch.
    """
    format = _table_format(Path(path), format_of(path))
    check_spreadsheet(path, spreadsheet_safe)
    compressed = Path(path).suffix.lower() in (".gz", ".feather")
    with replacing(path, force=force) as temporary, ExitStack() as stack:
        if format in DELIMITERS:
            file = writable(temporary, stack, compressed=compressed)
            yield text_writer(file, schema, DELIMITERS[format], safe=spreadsheet_safe)
        elif format == "jsonl":
            yield jsonl_writer(writable(temporary, stack, compressed=compressed))
        elif format == "parquet":
            yield _parquet_writer(temporary, schema, stack, set(numbers), codec)
        else:
            yield _arrow_writer(temporary, schema, stack, compressed)


def check_spreadsheet(path: str | os.PathLike[str], spreadsheet_safe: bool) -> None:
    """Raise if a file is to be safe for spreadsheets that is not one of text."""
    if spreadsheet_safe and format_of(path) not in DELIMITERS:
        raise file_error(
            "Only CSV and TSV files need be made safe for spreadsheets",
            f"'{Path(path).name}' is neither",
            "Leave --spreadsheet-safe out, or name a .csv file.",
        )


def _table_source(path: str | os.PathLike[str], format: str | None) -> Source:
    source = find_source(path, format)
    return source._replace(format=_table_format(source.path, source.format))


def _table_format(path: Path, format: str | None) -> str:
    """The format, known to be one of columns and PyArrow to be there."""
    if format is None or format in ARRAYS:
        known = [suffix for suffix, name in SUFFIXES.items() if name not in ARRAYS]
        raise file_error(
            f"A table must be one of {', '.join(known)}",
            f"'{path.name}' is not",
            "Rename it.",
            value=path.name,
        )
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise file_error(
            f"'{path.name}' needs PyArrow", remedy="Install it with: pip install 'altnorm[arrow]'"
        ) from error
    return format


def _check_names(names: list[str], source: Path) -> None:
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        offender = f"'{source.name}' has {times} columns '{shown(name)}'"
        raise file_error("Column names must differ", offender, "Rename them.", value=name)


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Tell what PyArrow says about a bad file in one sentence."""
    import pyarrow as pa

    try:
        yield
    except (FileNotFoundError, InputError):
        raise
    except (pa.ArrowException, *_BROKEN) as error:
        if not source.path.stat().st_size:
            raise file_error(f"'{source.path}' is empty.") from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(". ")
        raise file_error(
            f"'{source.path}' cannot be read as {NAMES[source.format]}, it may be cut off or "
            f"damaged: {shown(reason, 300)}."
        ) from error


def _guarded(batches: Iterator[Any], source: Source) -> Iterator[Any]:
    while True:
        with _reading(source):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _open_parquet(source: Path, stack: ExitStack) -> TableSource:
    from pyarrow import parquet

    # A buffer a column: without it, whole column chunks of a row group are held at once.
    file = stack.enter_context(parquet.ParquetFile(source, buffer_size=2**16, pre_buffer=False))
    metadata = file.metadata
    # The output is to be compressed as the input was.
    codec = "snappy"
    if metadata.num_row_groups and metadata.num_columns:
        codec = metadata.row_group(0).column(0).compression.lower()
    size = max(1, _BATCH_VALUES // max(1, metadata.num_columns))
    batches = _all_rows(file.iter_batches(batch_size=size), metadata.num_rows, source)
    return TableSource(
        file.schema_arrow, batches, metadata.num_rows, "none" if codec == "uncompressed" else codec
    )


def _all_rows(batches: Iterator[Any], n_rows: int, source: Path) -> Iterator[Any]:
    """The batches; raise at their end if the pages held another number of rows than was said."""
    found = 0
    for batch in batches:
        found += batch.num_rows
        yield _sound(batch)
    if found != n_rows:
        raise file_error(
            f"'{source}' is damaged",
            f"it says that it has {n_rows:,} rows and {found:,} can be read",
            "Write it again.",
            value=found,
        )


def _open_arrow(source: Path, stack: ExitStack) -> TableSource:
    import pyarrow as pa

    file = stack.enter_context(pa.OSFile(os.fspath(source)))
    start = file.read(6)
    file.seek(0)
    if start[:4] == b"FEA1":
        raise file_error(
            f"'{source}' is a Feather file of version 1",
            remedy="Write it as version 2, which is Arrow.",
        )
    # Both a file and a stream are called .arrow; only the file says so in its first bytes.
    if start == b"ARROW1":
        reader = stack.enter_context(pa.ipc.open_file(file))
        _check_batches(reader.num_record_batches, source)
        whole: Iterator[Any] = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = stack.enter_context(pa.ipc.open_stream(file))
        whole = _to_the_end(reader, file, source)
    return TableSource(reader.schema, (part for batch in whole for part in _cut(_sound(batch))))


def _check_batches(n_batches: int, source: Path) -> None:
    """Raise unless an Arrow file holds as many batches as its last part, the footer, lists."""
    import pyarrow as pa

    # Bodies of messages are mapped, not read.
    with pa.memory_map(os.fspath(source)) as file:
        file.seek(file.size() - 10)  # the length of the footer, and the name of the format again
        footer = file.size() - 10 - int.from_bytes(file.read(4), "little")
        file.seek(8)
        messages, found = pa.ipc.MessageReader.open_stream(file), 0
        while file.tell() < footer and (message := next(messages, None)) is not None:
            found += message.type == "record batch"
    if found != n_batches:
        raise file_error(
            f"'{source}' is damaged",
            f"it says that it has {n_batches:,} batches of rows and holds {found:,}",
            "Write it again.",
            value=found,
        )


def _to_the_end(reader: Any, file: Any, source: Path) -> Iterator[Any]:
    """The batches of a stream; warn, or raise, if it does not end where it says that it does."""
    yield from reader
    rest = file.size() - file.tell()
    if rest:
        raise file_error(
            f"'{source}' is damaged",
            f"it says that it ends, and {rest:,} bytes follow",
            "Write it again.",
            value=rest,
        )
    file.seek(max(0, file.size() - len(_END)))
    if file.read() != _END:
        message = (
            f"'{source.name}' does not say where it ends, as a stream should. It may have been cut "
            "off after a batch of rows."
        )
        warn(InputWarning(message, "no_end"))


def _sound(batch: Any) -> Any:
    """The batch itself, once its offsets and indices are known to stay within its own memory.

    PyArrow trusts what a file says about itself: a wrong offset reads, or crashes on, memory
    that is not the file's, and bytes that are no UTF-8 would be written as text.
    """
    batch.validate(full=True)
    return batch


def _cut(batch: Any) -> Iterator[Any]:
    """Parts of a batch that are not too large to work on, sharing its memory."""
    size = max(1, _BATCH_VALUES // max(1, batch.num_columns))
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)


def _parquet_writer(
    path: Path, schema: Any, stack: ExitStack, numbers: Collection[str], codec: str
) -> Callable[[Any], None]:
    import pyarrow as pa
    from pyarrow import parquet

    repeats = [name for name in schema.names if name not in numbers]
    writer = stack.enter_context(
        parquet.ParquetWriter(path, schema, compression=codec, use_dictionary=repeats)
    )
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
    path: Path, schema: Any, stack: ExitStack, compressed: bool
) -> Callable[[Any], None]:
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)
    file = stack.enter_context(pa.OSFile(os.fspath(path), "wb"))
    write: Callable[[Any], None] = stack.enter_context(
        pa.ipc.new_file(file, schema, options=options)
    ).write_batch
    return write
