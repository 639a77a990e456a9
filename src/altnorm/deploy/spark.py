"""A fitted model on Spark: record batches, partition by partition, on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from altnorm._base.errors import InputError, needing_extra

with needing_extra("spark"):
    from pyspark import TaskContext
    from pyspark.ml.functions import array_to_vector, vector_to_array
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql import functions, types as sql

import pyarrow as pa

from altnorm.deploy.arrow import apply_batches, output_schema
from altnorm.estimator.kinds import FittedModel

_TYPES = {
    sql.FloatType(): pa.float32(),
    sql.DoubleType(): pa.float64(),
    sql.StringType(): pa.string(),
    sql.LongType(): pa.int64(),
    sql.BooleanType(): pa.bool_(),
}


def transform(
    df: Any,
    adjuster: FittedModel,
    *,
    columns: str | None = None,
    prefix: str = "",
    output: str | None = None,
    prediction: str | None = "prediction",
) -> Any:
    """Adjust the class probabilities in a Spark data frame, and decide, by ``mapInArrow``.

    The model is broadcast once; the executors, where altnorm must be installed, adjust their
    partitions with :func:`altnorm.arrow.apply_batches`. No rows are exchanged. Names and types are
    checked at once, rows when an action runs, counted within their partition.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        One column per class (float or double), or one column of arrays of them, or of vectors of
        Spark ML.
    adjuster, columns, prefix, output, prediction
        As for :func:`altnorm.arrow.apply_batches`.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns of `df` in their order, then the appended ones; evaluated lazily. Adjusted
        vectors are dense.

    Examples
    --------
    >>> from altnorm.deploy.spark import transform
    >>> transform(df, adjuster).write.parquet("adjusted.parquet")  # doctest: +SKIP
    """
    options: dict[str, Any] = dict(
        columns=columns, prefix=prefix, output=output, prediction=prediction
    )
    schema = _result_type(df.schema, adjuster, options)
    if isinstance(columns, str) and isinstance(df.schema[columns].dataType, VectorUDT):
        return _transform_vectors(df, adjuster, columns, output or columns, prediction)
    context = getattr(df.sparkSession, "sparkContext", None)  # not under Spark Connect
    # Without one the model travels with the function.
    shared: Any = context.broadcast(adjuster) if context else SimpleNamespace(value=adjuster)

    def adjust(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from apply_batches(shared.value, batches, **options)
        except InputError as error:
            task = TaskContext.get()
            where = "" if task is None else f"In partition {task.partitionId()}: "
            raise error.replace(rule=where + error.rule) from None

    return df.mapInArrow(adjust, schema)


def _transform_vectors(
    df: Any, adjuster: FittedModel, column: str, target: str, prediction: str | None
) -> Any:
    """By way of arrays, which is what Arrow knows; what Spark ML noted about the column stays."""
    vectors = functions.col(column)
    # The function fails on a null; a null array is found, counted and located by altnorm.
    arrays = functions.when(vectors.isNotNull(), vector_to_array(vectors))
    adjusted = transform(
        df.withColumn(target, arrays), adjuster, columns=target, prediction=prediction
    )
    back = array_to_vector(functions.col(target))
    return adjusted.withColumn(target, back.alias(target, metadata=df.schema[column].metadata))


def _result_type(schema: Any, adjuster: FittedModel, options: dict[str, Any]) -> Any:
    """Spark type of the result; fields that stay are kept as they are."""
    arrow_schema = pa.schema([(field.name, _to_arrow(field.dataType)) for field in schema.fields])
    result = output_schema(adjuster, arrow_schema, **options)
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
