"""Vectors of Spark ML as arrays, which is what Arrow knows, and back."""

from __future__ import annotations

from typing import Any

from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.ml.linalg import VectorUDT as VectorUDT
from pyspark.sql import functions


def is_vector(schema: Any, columns: Any) -> bool:
    """Whether `columns` is the name of one column of vectors."""
    named = isinstance(columns, str) and columns in schema.names
    return named and isinstance(schema[columns].dataType, VectorUDT)


def vectors_to_arrays(df: Any, column: str, target: str) -> Any:
    """Return the frame with a column of vectors as arrays, under the name `target`."""
    vectors = functions.col(column)
    # The function fails on a null; a null array is found, counted and located by altnorm.
    arrays = functions.when(vectors.isNotNull(), vector_to_array(vectors))
    return df.withColumn(target, arrays)


def arrays_to_vectors(df: Any, column: str, metadata: dict[str, Any]) -> Any:
    """Return the frame with a column of arrays as vectors, with what Spark ML noted about it."""
    vectors = array_to_vector(functions.col(column))
    return df.withColumn(column, vectors.alias(column, metadata=metadata))
