"""JSON lines -> record batches: columns as in CSV, scores by label, or logged answers.

A file is read twice: once to learn its columns and their types, once for the rows. What differs
between the kinds of lines is in a *shape*: what the first pass must learn, and what a line holds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from altnorm._base.errors import InputError, shown
from altnorm._base.files import file_error
from altnorm.io.formats import open_plain
from altnorm.method.topk import from_topk

CLASSES_KEY = b"altnorm"
"""Metadata of a schema: which columns are the classes, which holds the labels, and whether every
line gives the classes in this order, so that an index has a meaning."""

_ROWS = 4096  # of a batch
Line = tuple[int, dict[str, Any]]


class Lines:
    """Lines like ``{"cat": 0.9, "dog": 0.1, "y": "cat"}``: one key per column.

    Other kinds of lines say what differs.
    """

    label: str | None = None  # column of the labels, where the format itself says so

    @property
    def ordered(self) -> bool:
        """Whether every line gives the classes in the same order, after the first pass."""
        return True

    def learn(self, line: Line) -> None:
        """Record a line in the first pass."""

    def classes(self) -> list[str]:
        """Names of the class columns, where the format itself says so, after the first pass."""
        return []

    def keeps(self, line: Line) -> bool:
        """Whether the line is a row of the table."""
        return True

    def others(self, line: Line) -> dict[str, Any]:
        """What the line holds beside the classes."""
        return line[1]

    def proba(self, lines: list[Line]) -> np.ndarray:
        """Probabilities of some rows, one column per class."""
        return np.empty((len(lines), 0))


class ScoreLines(Lines):
    """Lines like ``{"scores": {"cat": -0.1, "dog": -2.3}, "y": "cat"}``.

    Scores are probabilities if none is negative, else all are log-probabilities; a label that a
    line lacks is filled in by :func:`altnorm.from_topk`.

    Parameters
    ----------
    labels : collection of str
        Labels that are known from elsewhere: lines that name the top few may lack some of them
        altogether.
    """

    def __init__(self, labels: Collection[str] = ()) -> None:
        self._codes = {name: j for j, name in enumerate(labels)}
        self._orders: set[tuple[str, ...]] = set()
        self._low, self._high = 0.0, 0.0

    @property
    def ordered(self) -> bool:
        return self._orders == {tuple(self._codes)}

    def learn(self, line: Line) -> None:
        number, record = line
        scores = record.get("scores")
        if not isinstance(scores, dict) or not scores or not all(map(_is_number, scores.values())):
            raise file_error(
                "`scores` must give a number for each label",
                f"line {number} has {json.dumps(scores)[:60]}",
                'Write for example {"scores": {"yes": -0.1, "no": -2.4}}.',
            )
        self._low = min(self._low, *scores.values())
        self._high = max(self._high, *scores.values())
        for name in scores:
            self._codes.setdefault(name, len(self._codes))
        if len(self._orders) < 2:  # with two of them it is known that there is no one order
            self._orders.add(tuple(scores))

    def classes(self) -> list[str]:
        if self._low < 0 < self._high or self._high > 1 + 1e-6:
            raise file_error(
                "`scores` must all be probabilities, from 0 to 1, or all log-probabilities, at "
                "most 0",
                f"they span {self._low:g} to {self._high:g}",
                "For logits, write one key per class and pass --logits.",
            )
        return list(self._codes)

    def others(self, line: Line) -> dict[str, Any]:
        return {name: value for name, value in line[1].items() if name != "scores"}

    def proba(self, lines: list[Line]) -> np.ndarray:
        width = max(len(record["scores"]) for _, record in lines)
        indices = np.full((len(lines), width), -1)
        values = np.zeros((len(lines), width))
        for i, (_, record) in enumerate(lines):
            scores = record["scores"]
            indices[i, : len(scores)] = [self._codes[name] for name in scores]
            values[i, : len(scores)] = list(scores.values())
        kind = "log_proba" if self._low < 0 else "proba"
        try:
            return from_topk(indices, values, len(self._codes), input=kind)
        except InputError as error:
            if error.place is None:
                raise
            raise file_error(f"Line {lines[error.place.row][0]}: {error}") from error


def read_lines(path: Path) -> Iterator[Line]:
    """The objects of a file, with the number of their line, from 1."""
    with open_plain(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                text = line.decode(json.detect_encoding(line), "surrogatepass")
                record = read_json(text)
            except (ValueError, RecursionError) as error:
                reason = str(error)
                if "int_max_str_digits" in reason:  # Python's advice is for its programmers
                    reason = "a whole number has more digits than can be read"
                raise file_error(f"Line {number} is not JSON", shown(reason)) from error
            if not isinstance(record, dict):
                raise file_error(
                    "Each line must be a JSON object",
                    f"line {number} is {line.strip()[:40].decode(errors='replace')}",
                )
            yield number, record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value, write null where a value is missing")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):  # all but the last value would be lost
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{shown(twice)}' is there more than once")
    return record


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats)


def read_json(text: str) -> Any:
    """The value of a text that is JSON to the letter: without NaN, and no key twice."""
    return _DECODER.decode(text)


def open_lines(
    path: Path, shape: Lines, numbers: Collection[str] = ()
) -> tuple[Any, Iterator[Any]]:
    """Schema and record batches; columns named in `numbers` are read as floating-point."""
    import pyarrow as pa

    kinds: dict[str, set[str]] = {}
    for line in read_lines(path):
        shape.learn(line)
        for name, value in shape.others(line).items():
            kinds.setdefault(name, set()).add(_kind(value))
    classes = shape.classes()
    twice = sorted(set(classes) & kinds.keys())
    if twice:
        raise file_error(
            f"'{shown(twice[0])}' is both a class and another key", remedy="Rename one."
        )
    types = {name: _arrow_type(found, name in numbers) for name, found in kinds.items()}
    fields = [pa.field(name, kind) for name, kind in types.items()]
    fields += [pa.field(name, pa.float64()) for name in classes]
    metadata = None
    if classes:
        said = {"classes": classes, "label": shape.label, "ordered": shape.ordered}
        metadata = {CLASSES_KEY: json.dumps(said).encode()}
    schema = pa.schema(fields, metadata)
    return schema, _batches(path, shape, types, schema)


def _batches(path: Path, shape: Lines, types: dict[str, Any], schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    lines: list[Line] = []

    def batch() -> Any:
        rows = [shape.others(line) for line in lines]
        columns = [
            pa.array([_plain(row.get(name), kind) for row in rows], kind)
            for name, kind in types.items()
        ]
        columns += [pa.array(column) for column in shape.proba(lines).T.copy()]
        lines.clear()
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    for line in read_lines(path):
        if shape.keeps(line):
            lines.append(line)
        if len(lines) == _ROWS:
            yield batch()
    if lines:
        yield batch()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return "other"
    return type(value).__name__ if isinstance(value, (bool, int, float, str)) else "other"


def _arrow_type(kinds: set[str], is_number: bool) -> Any:
    """Type of a column: the simplest that holds all values; else text, nested values as JSON."""
    import pyarrow as pa

    kinds = kinds - {"none"}
    if kinds and kinds <= {"int", "float"}:
        return pa.int64() if kinds == {"int"} and not is_number else pa.float64()
    return pa.bool_() if kinds == {"bool"} else pa.string()


def _plain(value: Any, kind: Any) -> Any:
    import pyarrow as pa

    if value is None or not pa.types.is_string(kind) or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _without_nan(value: Any) -> Any:
    """A value with None for NaN, which JSON lacks; infinity, which it lacks too, is refused."""
    if isinstance(value, dict):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    if isinstance(value, float) and math.isinf(value):
        raise file_error(
            "JSON lines hold finite numbers", f"there is {value}", "Write a .parquet file."
        )
    return None if isinstance(value, float) and math.isnan(value) else value


def jsonl_writer(file: IO[bytes]) -> Callable[[Any], None]:
    """Write each row as an object."""

    def write(batch: Any) -> None:
        for row in batch.to_pylist():
            try:
                line = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
            except ValueError:
                line = json.dumps(_without_nan(row), ensure_ascii=False, default=str)
            file.write(line.encode() + b"\n")

    return write
