"""Spark data frames, by ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import types as sql

from altnorm._base.errors import InputError
from altnorm.deploy.arrow import apply_batches, output_schema
from altnorm.deploy.spark._vectors import VectorUDT, arrays_to_vectors, is_vector, vectors_to_arrays
from altnorm.deploy.windows import COLUMN, add_up, sums_of
from altnorm.deploy.worker_errors import portable, worker_errors

_TYPES = {
    sql.FloatType(): pa.float32(),
    sql.DoubleType(): pa.float64(),
    sql.StringType(): pa.string(),
    sql.LongType(): pa.int64(),
    sql.BooleanType(): pa.bool_(),
}


def transform(
    df: Any,
    normalizer: Any,
    *,
    columns: str | Sequence[str] | None = None,
    prefix: str = "",
    output: str | None = None,
    prediction: str | None = None,
) -> Any:
    """Adjust the class probabilities in a Spark data frame, by ``mapInArrow``.

    The normalizer is broadcast once; each executor adjusts the record batches of its partitions
    with :func:`altnorm.deploy.arrow.apply_batches` and needs altnorm installed. No rows are
    exchanged. Names and types are checked at once, rows when an action runs: see
    :func:`input_errors`.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        One column per class (float or double), or one column of arrays of them, or of vectors of
        Spark ML.
    normalizer : AlternatingNormalizer or any fitted object with its methods
        As for :func:`altnorm.deploy.arrow.apply_batches`.
    columns : str or sequence of str, optional
        Name of the column of arrays or vectors, or names of the columns of the classes; None
        finds these by the names of the classes.
    prefix, output, prediction
        As for :func:`altnorm.deploy.arrow.apply_batches`.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns of `df` in their order, then the appended ones; evaluated lazily, as ever.
        Adjusted vectors are dense.

    Raises
    ------
    InputError
        If names or types are wrong.

    Examples
    --------
    >>> from altnorm.deploy.spark import input_errors, transform
    >>> adjusted = transform(df, normalizer, prediction="class")  # doctest: +SKIP
    >>> with input_errors():  # doctest: +SKIP
    ...     adjusted.write.parquet("adjusted.parquet")
    """
    options = {"columns": columns, "prefix": prefix, "output": output, "prediction": prediction}
    schema = _result_type(df.schema, normalizer, options)
    if not is_vector(df.schema, columns):
        return df.mapInArrow(_adjuster(_share(df, normalizer), options), schema)
    assert isinstance(columns, str)
    target = columns if output is None else output
    arrays = transform(
        vectors_to_arrays(df, columns, target),
        normalizer,
        columns=target,
        prediction=prediction,
    )
    return arrays_to_vectors(arrays, target, df.schema[columns].metadata)


def take_in(
    df: Any, normalizer: Any, *, columns: str | Sequence[str] | None = None, prefix: str = ""
) -> Any:
    """Sum a Spark data frame up, for ``normalizer.adapt``: one pass, and only sums are exchanged.

    Parameters
    ----------
    df, columns, prefix
        As for :func:`transform`.
    normalizer : Adjuster or AlternatingNormalizerCV
        Fitted.

    Returns
    -------
    Window
        What ``normalizer.adapt`` takes in the place of rows.

    Examples
    --------
    >>> from altnorm.deploy.spark import take_in, transform
    >>> adapted = normalizer.adapt(take_in(df, normalizer))  # doctest: +SKIP
    >>> transform(df, adapted)  # doctest: +SKIP
    """
    if is_vector(df.schema, columns):
        assert isinstance(columns, str)
        df = vectors_to_arrays(df, columns, columns)
    shared, where = _share(df, normalizer), {"columns": columns, "prefix": prefix}

    def sums(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _naming_partition():
            yield from sums_of(shared.value, batches, **where)

    type_ = sql.StructType([sql.StructField(COLUMN, sql.ArrayType(sql.DoubleType()))])
    with input_errors():
        rows = df.mapInArrow(sums, type_).collect()
    return add_up(normalizer, (row[COLUMN] for row in rows))


@contextmanager
def input_errors() -> Iterator[None]:
    """Raise what an executor has to say about the data as an InputError with that sentence alone.

    Spark evaluates lazily, so the rows are checked when an action runs. Around the action, this
    replaces Spark's exception with the stack traces by the one from altnorm; others pass.

    Raises
    ------
    InputError
        If altnorm on an executor raised it; rows are counted within the partition it names.

    Examples
    --------
    >>> from altnorm.deploy.spark import input_errors
    >>> with input_errors():
    ...     pass  # adjusted.write.parquet("adjusted.parquet")
    """
    with worker_errors(PySparkException):
        yield


class _Carried(NamedTuple):
    """Stands in for a broadcast variable where there is none (Spark Connect)."""

    value: Any


def _share(df: Any, normalizer: Any) -> Any:
    """The normalizer as something with a `value` on every executor."""
    context = getattr(df.sparkSession, "sparkContext", None)
    return _Carried(normalizer) if context is None else context.broadcast(normalizer)


def _adjuster(shared: Any, options: dict[str, Any]) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    def adjust(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _naming_partition():
            yield from apply_batches(shared.value, batches, **options)

    return adjust


@contextmanager
def _naming_partition() -> Iterator[None]:
    """Let what an executor has to say name the partition and reach the driver."""
    try:
        yield
    except InputError as error:
        task = TaskContext.get()
        where = "" if task is None else f"In partition {task.partitionId()}: "
        raise portable(error, where) from None


def _result_type(schema: Any, normalizer: Any, options: dict[str, Any]) -> Any:
    """Spark type of the result; fields that stay are kept as they are."""
    given = pa.schema([(field.name, _to_arrow(field.dataType)) for field in schema.fields])
    result = output_schema(normalizer, given, **options)
    added = [
        sql.StructField(field.name, _to_spark(field.type))
        for field in list(result)[len(schema.fields) :]
    ]
    return sql.StructType(schema.fields + added)


def _to_arrow(type_: Any) -> pa.DataType:
    if isinstance(type_, VectorUDT):
        return pa.list_(pa.float64())
    if isinstance(type_, sql.ArrayType):
        return pa.list_(_to_arrow(type_.elementType))
    return _TYPES.get(type_, pa.null())  # what is no probability passes, whatever it is


def _to_spark(type_: pa.DataType) -> Any:
    if pa.types.is_list(type_):
        return sql.ArrayType(_to_spark(type_.value_type))
    return next(spark for spark, arrow in _TYPES.items() if arrow == type_)
