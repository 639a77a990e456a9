"""JSON lines <-> record batches: columns as in CSV, scores by label, or logged answers.

A file is read twice: once to learn its columns and their types, once for the rows. PyArrow reads
lines of plain values; all else is read object by object, which also tells the line that is wrong.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
from pyarrow import compute as pc
from pyarrow.json import ParseOptions, ReadOptions, read_json

from altnorm._base.errors import shown
from altnorm._base.files import file_error
from altnorm._base.words import plural
from altnorm.io.answers import (
    answer_lines,
    find_answer,
    read_answers,
    refuse_requests,
    tell_places,
)
from altnorm.io.formats import Layout, open_plain
from altnorm.io.json_lines import Line, read_lines, read_values
from altnorm.io.sample_logs import SAMPLE_KEYS, learn_log, log_lines
from altnorm.io.scores import Scores, has_scores, is_number, score_lines

_ROWS = 4096  # of a batch
_BLOCK = 2**22  # bytes that PyArrow reads at a time
_NESTED = {b"altnorm": b"JSON"}  # marks columns of nested values, which are text in between


class FileHints(NamedTuple):
    """What a file itself says about its columns."""

    classes: Sequence[str] = ()
    label: str | None = None
    id: str | None = None
    ordered: bool = True  # whether all rows give the classes in this order: an index is a class


NO_HINTS = FileHints()
Opened = tuple[Any, Iterator[Any], FileHints]
"""Schema, record batches and hints."""


def open_lines(path: Path, layout: Layout, numbers: Collection[str]) -> Opened:
    """Open a file of JSON lines; columns of `numbers` are read as floating-point.

    What the lines hold is told by the first, unless the layout insists on a format.
    """
    first: Any = next(read_values(path), (0, {}))[1]
    keys = first.keys() if isinstance(first, dict) else set()
    if keys >= SAMPLE_KEYS if layout.format is None else layout.format == "lm-eval":
        lines = partial(log_lines, path, *learn_log(path))
        hints = FileHints(label="target", id="doc_id")
        return _open_objects(lines, numbers, Scores(gaps="had another number of options"), hints)
    if has_scores(first):
        return _open_objects(partial(score_lines, path), numbers, Scores(numbers))
    refuse_requests(first)
    if find_answer(first) is not None:
        return _open_answers(path, layout, numbers, "custom_id" if "custom_id" in first else None)
    schema = _plain_schema(path, numbers)
    if schema is None:
        return _open_objects(partial(read_lines, path), numbers)
    return schema, _plain_batches(path, schema), NO_HINTS


def _open_answers(path: Path, layout: Layout, numbers: Collection[str], id: str | None) -> Opened:
    """Open a file of answers, once it is known which tokens are classes."""
    classes = list(numbers)
    offender = f"'{path.name}' holds answers of a language model"
    if not classes and layout.label is not None:
        classes = _labels_of(path, layout.label)
        offender += f" with {plural(len(classes), 'label')} in '{shown(layout.label)}'"
    if len(classes) < 2:
        raise file_error(
            "It must be known which tokens are classes",
            offender,
            "Pass --classes, for example --classes A,B,C,D, or the labels with --label or "
            "--labels.",
        )
    places: Counter[int] = Counter()
    lines = partial(answer_lines, path, classes, places)
    scores = Scores(classes, gaps="failed or named no class")
    opened = _open_objects(lines, numbers, scores, FileHints(id=id))
    tell_places(places, classes)
    return opened


def _labels_of(path: Path, label: str) -> list[str]:
    """The labels of a file of answers, in a field beside each that must be there."""
    first, *path_within = label.split(".")
    names: set[str] = set()
    labels: set[str] = set()
    for _, answer in read_answers(path):
        names.update(answer.columns)
        held = field_of(answer.columns.get(first), path_within)
        labels.update([] if held is None else [str(held)])
    if first not in names:
        raise file_error(
            f"There is no field '{shown(label)}' beside the answers",
            remedy=f"The fields are {shown(', '.join(sorted(names)))}."
            if names
            else "There is none.",
            value=label,
        )
    return sorted(labels)


# Plain values: PyArrow.


def _plain_schema(path: Path, numbers: Collection[str]) -> Any:
    """Types of the columns; None where PyArrow cannot read every value as it is written."""
    kinds: dict[str, set[str]] = {}
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
            for field in table.schema:
                kinds.setdefault(field.name, set()).add(_plain_kind(field.type))
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    types = {name: _arrow_type(held, name in numbers) for name, held in kinds.items()}
    mixed = any(pa.types.is_string(types[name]) and kinds[name] - {"none", "str"} for name in kinds)
    return None if mixed else pa.schema(list(types.items()))


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
            largest = pc.max(pc.abs(column)).as_py() or 0.0
            limit = math.inf if name in numbers else 2.0**63
            if pc.any(pc.is_nan(column)).as_py() or largest >= limit:
                return False
    return True


def _plain_kind(kind: Any) -> str:
    """A type as the kind of Python values; times are text that PyArrow takes for times."""
    names = {pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool", pa.null(): "none"}
    is_text = pa.types.is_string(kind) or pa.types.is_timestamp(kind)
    return "str" if is_text else names.get(kind, "nested")


# All else: object by object.


def _open_objects(
    lines: Callable[[], Iterator[Line]],
    numbers: Collection[str],
    scores: Scores | None = None,
    hints: FileHints = NO_HINTS,
) -> Opened:
    kinds: dict[str, set[str]] = {}
    for number, record in lines():
        if scores is not None:
            scores.learn(number, record.pop("scores", None))
        for name, value in record.items():
            kinds.setdefault(name, set()).add(_kind(value))
    types = {name: _arrow_type(held, name in numbers) for name, held in kinds.items()}
    fields = [
        pa.field(name, kind, metadata=_NESTED if kinds[name] <= {"nested", "none"} else None)
        for name, kind in types.items()
    ]
    if scores is not None:
        classes = scores.classes()
        for name in sorted(set(classes) & kinds.keys()):
            rule = f"'{shown(name)}' is both a class and another key"
            raise file_error(rule, remedy="Rename one.")
        fields += [pa.field(name, pa.float64()) for name in classes]
        hints = hints._replace(classes=classes, ordered=scores.are_ordered())
    schema = pa.schema(fields)
    return schema, _batches(lines(), scores, types, schema), hints


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
    if value is None:
        return "none"
    if is_number(value) and isinstance(value, int) and abs(value) >= 2**63:
        return "nested"  # as these, it is text in between
    return type(value).__name__ if isinstance(value, (bool, int, float, str)) else "nested"


def _arrow_type(kinds: set[str], is_number: bool) -> Any:
    """Type of a column: the simplest that holds all values; else text, nested values as JSON."""
    kinds = kinds - {"none"}
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
                line = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
            except ValueError:
                line = json.dumps(_without_nan(row), ensure_ascii=False, default=str)
            lines.append(line + "\n")
        file.write("".join(lines).encode())

    return write


def is_nested(field: Any) -> bool:
    """Whether a column holds nested values, as such or as JSON text."""
    return pa.types.is_nested(field.type) or field.metadata == _NESTED


def field_of(value: Any, names: Sequence[str]) -> Any:
    """What lies under a path of names in a nested value, which may be JSON text."""
    for name in names:
        value = parse_nested(value) if isinstance(value, str) else value
        value = value.get(name) if isinstance(value, dict) else None
    return value


def parse_nested(text: str | None) -> Any:
    """The value that a JSON text stands for; the text itself if it is none."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


def _without_nan(value: Any) -> Any:
    """A value with None for NaN, which JSON lacks; infinity, which it lacks too, is refused."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    if isinstance(value, float) and math.isinf(value):
        raise file_error(
            "JSON lines hold finite numbers", f"there is {value}", "Write a .parquet file."
        )
    return None if isinstance(value, float) and math.isnan(value) else value
