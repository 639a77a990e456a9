"""Files of columns <-> streams of record batches: CSV, Parquet, Arrow and Feather.

Only a few batches are held at a time, whatever the size of the file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from altnorm._files import check_input, file_error, replacing
from altnorm._validation import InputError

__all__ = ["TableSource", "is_table", "is_text", "open_table", "read_table", "write_table"]

SUFFIXES = {
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}
_BATCH_VALUES = 2**20  # a batch of 8 MB, enough for the per-batch work not to count
_GROUP_BYTES = 2**26  # a row group of the output, held until it is complete
_CSV_BLOCK = 2**23
_FORMULA = r"^[=+\-@\t]"  # what a spreadsheet may take for the start of a formula
_NUMBER = r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$"


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
    return Path(path).suffix.lower() in SUFFIXES


def is_text(path: str | os.PathLike[str]) -> bool:
    """Whether the types of the columns are not in the file but read from how values look."""
    return SUFFIXES.get(Path(path).suffix.lower()) == "CSV"


@contextmanager
def open_table(
    path: str | os.PathLike[str], *, numbers: Collection[str] = ()
) -> Iterator[TableSource]:
    """Open a file of columns to read it batch by batch.

    Parameters
    ----------
    path : str or path-like
        A .csv, .parquet, .arrow or .feather file.
    numbers : collection of str
        Columns of a CSV file to read as numbers; the others stay the text that they are.

    Yields
    ------
    TableSource
        Schema and batches.
    """
    source = check_input(path)
    kind = _kind(source)
    with ExitStack() as stack:
        with _reading(source, kind):
            if kind == "CSV":
                table = _open_csv(source, set(numbers))
            elif kind == "Parquet":
                table = _open_parquet(source, stack)
            else:
                table = _open_arrow(source, stack)
            _check_names(table.schema.names, source)
        batches = _guarded(table.batches, source, kind)
        yield TableSource(table.schema, batches, table.n_rows, table.codec)


def read_table(path: str | os.PathLike[str], *, text: Collection[str] = ()) -> Any:
    """Read a whole file of columns.

    Parameters
    ----------
    path : str or path-like
        A .csv, .parquet, .arrow or .feather file.
    text : collection of str
        Columns of a CSV file to read as text whatever they look like.

    Returns
    -------
    pyarrow.Table
        All rows.
    """
    import pyarrow as pa

    source = check_input(path)
    if _kind(source) == "CSV":
        from pyarrow import csv

        with _reading(source, "CSV"):
            convert = csv.ConvertOptions(column_types={name: pa.string() for name in text})
            table = csv.read_csv(
                source,
                read_options=csv.ReadOptions(block_size=_CSV_BLOCK),
                parse_options=csv.ParseOptions(newlines_in_values=True),
                convert_options=convert,
            )
            _check_names(table.schema.names, source)
        return table
    with open_table(source) as opened:
        return pa.Table.from_batches(opened.batches, opened.schema)


@contextmanager
def write_table(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    numbers: Collection[str] = (),
    codec: str = "snappy",
    force: bool = False,
) -> Iterator[Callable[[Any], None]]:
    """Write a file of columns batch by batch; it is there, complete, after the block.

    Parameters
    ----------
    path : str or path-like
        A .csv, .parquet, .arrow or .feather file.
    schema : pyarrow.Schema
        Names and types of the columns.
    numbers : collection of str
        Columns of numbers that hardly repeat, for which Parquet should build no dictionary.
    codec : str
        Compression, for Parquet.
    force : bool, default=False
        Whether an existing file may be replaced.

    Yields
    ------
    callable
        Takes the next record batch.
    """
    kind = _kind(Path(path))
    with replacing(path, force=force) as temporary, ExitStack() as stack:
        if kind == "CSV":
            yield _csv_writer(temporary, schema, stack)
        elif kind == "Parquet":
            yield _parquet_writer(temporary, schema, stack, set(numbers), codec)
        else:
            compressed = Path(path).suffix.lower() == ".feather"
            yield _arrow_writer(temporary, schema, stack, compressed)


def _kind(path: Path) -> str:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise file_error(
            f"'{path.name}' needs PyArrow", remedy="Install it with: pip install 'altnorm[arrow]'"
        ) from error
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        rule = f"A table must be one of {', '.join(SUFFIXES)}"
        raise file_error(rule, f"'{path.name}' is not", "Rename it.", value=path.name)
    return kind


def _check_names(names: list[str], source: Path) -> None:
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        offender = f"'{source.name}' has {times} columns '{name}'"
        raise file_error("Column names must differ", offender, "Rename them.", value=name)


@contextmanager
def _reading(source: Path, kind: str) -> Iterator[None]:
    """Tell what PyArrow says about a bad file in one sentence."""
    import pyarrow as pa

    try:
        yield
    except (FileNotFoundError, InputError):
        raise
    except (pa.ArrowException, OSError, UnicodeError, OverflowError, MemoryError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(". ")
        raise file_error(
            f"'{source}' cannot be read as {kind}, it may be cut off or damaged: {reason}."
        ) from error


def _guarded(batches: Iterator[Any], source: Path, kind: str) -> Iterator[Any]:
    while True:
        with _reading(source, kind):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _open_csv(source: Path, numbers: Collection[str]) -> TableSource:
    import pyarrow as pa
    from pyarrow import csv

    read = csv.ReadOptions(block_size=_CSV_BLOCK)
    parse = csv.ParseOptions(newlines_in_values=True)
    with csv.open_csv(source, read_options=read, parse_options=parse) as peek:
        names = peek.schema.names
    types = {name: pa.float64() if name in numbers else pa.string() for name in names}
    convert = csv.ConvertOptions(column_types=types)
    reader = csv.open_csv(source, read_options=read, parse_options=parse, convert_options=convert)
    return TableSource(reader.schema, iter(reader))


def _open_parquet(source: Path, stack: ExitStack) -> TableSource:
    from pyarrow import parquet

    # A buffer a column: without it, whole column chunks of a row group are held at once.
    file = stack.enter_context(parquet.ParquetFile(source, buffer_size=2**16, pre_buffer=False))
    metadata = file.metadata
    codec = "snappy"
    if metadata.num_row_groups and metadata.num_columns:
        codec = metadata.row_group(0).column(0).compression.lower()
    size = max(1, _BATCH_VALUES // max(1, metadata.num_columns))
    batches = file.iter_batches(batch_size=size)
    return TableSource(
        file.schema_arrow, batches, metadata.num_rows, "none" if codec == "uncompressed" else codec
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
    if start == b"ARROW1":
        reader = stack.enter_context(pa.ipc.open_file(file))
        whole = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = stack.enter_context(pa.ipc.open_stream(file))
        whole = iter(reader)
    return TableSource(reader.schema, (part for batch in whole for part in _cut(_sound(batch))))


def _sound(batch: Any) -> Any:
    """The batch itself, once its offsets and indices are known to stay within its own memory.

    PyArrow trusts what an IPC file says about itself: a wrong offset reads, or crashes on, memory
    that is not the file's.
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
    held: list[Any] = []

    def flush() -> None:
        if held:
            writer.write_table(pa.Table.from_batches(held, schema))
            held.clear()

    def write(batch: Any) -> None:
        held.append(batch)
        if sum(part.nbytes for part in held) >= _GROUP_BYTES:
            flush()

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


