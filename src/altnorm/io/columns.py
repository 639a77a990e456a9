"""Tables <-> predictions: which columns stand for which classes, by name, never by guess."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from altnorm._base.errors import InputError, shown
from altnorm._base.frames import check_same_names
from altnorm._base.labels import check_indicator
from altnorm._base.validation import check_proba
from altnorm._base.words import plural
from altnorm.io.formats import ARRAYS, TEXT, Layout, Source, TableSource, find_source
from altnorm.io.json_tables import is_nested
from altnorm.io.labels import (
    LabelFile,
    check_rows,
    column_error,
    column_values,
    listed,
    name_taken,
    names_of,
    no_such_column,
    not_numbers,
    prefix_remedy,
    read_labels,
)
from altnorm.io.predictions import Predictions
from altnorm.io.tables import open_table, read_rows, read_table, write_table

_MOST_CHARACTERS = 32_000  # a cell of a spreadsheet holds 32,767


def read_columns(source: Source, layout: Layout, classes: Any) -> Predictions:
    """Read predictions from a table; `classes` are those expected, if they are known."""
    label_file, expected = None, []
    if layout.labels is not None:
        label_file = LabelFile.of(read_table(layout.labels), layout)
        layout, expected = replace(layout, label=None), label_file.classes()
    if classes is not None:
        expected = [layout.prefix + name for name in names_of(classes)]
    text = [name for name in (layout.label, layout.group, layout.id) if name]
    with open_table(source.path, layout, text=text, numbers=expected) as opened:
        table, numbers = read_rows(opened)
    check_rows(table.num_rows)
    if label_file is None and layout.label_prefix is None and layout.label is None:
        layout = replace(layout, label=opened.label)
    id_name = layout.id or opened.id
    if id_name is None and label_file is not None and label_file.id_name in table.schema.names:
        id_name = label_file.id_name
    ids = numbers if id_name is None else np.array(column_values(table, id_name), dtype=object)
    written = None
    if label_file is not None:
        written = label_file.match(ids.tolist())
    elif layout.label is not None and layout.label_prefix is None:
        written = column_values(table, layout.label)
    groups = None if layout.group is None else _read_groups(table, layout.group)
    sums = not layout.logits and layout.label_prefix is None
    named = {str(label) for label in written or ()}
    columns, spare = class_columns(opened, layout, classes, sums=sums, named=named)
    # Nobody has said which columns are classes: types decide, so more is checked.
    is_guess = classes is None and not layout.prefix and not opened.classes
    if is_guess and source.format in TEXT:
        _check_zeros(table, layout, columns)
    names = [name[len(layout.prefix) :] for name in columns] if classes is None else classes
    classes, labels = np.asarray(names), None
    if layout.label_prefix is not None:
        labels = _read_label_columns(table, layout.label_prefix, names_of(classes))
    elif written is not None:
        places = [opened.schema.get_field_index(name) for name in columns]
        reordered = places != sorted(places) or not opened.ordered
        labels = read_labels(written, classes, layout, reordered=reordered)
        if is_guess and layout.logits:
            _check_labelled(columns, labels)
    proba = column_matrix(table, columns)
    if spare:
        with spare_hint(spare):
            check_proba(proba)
    return Predictions(proba, classes, labels, "logits" if layout.logits else "proba", groups, ids)


def _read_label_columns(table: Any, prefix: str, names: Sequence[str]) -> np.ndarray:
    """The 0/1 matrix of several labels, one column each."""
    wanted = [prefix + name for name in names]
    check_same_names(wanted, [name for name in table.schema.names if name.startswith(prefix)])
    labels = column_matrix(table, wanted)
    return check_indicator(labels, labels.shape).astype(np.uint8)


def class_columns(
    table: TableSource,
    layout: Layout,
    classes: Any,
    *,
    sums: bool,
    named: Collection[str] = (),
) -> tuple[list[str], list[str]]:
    """Names of the columns that hold the classes, in the order of `classes`, or else of the file.

    Also those that look like classes and are none of `classes`; where no `sums` of rows would give
    away a class too many, there must not be any. Labels have `named` some of the classes.
    """
    names = table.schema.names
    for name in layout.other:
        if name not in names:
            raise no_such_column(name, names)
    candidates = _candidates(table, layout, named)
    if classes is None:
        if len(candidates) < 2:
            remedy = "Class columns hold numbers with a decimal point or, with --prefix, "
            remedy += "have names that start with it."
            if candidates:
                first = shown(candidates[0])
                remedy += f" If '{first}' is the probability of one of two classes, write 1 minus "
                remedy += "it into another column, and call both as the classes are called."
            raise column_error(
                "The table must have one column per class and at least 2",
                f"found {len(candidates)} among {listed(names)}",
                remedy,
            )
        return candidates, []
    wanted = [layout.prefix + name for name in names_of(classes)]
    remedy = prefix_remedy(names, wanted)
    if remedy and not set(wanted) & set(names):
        raise column_error("There must be one column for each class", "all are missing", remedy)
    # Without a prefix a table may carry other columns; with one, a spare column is a class.
    check_same_names(wanted, names, extra=False)
    if layout.prefix:
        check_same_names(wanted, candidates)
    expected = set(wanted)
    spare = [name for name in candidates if name not in expected]
    if spare and not sums:
        name = shown(spare[0])
        raise column_error(
            f"The floating-point column '{name}' is not a class of the model",
            remedy=f"If it is something else, pass --other '{name}'.",
        )
    return wanted, spare


@contextmanager
def spare_hint(spare: Sequence[str]) -> Iterator[None]:
    """Add to an error about sums that spare columns may be classes the model does not know."""
    try:
        yield
    except InputError as error:
        if not spare or error.code != "row_sum":
            raise
        hint = f"The model does not know the class column {listed(spare)}."
        raise error.replace(remedy=hint, code="unknown_class") from error


def column_matrix(table: Any, names: Sequence[str]) -> np.ndarray:
    """Columns of a table or record batch as one (n, m) array, in single precision if all are.

    Empty cells become NaN.
    """
    columns = [table.column(name) for name in names]
    # Half precision is widened: the kernels compute in single precision at the least.
    single = all(column.type in (pa.float16(), pa.float32()) for column in columns)
    out = np.empty((table.num_rows, len(names)), np.float32 if single else np.float64)
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        if not (_is_fraction(column.type) or pa.types.is_integer(column.type)):
            raise not_numbers(name, column)
        # NumPy would make objects of decimals.
        is_decimal = pa.types.is_decimal(column.type)
        out[:, j] = np.asarray(column.cast(pa.float64()) if is_decimal else column)
    return out


def _check_zeros(table: Any, layout: Layout, columns: Sequence[str]) -> None:
    """Raise if a column of text that was not taken for a class holds nothing but 0.

    So is a class written that no row comes near, and a CSV reader takes it for whole numbers.
    """
    for field in _free_fields(table.schema, layout):
        is_spare = field.name not in columns and pa.types.is_integer(field.type)
        if is_spare and set(pc.min_max(table.column(field.name)).as_py().values()) == {0}:
            name = shown(field.name)
            raise column_error(
                f"Column '{name}' holds only 0 and may be a class",
                remedy="If it is, write 0.0, or start the names of all class columns alike and "
                f"pass --prefix; if it is not, pass --other '{name}'.",
                value=field.name,
            )


def _check_labelled(columns: Sequence[str], labels: np.ndarray) -> None:
    """Raise if no label names a column of logits: it may be prices.

    Probabilities would not sum to 1 with a column too many; logits tell nothing.
    """
    labelled = set(labels.tolist())
    unused = [name for name in columns if name not in labelled]
    if unused:
        name = shown(unused[0])
        raise column_error(
            "Every column of logits must be a class",
            f"{len(unused)} of {len(columns)} are never a label, the first is '{name}'",
            f"If it is not a class, pass --other '{name}'; if it is, start the names of all "
            "class columns alike and pass --prefix.",
        )


def _candidates(table: TableSource, layout: Layout, named: Collection[str]) -> list[str]:
    """Columns that may stand for classes, judged by prefix, by labels and by type."""
    if table.classes and not layout.prefix:
        return [name for name in table.classes if name not in layout.other]
    fields = _free_fields(table.schema, layout)
    if layout.prefix:
        return [field.name for field in fields if field.name.startswith(layout.prefix)]
    return [field.name for field in fields if field.name in named or _is_fraction(field.type)]


def _free_fields(schema: Any, layout: Layout) -> list[Any]:
    """Columns that nobody has called something else than a class."""
    taken = {layout.label, layout.group, layout.id, *layout.other}
    start = layout.label_prefix
    return [
        field
        for field in schema
        if field.name not in taken and not (start and field.name.startswith(start))
    ]


def _is_fraction(kind: Any) -> bool:
    """Whether a column of this type holds numbers that need not be whole."""
    return pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _read_groups(table: Any, name: str) -> np.ndarray:
    """Return the group of each row, as text."""
    values = column_values(table, name)
    groups = np.array(["" if value is None else str(value) for value in values])
    empty = np.flatnonzero(groups == "")
    if empty.size:
        raise column_error(
            "Each row must have a group",
            f"'{shown(name)}' is empty in {plural(empty.size, 'row')}, the first is row {empty[0]}",
            "Give a row that is on its own a group of its own.",
        )
    return groups


def read_texts(
    path: str | os.PathLike[str],
    layout: Layout,
    names: Sequence[str] = (),
    *,
    classes: Any = (),
    hidden: Collection[str] = (),
) -> dict[str, list[str]]:
    """Read columns of a table as text for people; none of a file of arrays.

    `names` are columns, or fields of nested ones such as "doc.question". Without names, all columns
    are read but nested and binary ones, labels, ids, and those that are `hidden`. `classes` are
    those of the predictions, which a language model's answers do not tell.
    """
    if not names and find_source(path, layout).format in ARRAYS:
        return {}
    columns = [layout.prefix + name for name in names_of(classes)]
    with open_table(path, layout, text=names or None, numbers=columns) as opened:
        table, _ = read_rows(opened)
    not_shown = {*hidden, *opened.classes, layout.label, opened.label, opened.id, layout.id}
    names = names or [
        field.name
        for field in table.schema
        if field.name not in not_shown
        and not is_nested(field)
        and not pa.types.is_binary(field.type)
    ]
    return {name: [_cell(value) for value in column_values(table, name)] for name in names}


def _cell(value: Any) -> str:
    """Text of a value; nested ones as JSON, and what is too long for a spreadsheet cut off."""
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = "" if value is None else str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} ..."


def write_columns(
    predictions: Predictions,
    path: Path,
    layout: Layout,
    added: Mapping[str, Any],
    *,
    force: bool,
    spreadsheet_safe: bool,
) -> None:
    """Write predictions as a table with a column per class."""
    names = names_of(predictions.classes)
    columns: dict[str, Any] = {
        layout.prefix + name: p for name, p in zip(names, predictions.proba.T, strict=True)
    }
    labels = predictions.labels
    if labels is not None and predictions.multilabel:
        start = "y_" if layout.label_prefix is None else layout.label_prefix
        columns |= {start + name: labels[:, j] for j, name in enumerate(names)}
    elif labels is not None:
        columns[layout.label or "label"] = names_of(labels)
    taken = [name for name in added if name in columns]
    if taken:
        raise name_taken(taken[0])
    batch = pa.RecordBatch.from_pydict(columns | dict(added))
    with write_table(path, batch.schema, force=force, spreadsheet_safe=spreadsheet_safe) as write:
        write(batch)
