"""The normalizer on a real Spark with two local executors' worth of threads."""

from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest

from altnorm import InputError
from tests.batches import CLUSTER_CLASSES as CLASSES, CLUSTER_ROWS as N_ROWS, matrix

F = pytest.importorskip("pyspark.sql.functions")
sql = pytest.importorskip("pyspark.sql.types")
pa = pytest.importorskip("pyarrow")
adapter = pytest.importorskip("altnorm.spark")

pytestmark = pytest.mark.heavy


@pytest.fixture
def frame(spark, proba):
    """Class columns in another order than the classes, and others of many types between them."""
    schema = "id int not null, cat double not null, ant double, day date, bee double, "
    schema += "tags map<string, bigint>"
    rows = [
        (i, float(p[2]), float(p[0]), date(2026, 1, 1) if i % 2 else None, float(p[1]), {"n": i})
        for i, p in enumerate(proba)
    ]
    frame = spark.createDataFrame(rows, schema).repartition(2, "id")
    return frame.withMetadata("bee", {"made": "by hand"})


@pytest.fixture
def vectors(spark, proba):
    """Probabilities as vectors, every third sparse, beside the vectors of features."""
    from pyspark.ml.linalg import SparseVector, Vectors

    rows = []
    for i, p in enumerate(proba):
        vector = Vectors.dense(p) if i % 3 else SparseVector(3, range(3), p.tolist())
        rows.append((i, Vectors.sparse(5, [i % 5], [1.0]), vector, "x"))
    frame = spark.createDataFrame(rows, ["id", "features", "probability", "note"])
    return frame.repartition(2, "id").withMetadata("probability", {"ml_attr": {"num_attrs": 3}})


def vector_matrix(rows, name):
    return np.array([row[name].toArray() for row in rows])


def by_id(frame):
    return sorted(frame.collect(), key=lambda row: row["id"])


def test_equal_to_the_local_result_row_for_row(frame, normalizer, proba):
    out = adapter.transform(frame, normalizer, prediction="class")
    assert out.schema.fields[:-1] == frame.schema.fields
    assert out.schema["class"].dataType.typeName() == "string"
    rows = by_id(out)
    adjusted = np.array([[row[name] for name in CLASSES] for row in rows])
    np.testing.assert_array_equal(adjusted, normalizer.transform(proba))
    assert [row["class"] for row in rows] == normalizer.predict(proba).tolist()
    untouched = ["id", "day", "tags"]
    assert by_id(out.select(untouched)) == by_id(frame.select(untouched))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_arrays(spark, normalizer, proba, kind):
    exact = proba.astype(np.float32 if kind == "float" else np.float64)
    rows = [(i, [float(x) for x in row]) for i, row in enumerate(exact)]
    frame = spark.createDataFrame(rows, f"id int, scores array<{kind}>")
    out = adapter.transform(frame, normalizer, columns="scores", output="adjusted", prediction=None)
    assert out.dtypes == [*frame.dtypes, ("adjusted", f"array<{kind}>")]
    collected = by_id(
        out.withColumn("sum", F.aggregate("adjusted", F.lit(0.0), lambda a, b: a + b))
    )
    adjusted = np.array([row["adjusted"] for row in collected], dtype=exact.dtype)
    np.testing.assert_array_equal(adjusted, normalizer.transform(exact))
    np.testing.assert_allclose([row["sum"] for row in collected], 1, atol=1e-6)


def test_the_normalizer_is_broadcast_once(frame, normalizer, monkeypatch):
    context = frame.sparkSession.sparkContext
    shared = []
    broadcast = type(context).broadcast

    def counting(self, value):
        shared.append(value)
        return broadcast(self, value)

    monkeypatch.setattr(type(context), "broadcast", counting)
    assert adapter.transform(frame, normalizer).count() == N_ROWS
    assert shared == [normalizer]


class TestErrors:
    """What an executor has to say about the data is in Spark's exception."""

    def test_a_wrong_sum_leaves_no_result(self, frame, normalizer, tmp_path):
        wrong = F.when(frame["id"] == 700, 1.5).otherwise(frame["bee"])
        broken = adapter.transform(frame.withColumn("bee", wrong), normalizer)
        expected = (
            r"In partition \d: .*Each row of `proba` must sum to 1; 1 of \d+ rows do not, the "
            r"first is row \d+ \(sum [\d.]+\)\. If these are logits, pass input='logits'"
        )
        with pytest.raises(Exception, match=expected):
            broken.write.parquet(str(tmp_path / "out"))
        assert not list((tmp_path / "out").glob("*.parquet"))
        assert not (tmp_path / "out" / "_SUCCESS").exists()

    def test_nulls(self, frame, vectors, normalizer):
        expected = r"In partition \d: Probabilities must not be null; column '{}' has 1 null"
        for data, name in ((frame, "bee"), (vectors, "probability")):
            gap = data.withColumn(name, F.when(F.col("id") != 700, F.col(name)))
            columns = "probability" if name == "probability" else None
            with pytest.raises(Exception, match=expected.format(name)):
                adapter.transform(gap, normalizer, columns=columns).collect()

    def test_names_and_lengths_of_vectors(self, vectors, normalizer):
        with pytest.raises(InputError, match="there is a column 'note' already"):
            adapter.transform(vectors, normalizer, columns="probability", output="note")
        with pytest.raises(InputError, match=r"'nowhere' must appear once"):
            adapter.transform(vectors, normalizer, columns="nowhere")
        out = adapter.transform(vectors, normalizer, columns="features")
        with pytest.raises(Exception, match="one entry per class, 3"):
            out.collect()


@pytest.mark.parametrize("output", [None, "better"], ids=["in place", "beside"])
def test_vectors(vectors, adjuster, proba, output):
    out = adapter.transform(vectors, adjuster, columns="probability", output=output, prediction="c")
    assert out.columns == [*vectors.columns, *([output] if output else []), "c"]
    assert out.schema["probability"] == vectors.schema["probability"]
    rows, want = by_id(out), adjuster.transform(proba)
    assert None in [row["c"] for row in rows]
    adjusted = vector_matrix(rows, output or "probability")
    np.testing.assert_allclose(adjusted, want, atol=1e-12, rtol=0)
    assert [row["c"] for row in rows] == adjuster.predict(proba).tolist()
    for name in ("features", "probability") if output else ("features",):
        before, after = ([row[name] for row in part] for part in (by_id(vectors), rows))
        assert after == before
        assert [type(value) for value in after] == [type(value) for value in before]


def test_without_a_spark_context(normalizer, proba):
    """As under Spark Connect, where the normalizer travels with the function."""
    from pyspark.cloudpickle import dumps, loads

    table = pa.table({str(name): proba[:, j] for j, name in enumerate(CLASSES)})

    def map_in_arrow(function, schema):
        assert schema.names == [*CLASSES, "prediction"]
        return pa.Table.from_batches(loads(dumps(function))(table.to_batches()))

    schema = sql.StructType([sql.StructField(str(name), sql.DoubleType()) for name in CLASSES])
    frame = SimpleNamespace(schema=schema, sparkSession=object(), mapInArrow=map_in_arrow)
    out = adapter.transform(frame, normalizer)
    np.testing.assert_array_equal(matrix(out, CLASSES), normalizer.transform(proba))