def _csv_writer(path: Path, schema: Any, stack: ExitStack) -> Callable[[Any], None]:
    """Write text as it was read, quoted only where it must be; PyArrow's writer quotes all text."""
    import pyarrow as pa

    file = stack.enter_context(path.open("wb"))
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        rule = f"A CSV file cannot hold the nested column '{nested[0]}'"
        raise file_error(rule, remedy="Write a .parquet file.", value=nested[0])
    file.write(_csv_lines([_quoted(pa.array([name], pa.large_string())) for name in schema.names]))

    def write(batch: Any) -> None:
        if batch.num_rows:
            columns = zip(schema.names, batch.columns, strict=True)
            file.write(_csv_lines([_csv_fields(name, column) for name, column in columns]))

    return write


def _csv_lines(columns: list[Any]) -> Any:
    """Lines for equally long arrays of text, as one buffer."""
    import pyarrow as pa
    from pyarrow import compute as pc

    # Typed scalars: large strings, so that a long batch does not overflow 32-bit offsets.
    text = pa.large_string()
    comma, newline, nothing = (pa.scalar(s, text) for s in (",", "\n", ""))
    lines = pc.binary_join_element_wise(
        *columns, comma, null_handling="replace", null_replacement=""
    )
    lines = pc.binary_join_element_wise(lines, nothing, newline)
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    return lines.buffers()[2]


def _csv_fields(name: str, column: Any) -> Any:
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
    return text if plain else _quoted(text)


def _quoted(text: Any) -> Any:
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
    special = pc.match_substring_regex(text, '[",\r\n]')
    return pc.if_else(pc.or_(special, formula), quoted, text)
