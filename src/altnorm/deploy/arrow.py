"""Record batches in, record batches out: the way to every engine that speaks Arrow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from altnorm._base.errors import InputError, InputTypeError, Place
from altnorm._base.frames import check_once, check_same_names
from altnorm._base.normalizer import FittedNormalizer
from altnorm.io.columns import check_adjusted, names_of
from altnorm.method.estimator import ProbabilityTransformer, unnamed
from altnorm.method.kinds import kind_of

try:
    import pyarrow as pa
except ImportError as error:
    raise ImportError(
        "altnorm.arrow needs the `arrow` extra; install it with pip install 'altnorm[arrow]'"
    ) from error


def apply_batches(
    adjuster: FittedNormalizer,
    batches: Iterable[pa.RecordBatch],
    *,
    columns: str | Sequence[str] | None = None,
    prefix: str = "",
    output: str | None = None,
    prediction: str | None = "prediction",
    n_jobs: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Adjust a stream of record batches, and decide; memory does not grow with its length.

    Probabilities come one column per class, matched to ``adjuster.classes_`` by name in any
    order, or as one column of lists (fixed-size lists, lists or large lists, or an extension type
    stored as one of them), whose entries follow ``adjuster.classes_``. All other columns pass
    through untouched. A fixed-size list is read without a copy, and every result is handed to
    Arrow without one.

    Parameters
    ----------
    adjuster : Adjuster, AlternatingNormalizer or any fitted object with their methods
        Only ``transform``, ``predict`` and ``classes_`` are used. Each batch is adjusted on its
        own, so rows must not depend on each other.
    batches : iterable of pyarrow.RecordBatch
        All of one schema, for example a ``pyarrow.RecordBatchReader``. Floating-point numbers of
        any width; they keep it.
    columns : str or sequence of str, optional
        A string is the name of the column of lists. A sequence names the columns of the classes,
        each of which must be one. None finds them: every class (after `prefix`) must have a
        column.
    prefix : str, default=""
        What precedes the class in the name of its column. A column with a prefix that is not a
        class is an error.
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
        Where the stream breaks a rule: the message names the row, counted from 0 over the whole
        stream, and the column. Batches before it have been yielded, none of it has.

    See Also
    --------
    altnorm.deploy.spark.transform, altnorm.deploy.ray.transform : The same on a cluster.

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
    options: dict[str, Any] = {
        "columns": columns,
        "prefix": prefix,
        "output": output,
        "prediction": prediction,
    }

    def tasks() -> Iterator[Callable[[], pa.RecordBatch]]:
        plan, start = None, 0
        for batch in batches:
            plan = _plan(adjuster, batch.schema, **options) if plan is None else plan
            yield partial(_adjust, plan, batch, start)
            start += batch.num_rows

    return _in_order(tasks(), effective_n_jobs(n_jobs))


def output_schema(
    adjuster: FittedNormalizer,
    schema: pa.Schema,
    *,
    columns: str | Sequence[str] | None = None,
    prefix: str = "",
    output: str | None = None,
    prediction: str | None = "prediction",
) -> pa.Schema:
    """Schema of what :func:`apply_batches` yields; engines want it before the first batch."""
    plan = _plan(
        adjuster, schema, columns=columns, prefix=prefix, output=output, prediction=prediction
    )
    return plan.result


class _BatchPlan(NamedTuple):
    """What to read, how to decide and what to write, settled once for a stream."""

    normalizer: FittedNormalizer
    schema: pa.Schema
    result: pa.Schema
    layout: _Layout
    replace: bool
    labels: pa.DataType | None  # type of the column of predictions


def _plan(
    normalizer: FittedNormalizer,
    schema: pa.Schema,
    *,
    columns: Any,
    prefix: Any,
    output: Any,
    prediction: Any,
) -> _BatchPlan:
    check_is_fitted(normalizer)
    normalizer = unnamed(normalizer)
    names = names_of(normalizer.classes_)
    layout = _find_layout(schema, names, columns, prefix)
    added, labels = [], None
    if output is not None:
        targets = [output] if layout.lists else [output + name for name in names]
        added = [pa.field(t, f.type) for t, f in zip(targets, layout.fields, strict=True)]
    if prediction is not None:
        labels = _label_type(normalizer)
        added.append(pa.field(prediction, labels))
    result = _append(schema, added)
    return _BatchPlan(normalizer, schema, result, layout, output is None, labels)


def _label_type(normalizer: FittedNormalizer) -> pa.DataType:
    """Type of one prediction: a class, or a list of them if predictions are a 0/1 matrix."""
    type_ = _class_values(normalizer).type
    return pa.list_(type_) if kind_of(normalizer).is_multilabel else type_


def _class_values(normalizer: FittedNormalizer) -> pa.Array:
    labels = np.asarray(normalizer.classes_).tolist()
    try:
        return pa.array(labels)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # several types at once
        return pa.array(names_of(normalizer.classes_))


def _append(schema: pa.Schema, added: list[pa.Field]) -> pa.Schema:
    present = set(schema.names)
    for field in added:
        if field.name in present:
            raise InputError(
                "An appended column must have a new name",
                f"there is a column {field.name!r} already",
                "Pass another `output` or `prediction`.",
                value=field.name,
                code="columns",
            )
        present.add(field.name)
    return pa.schema([*schema, *added], schema.metadata)


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


def _adjust(plan: _BatchPlan, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """Adjust one batch, whose first row is row `start` of the stream."""
    if not batch.schema.equals(plan.schema):
        raise InputError(
            "All batches must have one schema",
            f"the one that starts at row {start} has another than the first: "
            f"{_first_difference(batch.schema, plan.schema)}",
            "Cast the batches to one schema.",
            code="columns",
        )
    stored = _read_matrix(plan.layout, batch, start)
    values = _widen(plan.normalizer, stored)
    adjusted = _transform(plan, values, start) if batch.num_rows else values
    # What half precision rounded and nobody adjusted stays as it was.
    exact = adjusted if values is stored else np.where(adjusted == values, stored, adjusted)
    written = _write_matrix(plan.layout, exact)
    arrays = batch.columns
    if plan.replace:
        for i, array in zip(plan.layout.positions, written, strict=True):
            arrays[i] = array
    else:
        arrays += written
    if plan.labels is not None:
        arrays.append(_labels(plan, values, adjusted))
    return pa.RecordBatch.from_arrays(arrays, schema=plan.result)


def _first_difference(schema: pa.Schema, first: pa.Schema) -> str:
    pairs = zip_longest(schema, first)
    differing = next(((new, old) for new, old in pairs if new is None or new != old), (None, None))
    new, old = (None if field is None else f"{field.name!r} ({field.type})" for field in differing)
    return f"column {new} in place of {old}"


def _widen(normalizer: FittedNormalizer, stored: np.ndarray) -> np.ndarray:
    """Half precision is a storage format: rows are divided by their sums to undo its rounding."""
    if stored.dtype != np.float16:
        return stored
    wide = stored.astype(np.float32)
    is_proba = getattr(normalizer, "input", "proba") == "proba"
    return kind_of(normalizer).unrounded(wide, "float16") if is_proba else wide


def _transform(plan: _BatchPlan, values: np.ndarray, start: int) -> np.ndarray:
    try:
        adjusted = np.asarray(plan.normalizer.transform(values))
    except ValueError as error:
        names = names_of(plan.normalizer.classes_)
        raise _located(error, values, start, names) from None
    return check_adjusted(adjusted, start)


def _located(error: ValueError, values: np.ndarray, start: int, names: list[str]) -> InputError:
    """Say the same with rows counted over the stream and columns by the name of their class."""
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size:
        i, j = wrong[0]
        return InputError(
            "Probabilities must be finite",
            f"{len(wrong)} in this batch are not",
            "Drop or repair those rows.",
            value=float(values[i, j]),
            code="not_finite",
            place=f"row {start + i}, class {names[j]!r} ({values[i, j]})",
        )
    located = error if isinstance(error, InputError) else InputError(str(error))
    if isinstance(located.place, Place):
        row, column, note = located.place
        where = "" if column is None else f", class {names[column]!r}"
        located = located.replace(place=f"row {start + row}{where} ({note})")
    return located.replace(
        rule=f"In the batch that starts at row {start}: {located.rule}" if start else located.rule
    )


def _labels(plan: _BatchPlan, values: np.ndarray, adjusted: np.ndarray) -> pa.Array:
    """Predicted class of each row, null if it is left to a person; or its list of labels."""
    decided = _decide(plan.normalizer, values, adjusted)
    classes = _class_values(plan.normalizer)
    if decided.ndim == 1:
        return classes.take(pa.array(decided, mask=decided == len(classes)))
    ends = np.cumsum(np.count_nonzero(decided, axis=1))
    labels = classes.take(pa.array(np.nonzero(decided)[1]))
    return pa.ListArray.from_arrays(np.append(0, ends).astype(np.int32), labels)


def _decide(normalizer: FittedNormalizer, values: np.ndarray, adjusted: np.ndarray) -> np.ndarray:
    """Column of each row's class, one more for a person, or the 0/1 matrix of its labels."""
    kind, decision = kind_of(normalizer), getattr(normalizer, "decision_", None)
    usual = getattr(type(normalizer), "predict", None) is ProbabilityTransformer.predict
    # Rows need not be adjusted once more where their probabilities are all that decides.
    if not len(values) or (usual and decision is None):
        return kind.decide(adjusted)
    if decision is not None and adjusted.dtype == np.float64:
        return np.asarray(decision.codes(adjusted))
    predicted = np.asarray(normalizer.predict(values))
    if kind.is_multilabel:
        return predicted
    columns = {label: j for j, label in enumerate(normalizer.classes_.tolist())}
    return np.array([columns.get(label, len(columns)) for label in predicted.tolist()])


class _Layout(NamedTuple):
    """Where the probabilities of the classes are, in the order of the classes."""

    fields: list[pa.Field]  # one per class, or the one of lists
    positions: list[int]
    lists: bool
    n_classes: int


def _find_layout(
    schema: pa.Schema, names: list[str], columns: str | Sequence[str] | None, prefix: str
) -> _Layout:
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
    return _Layout(fields, positions, lists, len(names))


def _read_matrix(layout: _Layout, batch: pa.RecordBatch, start: int) -> np.ndarray:
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


def _write_matrix(layout: _Layout, values: np.ndarray) -> list[pa.Array]:
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


def _read_lists(layout: _Layout, array: pa.Array, start: int) -> np.ndarray:
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


def _write_lists(layout: _Layout, values: np.ndarray) -> pa.Array:
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
