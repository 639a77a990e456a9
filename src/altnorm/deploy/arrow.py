"""Record batches in, record batches out: the way to every engine that speaks Arrow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from altnorm._base.errors import InputError, InputTypeError, Place, needing_extra, shown
from altnorm._base.frames import check_once, check_same_names
from altnorm._base.validation import sum_tolerance
from altnorm._base.words import plural
from altnorm.decisions.decision import decision_codes, decision_of
from altnorm.estimator.base import ProbabilityTransformer, unnamed
from altnorm.estimator.kinds import FittedModel, kind_of
from altnorm.io.labels import column_error, name_taken, names_of
from altnorm.io.predictions import check_adjusted

with needing_extra("arrow"):
    import pyarrow as pa


def apply_batches(
    adjuster: FittedModel,
    batches: Iterable[pa.RecordBatch],
    *,
    columns: str | None = None,
    prefix: str = "",
    output: str | None = None,
    prediction: str | None = "prediction",
    n_jobs: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Adjust a stream of record batches, and decide; memory does not grow with its length.

    Probabilities come one column per class, matched to ``adjuster.classes_`` by name in any
    order, or as one column of lists (of any kind, or an extension type stored as lists), whose
    entries follow ``adjuster.classes_``. All other columns pass through untouched.

    Parameters
    ----------
    adjuster : Adjuster, AlternatingNormalizer or any fitted object with their methods
        Only ``transform``, ``predict`` and ``classes_`` are used. Each batch is adjusted on its
        own, so rows must not depend on each other.
    batches : iterable of pyarrow.RecordBatch
        All of one schema, for example a ``pyarrow.RecordBatchReader``. Floating-point numbers of
        any width; they keep it.
    columns : str, optional
        The column of lists. By default every class, after `prefix`, must have a column.
    prefix : str, default=""
        What precedes the class in the name of its column, and no other column.
    output : str, optional
        Keep the probabilities as they were and append the adjusted ones: under this name (lists)
        or under names that begin with it (one column per class). None replaces them in place.
    prediction : str or None, default="prediction"
        Append a column of this name with the decision for the purpose: the class, null where the
        row is left to a person; for several labels per row the list of labels. None leaves it out.
    n_jobs : int, optional
        Threads that adjust batches at the same time; the order is kept. None is 1, -1 all cores.

    Yields
    ------
    pyarrow.RecordBatch
        One for each batch, in order: the columns that came in, then the appended ones.

    Raises
    ------
    InputError
        Names the row, counted from 0 over the whole stream, and the column. Batches before it
        have been yielded, none of it has.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from altnorm import AlternatingNormalizer
    >>> from altnorm.deploy.arrow import apply_batches
    >>> validation = np.array([[0.02, 0.98], [0.05, 0.95], [0.1, 0.9], [0.95, 0.05]])
    >>> labels = np.array(["dog", "dog", "dog", "cat"])
    >>> normalizer = AlternatingNormalizer(threshold=0.5, prior="uniform").fit(validation, labels)
    >>> batch = pa.record_batch({"id": [7, 8], "dog": [0.02, 0.55], "cat": [0.98, 0.45]})
    >>> (adjusted,) = apply_batches(normalizer, [batch])
    >>> adjusted.schema.names
    ['id', 'dog', 'cat', 'prediction']
    >>> adjusted["dog"].to_numpy().round(2), adjusted["prediction"].to_pylist()
    (array([0.02, 0.36]), ['cat', 'cat'])
    """
    options = columns, prefix, output, prediction

    def tasks() -> Iterator[Callable[[], pa.RecordBatch]]:
        plan, start = None, 0
        for batch in batches:
            plan = _make_plan(adjuster, batch.schema, *options) if plan is None else plan
            yield partial(_adjust, plan, batch, start)
            start += batch.num_rows

    return _in_order(tasks(), effective_n_jobs(n_jobs))


def output_schema(adjuster: FittedModel, schema: pa.Schema, **options: Any) -> pa.Schema:
    """Schema of what :func:`apply_batches` yields; engines want it before the first batch."""
    return _make_plan(adjuster, schema, **options).result


class _Plan(NamedTuple):
    """What to read, how to decide and what to write, settled once for a stream."""

    model: FittedModel
    schema: pa.Schema
    result: pa.Schema
    fields: list[pa.Field]  # of the probabilities: one per class, or the one of lists
    lists: pa.DataType | None  # type of the lists, under an extension type if there is one
    replace: bool
    classes: pa.Array | None  # what predictions are made of, if they are wanted


