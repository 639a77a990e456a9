"""The normalizer on a local Ray with two workers."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer
from tests.batches import CLUSTER_CLASSES as CLASSES, CLUSTER_ROWS as N_ROWS, matrix

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pa = pytest.importorskip("pyarrow")
adapter = pytest.importorskip("altnorm.ray")

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def table(proba):
    columns = {str(name): proba[:, j] for j, name in reversed(list(enumerate(CLASSES)))}
    return pa.table(
        {"id": np.arange(N_ROWS), **columns, "text": [f"row {i}" for i in range(N_ROWS)]}
    )


def gather(ds):
    """All rows as one table, in the order of their ids."""
    return pa.concat_tables(ray.get(ds.to_arrow_refs())).sort_by("id")


def test_equal_to_the_local_result_row_for_row(table, adjuster, proba):
    ds = ray.data.from_arrow([table.slice(0, 1000), table.slice(1000)])
    out = gather(adapter.transform(ds, adjuster, prediction="class"))
    assert out.column_names == [*table.column_names, "class"]
    assert out.schema.field("cat").type == pa.float64()
    np.testing.assert_allclose(matrix(out, CLASSES), adjuster.transform(proba), atol=1e-12, rtol=0)
    assert out["class"].to_pylist() == adjuster.predict(proba).tolist()
    assert None in out["class"].to_pylist()
    assert out.select(["id", "text"]).equals(table.select(["id", "text"]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tensors(normalizer, proba, dtype):
    exact = proba.astype(dtype)
    ds = ray.data.from_numpy(exact)
    out = adapter.transform(ds, normalizer, columns="data", prediction=None)
    assert out.schema().types == ds.schema().types
    adjusted = np.concatenate([batch["data"] for batch in out.iter_batches(batch_format="numpy")])
    assert adjusted.dtype == dtype
    np.testing.assert_array_equal(adjusted, normalizer.transform(exact))


def test_the_normalizer_is_put_once(table, normalizer, monkeypatch):
    put, shared = ray.put, []

    def counting(value, **options):
        shared.append(value)
        return put(value, **options)

    monkeypatch.setattr(ray, "put", counting)
    ds = ray.data.from_arrow([table.slice(0, 1000), table.slice(1000)])
    adapter.transform(ds, normalizer)
    assert [value for value in shared if isinstance(value, AlternatingNormalizer)] == [normalizer]


def test_an_error_says_what_is_wrong_with_the_data(table, normalizer):
    wrong = table["bee"].to_numpy().copy()
    wrong[517] += 0.3
    broken = ray.data.from_arrow(table.drop(["bee"]).append_column("bee", pa.array(wrong)))
    expected = (
        r"In a block of \d+ rows: Each row of `proba` must sum to 1; 1 of \d+ rows do not, "
        r"the first is row \d+ \(sum 1\.3\)"
    )
    with pytest.raises(ray.exceptions.RayError, match=expected):
        adapter.transform(broken, normalizer).materialize()
    missing = ray.data.from_arrow(table.drop(["bee"]))
    with pytest.raises(ray.exceptions.RayError, match="the first is 'bee'"):
        adapter.transform(missing, normalizer).materialize()
