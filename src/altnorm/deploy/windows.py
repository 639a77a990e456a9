"""What `adapt` needs of data that are spread over machines: a vector of sums for each part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from altnorm._base.errors import InputError
from altnorm.adjuster import Window
from altnorm.deploy.arrow import take_in_batches

COLUMN = "sums"


def sums_of(
    normalizer: Any, batches: Iterable[pa.RecordBatch], **where: Any
) -> Iterator[pa.RecordBatch]:
    """Yield one row with the sums over the batches, or nothing where these have no rows."""
    window = take_in_batches(normalizer, batches, **where)
    if window is not None:
        sums = pa.array([window.to_vector()], pa.list_(pa.float64()))
        yield pa.RecordBatch.from_arrays([sums], [COLUMN])


def add_up(normalizer: Any, vectors: Iterable[Any]) -> Window:
    """Add the sums of all parts up."""
    found = [np.asarray(vector, dtype=np.float64) for vector in vectors]
    if not found:
        raise InputError(
            "Adapting needs predictions", "there are no rows", "Pass some hundred.", code="rows"
        )
    return Window.from_vector(np.sum(found, axis=0), len(normalizer.classes_))