def _make_plan(
    model: FittedModel,
    schema: pa.Schema,
    columns: str | None = None,
    prefix: str = "",
    output: str | None = None,
    prediction: str | None = "prediction",
) -> _Plan:
    check_is_fitted(model)
    model = unnamed(model)
    names = names_of(model.classes_)
    fields = _find_fields(schema, names, columns, prefix)
    lists = None if columns is None else _list_type(fields[0], len(names))
    for field in fields:
        _check_floating(field, field.type if lists is None else lists.value_type)
    added, classes = [], None
    if output is not None:
        targets = [output + name for name in names] if lists is None else [output]
        added = [pa.field(t, f.type) for t, f in zip(targets, fields, strict=True)]
    if prediction is not None:
        classes = class_values(model)
        several = kind_of(model).is_multilabel
        added.append(pa.field(prediction, pa.list_(classes.type) if several else classes.type))
    result = pa.schema([*schema, *added], schema.metadata)
    _check_new(added, result.names)
    return _Plan(model, schema, result, fields, lists, output is None, classes)


def _find_fields(
    schema: pa.Schema, names: list[str], columns: str | None, prefix: str
) -> list[pa.Field]:
    """Columns of the classes `names`, or the column of lists if `columns` is its name.

    Every class has a column, and every column with the prefix is that of a class.
    """
    if not isinstance(columns, str | None):
        rule, offender = "`columns` must be the name of one column of lists", shown(repr(columns))
        remedy = "For one column per class, leave it out."
        raise InputTypeError(rule, f"it is {offender}", remedy, value=columns, code="parameter")
    wanted = [prefix + name for name in names] if columns is None else [columns]
    if columns is None:
        claim = [name for name in schema.names if name.startswith(prefix)]
        check_same_names(wanted, claim, extra=prefix != "")
    check_once(wanted, schema.names)
    return [schema.field(name) for name in wanted]


def class_values(model: FittedModel) -> pa.Array:
    """Classes as a column holds them."""
    try:
        return pa.array(np.asarray(model.classes_).tolist())
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # several types at once
        return pa.array(names_of(model.classes_))


def _check_new(added: list[pa.Field], names: list[str]) -> None:
    for field in added:
        if names.count(field.name) > 1:
            raise name_taken(field.name)


