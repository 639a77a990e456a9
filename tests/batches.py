"""Record batches of predictions, and the normalizers that they go through."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer

pa = pytest.importorskip("pyarrow")

CLASSES = np.array(["ant", "bee", "cat", "dog"])
CLUSTER_CLASSES, CLUSTER_ROWS = CLASSES[:3], 3000  # what Ray and Spark are given
LIST_TYPES = {
    "fixed": lambda value: pa.list_(value, 4),
    "list": lambda value: pa.list_(value),
    "large": lambda value: pa.large_list(value),
    "tensor": lambda value: pa.fixed_shape_tensor(value, (4,)),
}


def draw(n, m=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(m, 0.4), size=n).astype(dtype)


def fit_drawn(classes, n):
    """Fit to `n` drawn rows that have all classes equally often."""
    m = len(classes)
    return AlternatingNormalizer(threshold=0.6).fit(draw(n, m), np.tile(classes, n // m))


def class_batch(proba, names=CLASSES, **others):
    columns = {str(name): np.ascontiguousarray(proba[:, j]) for j, name in enumerate(names)}
    return pa.record_batch(columns | others)


def list_batch(proba, kind="fixed", name="scores"):
    value = pa.from_numpy_dtype(proba.dtype)
    type_ = LIST_TYPES[kind](value)
    storage = type_.storage_type if kind == "tensor" else type_
    array = pa.array(list(proba), storage)
    return pa.record_batch(
        {name: pa.ExtensionArray.from_storage(type_, array) if kind == "tensor" else array}
    )


def matrix(batch, names=CLASSES):
    return np.column_stack([batch[str(name)].to_numpy() for name in names])


def list_matrix(batch, name="scores"):
    array = batch[name]
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    return array.flatten().to_numpy().reshape(batch.num_rows, -1)
