"""A fitted normalizer on Ray Data: record batches, block by block, on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

try:
    import ray
    import ray.data
except ImportError as error:
    raise ImportError(
        "altnorm.ray needs the `ray` extra; install it with pip install 'altnorm[ray]'"
    ) from error

import pyarrow as pa

from altnorm._base.errors import InputError
from altnorm.deploy.arrow import apply_batches, output_schema
from altnorm.deploy.windows import COLUMN, add_up, sums_of
from altnorm.deploy.worker_errors import portable, worker_errors


def transform(
    ds: Any,
    normalizer: Any,
    *,
    columns: str | Sequence[str] | None = None,
    prefix: str = "",
    output: str | None = None,
    prediction: str | None = None,
    batch_size: int | None = None,
    **remote: Any,
) -> Any:
    """Adjust the class probabilities in a Ray dataset, by ``map_batches``.

    The normalizer is put into the object store once; each worker adjusts the blocks it is given
    with :func:`altnorm.deploy.arrow.apply_batches`, and needs altnorm installed.

    Parameters
    ----------
    ds : ray.data.Dataset
        One column per class, or one column of lists or of one-dimensional tensors.
    normalizer : AlternatingNormalizer or any fitted object with its methods
        As for :func:`altnorm.deploy.arrow.apply_batches`.
    columns, prefix, output, prediction
        As for :func:`altnorm.deploy.arrow.apply_batches`.
    batch_size : int, optional
        Rows a task adjusts at a time; None takes blocks whole, without a copy.
    **remote
        Passed on to ``map_batches``, for example ``num_cpus`` or ``concurrency``.

    Returns
    -------
    ray.data.Dataset
        The columns of `ds` in their order, then the appended ones; evaluated lazily, as ever.
        What is wrong with a name or a row is raised when it is: see :func:`input_errors`.

    Examples
    --------
    >>> from altnorm.deploy.ray import input_errors, transform
    >>> adjusted = transform(ds, normalizer, prediction="class")  # doctest: +SKIP
    >>> with input_errors():  # doctest: +SKIP
    ...     adjusted.write_parquet("adjusted")
    """
    options = {"columns": columns, "prefix": prefix, "output": output, "prediction": prediction}
    return ds.map_batches(
        _adjuster(ray.put(normalizer), options),
        batch_format="pyarrow",
        zero_copy_batch=True,
        batch_size=batch_size,
        **remote,
    )


def take_in(
    ds: Any,
    normalizer: Any,
    *,
    columns: str | Sequence[str] | None = None,
    prefix: str = "",
    **remote: Any,
) -> Any:
    """Sum a Ray dataset up, for ``normalizer.adapt``: one pass, and only sums are exchanged.

    Parameters
    ----------
    ds, columns, prefix, **remote
        As for :func:`transform`.
    normalizer : Adjuster or AlternatingNormalizerCV
        As for :func:`altnorm.deploy.arrow.take_in_batches`.

    Returns
    -------
    Window
        As from :func:`altnorm.deploy.arrow.take_in_batches`.

    Examples
    --------
    >>> from altnorm.deploy.ray import take_in, transform
    >>> adapted = normalizer.adapt(take_in(ds, normalizer))  # doctest: +SKIP
    >>> transform(ds, adapted)  # doctest: +SKIP
    """
    shared, where = ray.put(normalizer), {"columns": columns, "prefix": prefix}

    def sums(table: pa.Table) -> pa.Table:
        try:
            found = list(sums_of(ray.get(shared), table.to_batches(), **where))
        except InputError as error:
            raise portable(error, f"In a block of {table.num_rows} rows: ") from None
        schema = pa.schema({COLUMN: pa.list_(pa.float64())})
        return pa.Table.from_batches(found, schema)

    how: dict[str, Any] = {"batch_format": "pyarrow", "zero_copy_batch": True, "batch_size": None}
    with input_errors():
        rows = ds.map_batches(sums, **how, **remote).take_all()
    return add_up(normalizer, (row[COLUMN] for row in rows))


@contextmanager
def input_errors() -> Iterator[None]:
    """Raise what a worker has to say about the data as an InputError with that sentence alone.

    Put it around what evaluates the dataset; exceptions that are not about the data pass.

    Raises
    ------
    InputError
        If altnorm on a worker raised it; rows are counted within a block.

    Examples
    --------
    >>> from altnorm.deploy.ray import input_errors
    >>> with input_errors():
    ...     pass  # adjusted.write_parquet("adjusted")
    """
    with worker_errors(ray.exceptions.RayError):
        yield


def _adjuster(shared: Any, options: dict[str, Any]) -> Callable[[pa.Table], pa.Table]:
    def adjust(table: pa.Table) -> pa.Table:
        normalizer = ray.get(shared)
        try:
            schema = output_schema(normalizer, table.schema, **options)
            batches = apply_batches(normalizer, table.to_batches(), **options)
            return pa.Table.from_batches(batches, schema)
        except InputError as error:
            raise portable(error, f"In a block of {table.num_rows} rows: ") from None

    return adjust
