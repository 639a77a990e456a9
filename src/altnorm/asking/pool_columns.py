"""What to show a person beside a question: columns of the pool, without the right answers."""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from altnorm._base.files import file_error
from altnorm.asking.questions import OWN_COLUMNS
from altnorm.io.columns import names_of, no_such_column
from altnorm.io.formats import Layout, find_source
from altnorm.io.tables import open_table

if TYPE_CHECKING:
    import pyarrow as pa

Json = dict[str, "Json"] | list["Json"] | str | float | bool | None
FieldPath = tuple[str, ...]

_MOST_CHARACTERS = 32_000  # a cell of a spreadsheet holds 32,767
# Parts of the names that benchmarks give to the right answer, and to what gives it away.
_ANSWER = re.compile(
    r"answer|label|target|gold|correct|solution|distractor|rationale|explanation", re.IGNORECASE
)


def pool_columns(
    path: str | os.PathLike[str],
    layout: Layout,
    classes: np.ndarray,
    text: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Read the columns of a pool that a person may see, as text; none of a file of arrays.

    Columns of questions and of probabilities are left out, and so are right answers: labels,
    columns of nothing but classes, and fields of nested columns that are such or are named like
    answers. `text` names columns to show instead of all; with dots, fields of nested ones, such as
    "doc.question".
    """
    if not find_source(path, layout).is_table:
        return {}
    import pyarrow as pa

    names = names_of(classes)
    numbers = [layout.prefix + name for name in names]
    with open_table(path, layout, numbers=numbers) as opened:
        table = opened.read()
    truth = {layout.label, opened.known.label}
    if layout.label_prefix is not None:
        truth |= {layout.label_prefix + name for name in names}
    if text:
        return {name: _named_column(table, name, truth, names) for name in text}
    without = {*truth, *numbers, *OWN_COLUMNS}
    columns = {
        field.name: _masked(table.column(field.name).to_pylist(), names)
        for field in table.schema
        if field.name not in without
        and not pa.types.is_nested(field.type)
        and not pa.types.is_binary(field.type)
    }
    return {
        name: texts
        for name, texts in columns.items()
        if any(texts) and not _are_classes({text.removesuffix(".0") for text in texts}, names)
    }


def _named_column(
    table: pa.Table, name: str, truth: Collection[str | None], names: Sequence[str]
) -> list[str]:
    """A column, or a field of a nested one, that was asked for by name."""
    column, *path = [name] if name in table.schema.names else name.split(".")
    if column not in table.schema.names:
        raise no_such_column(name, table.schema.names)
    values = table.column(column).to_pylist()
    if path:
        values = [_field(_parsed(value), path) for value in values]
        if all(value is None for value in values):
            what = f"The column '{column}' has no field '{'.'.join(path)}'"
            raise file_error(what, remedy="Check the names between the dots.", value=name)
    texts = _masked(values, names, tuple(path))
    if column in truth or not any(texts):
        raise file_error(
            f"'{name}' holds the right answers",
            remedy="Show another column: those who label must not see them.",
            value=name,
        )
    return texts


def _masked(values: list[Json], names: Sequence[str], start: FieldPath = ()) -> list[str]:
    """Values as text, nested ones without the fields that give the answers away."""
    parsed = [_parsed(value) for value in values]
    found: dict[FieldPath, set[str]] = {}
    for value in parsed:
        for path, text in _leaves(value, start):
            found.setdefault(path, set()).add(text)
    # A field of a nested value gives the answer away by its name or by its values.
    answers = {
        path
        for path, texts in found.items()
        if any(map(_ANSWER.search, path)) or (path and _are_classes(texts, names))
    }
    kept = [_without(value, answers, start) for value in parsed]
    return [
        _text(value if new == old else new)
        for value, old, new in zip(values, parsed, kept, strict=True)
    ]


def _are_classes(texts: set[str], names: Sequence[str]) -> bool:
    """Whether all texts are classes: by name, index, number from 1, letter, or yes and no."""
    m = len(names)
    spellings = [
        set(names),
        {str(j) for j in range(m)},
        {str(j + 1) for j in range(m)},
        set(string.ascii_uppercase[:m]),
        set(string.ascii_lowercase[:m]),
        {"True", "False"} if m == 2 else set(),
    ]
    found = texts - {""}
    return bool(found) and any(found <= spelled for spelled in spellings)


def _parsed(value: Json) -> Json:
    """A nested value, which files of JSON lines hold as text; all else as it is."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _leaves(value: Json, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Texts in a nested value, each with the names of the fields that it is in."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, (*path, name))
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, path)
    else:
        # A gap makes floats of whole numbers.
        yield path, _text(value).strip().removesuffix(".0")


def _field(value: Json, path: Sequence[str]) -> Json:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _without(value: Json, answers: Collection[FieldPath], path: FieldPath = ()) -> Json:
    """A nested value without some of its fields, and without what is empty then."""
    if path in answers:
        return None
    if isinstance(value, dict):
        kept = {name: _without(part, answers, (*path, name)) for name, part in value.items()}
        return {name: part for name, part in kept.items() if part not in (None, {}, [])}
    if isinstance(value, list):
        parts = [_without(part, answers, path) for part in value]
        return [part for part in parts if part not in (None, {}, [])]
    return value


def _text(value: Json) -> str:
    """A cell; nested values as JSON, what is too long for a cell cut off."""
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False) if value else ""
    text = "" if value is None else str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} ..."
