"""Where the probabilities are in a record batch: one column per class, or one column of lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from altnorm._base.errors import InputError, InputTypeError
from altnorm._base.frames import check_once, check_same_names


class BatchLayout(NamedTuple):
    """Where the probabilities of the classes are, in the order of the classes."""

    fields: list[pa.Field]  # one per class, or the one of lists
    positions: list[int]
    lists: bool
    n_classes: int


def find_layout(
    schema: pa.Schema, names: list[str], columns: str | Sequence[str] | None, prefix: str
) -> BatchLayout:
    """Find the columns of the classes `names`, or the column of lists if `columns` is a string."""
    lists = isinstance(columns, str)
    wanted = [columns] if isinstance(columns, str) else [prefix + name for name in names]
    if not lists:
        _check_names(schema, wanted, columns, prefix)
    check_once(wanted, schema.names)
    positions = [schema.get_field_index(name) for name in wanted]
    fields = [schema.field(i) for i in positions]
    for field in fields:
        _check_type(field, _list_storage(field, len(names)).value_type if lists else field.type)
    return BatchLayout(fields, positions, lists, len(names))


def read_matrix(layout: BatchLayout, batch: pa.RecordBatch, start: int) -> np.ndarray:
    """Probabilities of a batch whose first row is row `start` of the stream, (n, m) in C order.

    A view of the entries for lists; columns are copied one by one.
    """
    arrays = [batch.column(i) for i in layout.positions]
    for field, array in zip(layout.fields, arrays, strict=True):
        _check_nulls(array, 1, field.name, start)
    if layout.lists:
        return _read_lists(layout, arrays[0], start)
    columns = [array.to_numpy() for array in arrays]
    values = np.empty((batch.num_rows, len(columns)), np.result_type(*columns))
    for j, column in enumerate(columns):
        values[:, j] = column
    return values


def write_matrix(layout: BatchLayout, values: np.ndarray) -> list[pa.Array]:
    """Arrays of the types that the probabilities came in."""
    if layout.lists:
        return [_write_lists(layout, values)]
    return [_entries(values[:, j], field.type) for j, field in enumerate(layout.fields)]


def _check_names(
    schema: pa.Schema, wanted: list[str], columns: Sequence[str] | None, prefix: str
) -> None:
    """Every class has a column, and every column that claims to be a class is one."""
    if columns is not None:
        check_same_names(wanted, list(columns))
    elif prefix:
        check_same_names(wanted, [name for name in schema.names if name.startswith(prefix)])
    else:
        check_same_names(wanted, schema.names, extra=False)


def _list_storage(field: pa.Field, n_classes: int) -> pa.DataType:
    """The list type of a column, under its extension type if it has one."""
    type_ = _storage_type(field.type)
    fixed = pa.types.is_fixed_size_list(type_)
    if not (fixed or pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        raise InputTypeError(
            f"Column {field.name!r} must hold lists of floating-point numbers",
            f"its type is {field.type}",
            "For one column per class, pass columns=None or a list of names.",
            value=field.type,
            code="columns",
        )
    if fixed and type_.list_size != n_classes:
        raise InputError(
            f"Lists in column {field.name!r} must have one entry per class, {n_classes}",
            f"their type says {type_.list_size}",
            "Pass probabilities of all classes, in the order of `classes_`.",
            value=type_.list_size,
            code="columns",
        )
    return type_


def _check_type(field: pa.Field, type_: pa.DataType) -> None:
    if not pa.types.is_floating(type_):
        raise InputTypeError(
            f"Column {field.name!r} must hold floating-point numbers",
            f"its type is {field.type}",
            "Cast it to float32 or float64 if its values really are probabilities.",
            value=field.type,
            code="columns",
        )


def _storage_type(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _read_lists(layout: BatchLayout, array: pa.Array, start: int) -> np.ndarray:
    name = layout.fields[0].name
    lists = array.storage if isinstance(array, pa.ExtensionArray) else array
    if not pa.types.is_fixed_size_list(lists.type):
        _check_lengths(np.diff(lists.offsets.to_numpy()), layout.n_classes, name, start)
    # Not `.values`, which ignores where a sliced array begins and ends.
    entries = lists.flatten()
    _check_nulls(entries, layout.n_classes, name, start)
    return entries.to_numpy().reshape(len(array), layout.n_classes)


def _check_nulls(array: pa.Array, entries_a_row: int, name: str, start: int) -> None:
    if array.null_count:
        first = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(
            "Probabilities must not be null",
            f"column {name!r} has {array.null_count} null(s) in this batch, the first in row "
            f"{start + first // entries_a_row}",
            "Drop or fill those rows.",
            code="columns",
        )


def _check_lengths(lengths: np.ndarray, n_classes: int, name: str, start: int) -> None:
    wrong = np.flatnonzero(lengths != n_classes)
    if wrong.size:
        raise InputError(
            f"Lists in column {name!r} must have one entry per class, {n_classes}",
            f"{wrong.size} in this batch do not, the first is row {start + wrong[0]} (length "
            f"{lengths[wrong[0]]})",
            "Pass probabilities of all classes, in the order of `classes_`.",
            code="columns",
        )


def _write_lists(layout: BatchLayout, values: np.ndarray) -> pa.Array:
    type_ = layout.fields[0].type
    storage = _storage_type(type_)
    entries = _entries(values.reshape(-1), storage.value_type)
    if pa.types.is_fixed_size_list(storage):
        array = pa.FixedSizeListArray.from_arrays(entries, type=storage)
    else:
        # Large lists count in 64 bits: more than 2**31 entries fit into one array.
        large = pa.types.is_large_list(storage)
        offsets = np.arange(values.shape[0] + 1, dtype=np.int64 if large else np.int32)
        kind = pa.LargeListArray if large else pa.ListArray
        array = kind.from_arrays(offsets * offsets.dtype.type(layout.n_classes), entries, storage)
    return array if storage is type_ else pa.ExtensionArray.from_storage(type_, array)


def _entries(values: np.ndarray, type_: pa.DataType) -> pa.Array:
    return pa.array(np.ascontiguousarray(values, dtype=type_.to_pandas_dtype()))
