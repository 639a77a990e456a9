"""The values of a file of JSON lines, one by one; JSON to the letter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from altnorm._base.errors import shown
from altnorm._base.files import file_error
from altnorm.io.formats import open_plain

Line = tuple[int, dict[str, Any]]
"""An object, after the number of its line from 1."""


def read_lines(path: Path) -> Iterator[Line]:
    """The objects of a file, with the number of their line, from 1."""
    for number, value in read_values(path):
        if not isinstance(value, dict):
            raise file_error(
                "Each line must be a JSON object",
                f"line {number} is {shown(json.dumps(value), 40)}",
                'Write for example {"cat": 0.9, "dog": 0.1, "y": "cat"}.',
            )
        yield number, value


def read_values(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a file, one per line, or those of one JSON array in the place of lines."""
    with open_plain(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                # A value of several lines begins with a bracket, and maybe another one.
                is_start = number == 1 and line.strip() in (b"[", b"{", b"[{", b"[[")
                value = read_json((line + file.read() if is_start else line).decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                reason = shown(error)
                if isinstance(error, json.JSONDecodeError):
                    reason = f"{error.msg.removesuffix(' at')} at character {error.pos + 1}"
                remedy = "Write one JSON value per line."
                raise file_error(f"Line {number} is not JSON", reason, remedy) from error
            if number == 1 and _is_array_of_rows(value):
                yield from enumerate(value, start=1)
            else:
                yield number, value


def _is_array_of_rows(value: Any) -> bool:
    """Whether it is a list of rows, and not of the labels and scores of one."""
    is_list = isinstance(value, list) and all(isinstance(row, (dict, list)) for row in value)
    return is_list and not all(isinstance(row, dict) and "score" in row for row in value)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value, write null where a value is missing")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in pairs:
        if name in record:  # all but the last value would be lost
            raise ValueError(f"the key '{shown(name)}' is there more than once")
        record[name] = value
    return record


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats)


def read_json(text: str) -> Any:
    """The value of a text that is JSON to the letter: without NaN, and no key twice."""
    return _DECODER.decode(text)