def _in_order(
    tasks: Iterator[Callable[[], pa.RecordBatch]], n_threads: int
) -> Iterator[pa.RecordBatch]:
    """Results of the tasks in their order, a few of them under way at a time."""
    if n_threads == 1:
        yield from (task() for task in tasks)
        return
    under_way: deque[Future[pa.RecordBatch]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for task in tasks:
            under_way.append(pool.submit(task))
            if len(under_way) > n_threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _adjust(plan: _Plan, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """Adjust one batch, whose first row is row `start` of the stream."""
    if not batch.schema.equals(plan.schema):
        difference = _difference(batch.schema, plan.schema)
        raise column_error(
            "All batches must have one schema",
            f"the one that starts at row {start} has another than the first: {difference}",
            "Cast the batches to one schema.",
        )
    stored = _read_matrix(plan, batch, start)
    values = _widen(plan.model, stored)
    adjusted = _transform(plan.model, values, start) if batch.num_rows else values
    # What half precision rounded and nobody adjusted stays as it was.
    exact = adjusted if values is stored else np.where(adjusted == values, stored, adjusted)
    written = _write_matrix(plan, exact)
    arrays = batch.columns
    if plan.replace:
        for field, array in zip(plan.fields, written, strict=True):
            arrays[plan.schema.get_field_index(field.name)] = array
    else:
        arrays += written
    if plan.classes is not None:
        arrays.append(class_column(_decide(plan.model, values, adjusted), plan.classes))
    return pa.RecordBatch.from_arrays(arrays, schema=plan.result)


def _difference(schema: pa.Schema, first: pa.Schema) -> str:
    pairs = zip_longest(schema, first)
    fields = next((new, old) for new, old in pairs if new is None or new != old)
    new, old = (None if field is None else f"{field.name!r} ({field.type})" for field in fields)
    return f"column {new} in place of {old}"


def _widen(model: FittedModel, stored: np.ndarray) -> np.ndarray:
    """Half precision is a storage format: rows are divided by their sums to undo its rounding."""
    if stored.dtype != np.float16:
        return stored
    wide = stored.astype(np.float32)
    if getattr(model, "input", "proba") != "proba" or kind_of(model).is_multilabel:
        return wide
    sums = wide.sum(axis=1, keepdims=True)
    return np.asarray(wide / np.where(np.abs(sums - 1) <= sum_tolerance("float16"), sums, 1))


def _transform(model: FittedModel, values: np.ndarray, start: int) -> np.ndarray:
    try:
        adjusted = np.asarray(model.transform(values))
    except ValueError as error:
        raise _located(error, start, names_of(model.classes_)) from None
    return check_adjusted(adjusted, start)


def _located(error: ValueError, start: int, names: list[str]) -> InputError:
    """Say the same with rows counted over the stream and columns by the name of their class."""
    located = error if isinstance(error, InputError) else InputError(str(error))
    if isinstance(located.place, Place):
        row, column, note = located.place
        where = "" if column is None else f", class {names[column]!r}"
        located = located.replace(place=f"row {start + row}{where} ({note})")
    return located.replace(
        rule=f"In the batch that starts at row {start}: {located.rule}" if start else located.rule
    )


def _decide(model: FittedModel, values: np.ndarray, adjusted: np.ndarray) -> np.ndarray:
    """Column of each row's class, one more for a person, or the 0/1 matrix of its labels."""
    # Rows need not be adjusted once more where their probabilities are all that decides.
    decides = getattr(type(model), "predict", None) is ProbabilityTransformer.predict
    if (decides and not decision_of(model).on_input) or not len(values):
        return decision_of(model).codes(adjusted)
    return decision_codes(model, values)


def class_column(decided: np.ndarray, classes: pa.Array) -> pa.Array:
    """Predicted class of each row, null if it is left to a person; or its list of labels."""
    if decided.ndim == 1:
        return classes.take(pa.array(decided, mask=decided == len(classes)))
    ends = np.cumsum(np.count_nonzero(decided, axis=1))
    labels = classes.take(pa.array(np.nonzero(decided)[1]))
    return pa.ListArray.from_arrays(np.append(0, ends).astype(np.int32), labels)


# Columns of numbers, or of lists, as a matrix and back.


def _read_matrix(plan: _Plan, batch: pa.RecordBatch, start: int) -> np.ndarray:
    """Probabilities of a batch whose first row is row `start` of the stream, (n, m) in C order.

    A view of the entries for lists; columns are copied.
    """
    arrays = [batch.column(field.name) for field in plan.fields]
    for field, array in zip(plan.fields, arrays, strict=True):
        _check_nulls(array, 1, field.name, start)
    if plan.lists is None:
        return np.column_stack([array.to_numpy() for array in arrays])
    (field,), (array,), m = plan.fields, arrays, len(plan.model.classes_)
    lists = array.storage if isinstance(array, pa.ExtensionArray) else array
    if not pa.types.is_fixed_size_list(lists.type):
        _check_lengths(np.diff(lists.offsets.to_numpy()), m, field.name, start)
    # Not `.values`, which ignores where a sliced array begins and ends.
    entries = lists.flatten()
    _check_nulls(entries, m, field.name, start)
    return entries.to_numpy().reshape(len(array), m)


def _write_matrix(plan: _Plan, values: np.ndarray) -> list[pa.Array]:
    """Arrays of the types that the probabilities came in."""
    if plan.lists is None:
        return [_entries(values[:, j], field.type) for j, field in enumerate(plan.fields)]
    type_ = plan.fields[0].type
    entries = _entries(values.reshape(-1), plan.lists.value_type)
    array = pa.FixedSizeListArray.from_arrays(entries, values.shape[1]).cast(plan.lists)
    return [array if plan.lists is type_ else pa.ExtensionArray.from_storage(type_, array)]


def _entries(values: np.ndarray, type_: pa.DataType) -> pa.Array:
    return pa.array(np.ascontiguousarray(values, dtype=type_.to_pandas_dtype()))


def _list_type(field: pa.Field, n_classes: int) -> pa.DataType:
    """The list type of a column, under its extension type if it has one."""
    type_ = field.type
    type_ = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
    fixed = pa.types.is_fixed_size_list(type_)
    if not (fixed or pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        remedy = "For one column per class, leave `columns` out."
        raise _type_error(field, "lists of floating-point numbers", remedy)
    if fixed and type_.list_size != n_classes:
        raise _length_error(field.name, n_classes, f"their type says {type_.list_size}")
    return type_


def _check_floating(field: pa.Field, type_: pa.DataType) -> None:
    if not pa.types.is_floating(type_):
        remedy = "Cast it to float32 or float64 if its values really are probabilities."
        raise _type_error(field, "floating-point numbers", remedy)


def _type_error(field: pa.Field, content: str, remedy: str) -> InputTypeError:
    rule, offender = f"Column {field.name!r} must hold {content}", f"its type is {field.type}"
    return InputTypeError(rule, offender, remedy, value=field.type, code="columns")


def _check_nulls(array: pa.Array, entries_per_row: int, name: str, start: int) -> None:
    if array.null_count:
        nulls = plural(array.null_count, "null")
        first = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        row = start + first // entries_per_row
        raise column_error(
            "Probabilities must not be null",
            f"column {name!r} has {nulls} in this batch, the first in row {row}",
            "Drop or fill those rows.",
        )


def _check_lengths(lengths: np.ndarray, n_classes: int, name: str, start: int) -> None:
    wrong = np.flatnonzero(lengths != n_classes)
    if wrong.size:
        first = f"the first is row {start + wrong[0]} (length {lengths[wrong[0]]})"
        raise _length_error(name, n_classes, f"{wrong.size} in this batch do not, {first}")


def _length_error(name: str, n_classes: int, offender: str) -> InputError:
    rule = f"Lists in column {name!r} must have one entry per class, {n_classes}"
    remedy = "Pass probabilities of all classes, in the order of `classes_`."
    return column_error(rule, offender, remedy)
