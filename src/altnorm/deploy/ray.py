"""A fitted model on Ray Data: record batches, block by block, on the workers."""

from __future__ import annotations

from typing import Any

from altnorm._base.errors import InputError, needing_extra

with needing_extra("ray"):
    import ray
    import ray.data

import pyarrow as pa

from altnorm.deploy.arrow import apply_batches, output_schema
from altnorm.estimator.kinds import FittedModel


def transform(
    ds: Any,
    adjuster: FittedModel,
    *,
    columns: str | None = None,
    prefix: str = "",
    output: str | None = None,
    prediction: str | None = "prediction",
    **remote: Any,
) -> Any:
    """Adjust the class probabilities in a Ray dataset, and decide, by ``map_batches``.

    The model is put into the object store once; the workers, where altnorm must be installed,
    adjust their blocks with :func:`altnorm.arrow.apply_batches`.

    Parameters
    ----------
    ds : ray.data.Dataset
        One column per class, or one column of lists or of one-dimensional tensors.
    adjuster, columns, prefix, output, prediction
        As for :func:`altnorm.arrow.apply_batches`.
    **remote
        Passed on to ``map_batches``, for example ``num_cpus`` or ``concurrency``. Unless there is a
        ``batch_size`` among them, blocks are taken whole, without a copy.

    Returns
    -------
    ray.data.Dataset
        The columns of `ds` in their order, then the appended ones; evaluated lazily, and so are
        its errors, rows counted within a block.

    Examples
    --------
    >>> from altnorm.deploy.ray import transform
    >>> transform(ds, adjuster).write_parquet("adjusted")  # doctest: +SKIP
    """
    options: dict[str, Any] = dict(
        columns=columns, prefix=prefix, output=output, prediction=prediction
    )
    shared = ray.put(adjuster)

    def adjust(table: pa.Table) -> pa.Table:
        fitted = ray.get(shared)
        try:
            schema = output_schema(fitted, table.schema, **options)
            return pa.Table.from_batches(
                apply_batches(fitted, table.to_batches(), **options), schema
            )
        except InputError as error:
            where = f"In a block of {table.num_rows} rows: "
            raise error.replace(rule=where + error.rule) from None

    remote = {"batch_size": None, **remote}
    return ds.map_batches(adjust, batch_format="pyarrow", zero_copy_batch=True, **remote)
