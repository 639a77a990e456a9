"""JSON lines <-> record batches: columns as in CSV, scores by label, or logged answers.

A file is read twice: once to learn its columns and their types, once for the rows. PyArrow reads
lines of plain values; all else is read object by object, which also tells the line that is wrong.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow import compute as pc
from pyarrow.json import ParseOptions, ReadOptions, read_json

from altnorm._base.errors import shown
from altnorm._base.files import file_error
from altnorm._base.words import plural
from altnorm.io import answers, sample_logs
from altnorm.io.formats import Layout, TableSource, open_plain
from altnorm.io.json_lines import Line, read_lines, read_values
from altnorm.io.labels import column_values, parse_nested
from altnorm.io.scores import Scores, has_scores, score_lines

_ROWS = 4096  # of a batch
_BLOCK = 2**22  # bytes that PyArrow reads at a time
_NESTED = {b"altnorm": b"JSON"}  # marks columns of nested values, which are text in between


def open_lines(path: Path, layout: Layout, numbers: Collection[str]) -> TableSource:
    """Open a file of JSON lines; columns of `numbers` are read as floating-point.

    What the lines hold is told by the first, unless the layout insists on a format.
    """
    first: Any = next(read_values(path), (0, {}))[1]
    keys = first.keys() if isinstance(first, dict) else set()
    if keys >= sample_logs.RESULT_KEYS and isinstance(first["results"], dict):
        raise sample_logs.not_a_log(path)
    if keys >= sample_logs.KEYS if layout.format is None else layout.format == "lm-eval":
        lines = partial(sample_logs.log_lines, path, *sample_logs.learn_log(path))
        opened = _open_objects(lines, numbers, Scores(gaps="had another number of options"))
        return opened._replace(label="target", id="doc_id")
    if has_scores(first):
        return _open_objects(partial(score_lines, path), numbers, Scores(numbers))
    if answers.find_answer(first) is not None:
        opened = _open_answers(path, numbers or _answered(path, layout.label), numbers)
        return opened._replace(id="custom_id" if "custom_id" in first else None)
    schema = _plain_schema(path, numbers)
    if schema is None:
        return _open_objects(partial(read_lines, path), numbers)
    return TableSource(schema, _plain_batches(path, schema))


def _open_answers(path: Path, classes: Collection[str], numbers: Collection[str]) -> TableSource:
    """Open a file of answers, of which some tokens are classes."""
    places: Counter[int] = Counter()
    lines = partial(answers.answer_lines, path, list(classes), places)
    opened = _open_objects(lines, numbers, Scores(classes, gaps="failed or named no class"))
    answers.tell_places(places, classes)
    return opened


def _answered(path: Path, label: str | None) -> Collection[str]:
    """The classes of a file of answers, from the labels beside these."""
    labels: set[str] = set()
    offender = f"'{path.name}' holds answers of a language model"
    if label is not None:
        opened = _open_objects(partial(answers.columns_beside, path), ())
        table = pa.Table.from_batches(opened.batches, opened.schema)
        labels = {str(value) for value in column_values(table, label) if value is not None}
        offender += f" with {plural(len(labels), 'label')} in '{shown(label)}'"
    if len(labels) < 2:
        raise file_error(
            "It must be known which tokens are classes",
            offender,
            "Pass --classes, for example --classes A,B,C,D, or the labels with --label or "
            "--labels.",
        )
    return sorted(labels)


# Plain values: PyArrow.


def _plain_schema(path: Path, numbers: Collection[str]) -> Any:
    """Types of the columns; None where PyArrow cannot read every value as it is written."""
    schema = pa.schema([])
    try:
        for block in _blocks(path):
            n_lines = block.count(b"\n") + (not block.endswith(b"\n"))
            # On a line that is `null` PyArrow crashes.
            if block.count(b"\n{") + block.startswith(b"{") != n_lines:
                return None
            table = _read_block(block)
            table.validate(full=True)
            if table.num_rows != n_lines or not _is_exact(table, numbers):
                return None
            schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if any(map(pa.types.is_nested, schema.types)):
        return None
    return pa.schema([(field.name, _plain_type(field, numbers)) for field in schema])


def _plain_type(field: Any, numbers: Collection[str]) -> Any:
    """The type of a column; times are text that PyArrow takes for times."""
    if pa.types.is_timestamp(field.type) or pa.types.is_null(field.type):
        return pa.string()
    is_whole = pa.types.is_integer(field.type) and field.name in numbers
    return pa.float64() if is_whole else field.type


def _plain_batches(path: Path, schema: Any) -> Iterator[Any]:
    for block in _blocks(path):
        yield from _read_block(block, schema).combine_chunks().to_batches()


def _blocks(path: Path) -> Iterator[bytes]:
    """A file in parts that end with a line."""
    with open_plain(path) as file:
        while block := file.read(_BLOCK):
            yield block + file.readline()


def _read_block(block: bytes, schema: Any = None) -> Any:
    options = ParseOptions(explicit_schema=schema)
    return read_json(pa.BufferReader(block), ReadOptions(block_size=len(block)), options)


def _is_exact(table: Any, numbers: Collection[str]) -> bool:
    """Whether numbers are finite, as JSON has them, and no whole one was too long for its type."""
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            limit = math.inf if name in numbers else 2.0**63
            if not pc.all(pc.less(pc.abs(column), limit), min_count=0).as_py():
                return False
    return True


# All else: object by object.


def _open_objects(
    lines: Callable[[], Iterator[Line]], numbers: Collection[str], scores: Scores | None = None
) -> TableSource:
    kinds: dict[str, set[str]] = {}
    for number, record in lines():
        if scores is not None:
            scores.learn(number, record.pop("scores", None))
        for name, value in record.items():
            kinds.setdefault(name, set()).add(_kind(value))
    types = {name: _arrow_type(held, name in numbers) for name, held in kinds.items()}
    fields = [
        pa.field(name, kind, metadata=_NESTED if kinds[name] <= {"nested", "NoneType"} else None)
        for name, kind in types.items()
    ]
    classes = [] if scores is None else scores.classes()
    for name in sorted(set(classes) & kinds.keys()):
        raise file_error(f"'{shown(name)}' is both a class and another key", remedy="Rename one.")
    schema = pa.schema(fields + [pa.field(name, pa.float64()) for name in classes])
    ordered = scores is None or scores.are_ordered()
    return TableSource(schema, _batches(lines(), scores, types, schema), classes, ordered=ordered)


def _batches(
    lines: Iterator[Line], scores: Scores | None, types: dict[str, Any], schema: Any
) -> Iterator[Any]:
    while part := list(islice(lines, _ROWS)):
        columns = [
            pa.array([_plain(record.get(name), kind) for _, record in part], kind)
            for name, kind in types.items()
        ]
        if scores is not None:
            columns += [pa.array(p, from_pandas=True) for p in scores.proba(part).T.copy()]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _kind(value: Any) -> str:
    if type(value) is int and abs(value) >= 2**63:
        return "nested"  # as these, it is text in between
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    return type(value).__name__ if is_plain else "nested"


def _arrow_type(kinds: set[str], is_number: bool) -> Any:
    """Type of a column: the simplest that holds all values; else text, nested values as JSON."""
    kinds = kinds - {"NoneType"}
    if kinds and kinds <= {"int", "float"}:
        return pa.int64() if kinds == {"int"} and not is_number else pa.float64()
    return pa.bool_() if kinds == {"bool"} else pa.string()


def _plain(value: Any, kind: Any) -> Any:
    if value is None or not pa.types.is_string(kind) or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def jsonl_writer(file: IO[bytes], schema: Any) -> Callable[[Any], None]:
    """Write each row as an object; nested values that were read from JSON as they came."""
    nested = [field.name for field in schema if field.metadata == _NESTED]

    def write(batch: Any) -> None:
        lines = []
        for row in batch.to_pylist():
            for name in nested:
                row[name] = parse_nested(row[name])
            try:
                lines.append(_line(row, allow_nan=False))
            except ValueError:  # NaN or infinity
                lines.append(_line(json.loads(_line(row), parse_constant=_null)))
        file.write("".join(lines).encode())

    return write


def is_nested(field: Any) -> bool:
    """Whether a column holds nested values, as such or as JSON text."""
    return pa.types.is_nested(field.type) or field.metadata == _NESTED


def _line(row: dict[str, Any], **options: Any) -> str:
    return json.dumps(row, ensure_ascii=False, default=str, **options) + "\n"


def _null(constant: str) -> None:
    """What is written for NaN, which JSON lacks; infinity, which it lacks too, is refused."""
    if constant != "NaN":
        offender = f"there is {float(constant)}"
        raise file_error("JSON lines hold finite numbers", offender, "Write a .parquet file.")
