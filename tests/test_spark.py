"""The normalizer on a real Spark with two local executors' worth of threads."""

from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest

from altnorm import AlternatingNormalizer
from altnorm._base.errors import InputError
from tests.batches import CLUSTER_CLASSES as CLASSES
from tests.batches import CLUSTER_ROWS as N_ROWS
from tests.batches import assert_same_shift, shifted_case

pyspark = pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
adapter = pytest.importorskip("altnorm.spark")

pytestmark = pytest.mark.heavy


@pytest.fixture
def frame(spark, proba):
    """Class columns in another order than the classes, and others of many types between them."""
    from pyspark.sql import types as sql

    schema = sql.StructType(
        [
            sql.StructField("id", sql.IntegerType(), False),
            sql.StructField("cat", sql.DoubleType(), False),
            sql.StructField("ant", sql.DoubleType()),
            sql.StructField("day", sql.DateType()),
            sql.StructField("bee", sql.DoubleType(), True, {"made": "by hand"}),
            sql.StructField("tags", sql.MapType(sql.StringType(), sql.LongType())),
        ]
    )
    rows = [
        (i, float(p[2]), float(p[0]), date(2026, 1, 1) if i % 2 else None, float(p[1]), {"n": i})
        for i, p in enumerate(proba)
    ]
    return spark.createDataFrame(rows, schema).repartition(2, "id")


def by_id(frame):
    return sorted(frame.collect(), key=lambda row: row["id"])


def test_equal_to_the_local_result_row_for_row(frame, normalizer, proba):
    out = adapter.transform(frame, normalizer, prediction="class")
    assert out.schema.fields[:-1] == frame.schema.fields
    assert out.schema["class"].dataType.typeName() == "string"
    rows = by_id(out)
    found = np.array([[row[name] for name in CLASSES] for row in rows])
    np.testing.assert_array_equal(found, normalizer.transform(proba))
    assert [row["class"] for row in rows] == normalizer.predict(proba).tolist()
    others = ["id", "day", "tags"]
    assert by_id(out.select(others)) == by_id(frame.select(others))


def test_both_stages_of_an_adjuster(frame, adjuster, proba):
    rows = by_id(adapter.transform(frame, adjuster, prediction="class"))
    found = np.array([[row[name] for name in CLASSES] for row in rows])
    np.testing.assert_array_equal(found, adjuster.transform(proba))
    assert [row["class"] for row in rows] == adjuster.predict(proba).tolist()


@pytest.mark.parametrize("kind", ["float", "double"])
def test_arrays(spark, normalizer, proba, kind):
    from pyspark.sql import functions as F  # noqa: N812 - its customary name

    exact = proba.astype(np.float32 if kind == "float" else np.float64)
    rows = [(i, [float(x) for x in row]) for i, row in enumerate(exact)]
    frame = spark.createDataFrame(rows, f"id int, scores array<{kind}>")
    out = adapter.transform(frame, normalizer, columns="scores", output="adjusted")
    assert out.dtypes == [*frame.dtypes, ("adjusted", f"array<{kind}>")]
    collected = by_id(
        out.withColumn("sum", F.aggregate("adjusted", F.lit(0.0), lambda a, b: a + b))
    )
    found = np.array([row["adjusted"] for row in collected], dtype=exact.dtype)
    np.testing.assert_array_equal(found, normalizer.transform(exact))
    np.testing.assert_allclose([row["sum"] for row in collected], 1, atol=1e-6)


def test_several_labels_a_row(spark):
    rng = np.random.default_rng(2)
    proba = rng.uniform(size=(60, 3))
    normalizer = AlternatingNormalizer(multilabel="labelwise").fit(proba)
    rows = [(i, *map(float, row)) for i, row in enumerate(proba)]
    frame = spark.createDataFrame(rows, ["id", "0", "1", "2"])
    out = adapter.transform(frame, normalizer, prediction="labels")
    assert dict(out.dtypes)["labels"] == "array<bigint>"
    expected = [np.flatnonzero(row).tolist() for row in normalizer.predict(proba)]
    assert [row["labels"] for row in by_id(out)] == expected


def test_names_are_checked_at_once(frame, normalizer):
    with pytest.raises(InputError, match="the first is 'bee'"):
        adapter.transform(frame.drop("bee"), normalizer)


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
    """What an executor has to say about the data, whatever the action that made it look."""

    @pytest.fixture
    def broken(self, frame, normalizer):
        from pyspark.sql import functions as F  # noqa: N812 - its customary name

        wrong = F.when(frame["id"] == 700, 1.5).otherwise(frame["bee"])
        return adapter.transform(frame.withColumn("bee", wrong), normalizer)

    @pytest.mark.parametrize("action", ["collect", "write"])
    def test_sentence(self, broken, action, tmp_path):
        expected = (
            r"^In partition \d: .*Each row of `proba` must sum to 1; 1 of \d+ rows do not, the "
            r"first is row \d+ \(sum [\d.]+\)\. If these are logits, pass input='logits'; if they "
            r"were rounded, divide each row by its sum\.$"
        )
        out = tmp_path / "out"
        with pytest.raises(InputError, match=expected) as caught, adapter.input_errors():
            broken.collect() if action == "collect" else broken.write.parquet(str(out))
        assert caught.value.__cause__ is None
        assert not list(out.glob("*.parquet"))
        assert not (out / "_SUCCESS").exists()

    def test_null(self, frame, normalizer):
        from pyspark.sql import functions as F  # noqa: N812 - its customary name

        missing = F.when(frame["id"] != 700, frame["bee"])
        out = adapter.transform(frame.withColumn("bee", missing), normalizer)
        expected = r"^In partition \d: Probabilities must not be null; column 'bee' has 1 null"
        with pytest.raises(InputError, match=expected), adapter.input_errors():
            out.collect()

    def test_other_errors_pass(self, spark):
        with pytest.raises(pyspark.errors.AnalysisException), adapter.input_errors():
            spark.sql("select nothing from nowhere")


def test_without_a_spark_context(normalizer, proba):
    """As under Spark Connect, where the normalizer travels with the function."""
    from pyspark.cloudpickle import dumps, loads
    from pyspark.sql import types as sql

    table = pa.table({str(name): proba[:, j] for j, name in enumerate(CLASSES)})

    def map_in_arrow(function, schema):
        assert schema.names == [*CLASSES]
        return pa.Table.from_batches(loads(dumps(function))(table.to_batches()))

    schema = sql.StructType([sql.StructField(str(name), sql.DoubleType()) for name in CLASSES])
    frame = SimpleNamespace(schema=schema, sparkSession=object(), mapInArrow=map_in_arrow)
    out = adapter.transform(frame, normalizer)
    found = np.column_stack([out[name].to_numpy() for name in CLASSES])
    np.testing.assert_array_equal(found, normalizer.transform(proba))


DEADLY = """
import os, signal
from altnorm import AlternatingNormalizer

class Deadly(AlternatingNormalizer):
    def transform(self, proba):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_worker_leaves_no_result(spark, frame, normalizer, tmp_path, monkeypatch):
    (tmp_path / "deadly.py").write_text(DEADLY)
    monkeypatch.syspath_prepend(tmp_path)
    spark.sparkContext.addPyFile(str(tmp_path / "deadly.py"))
    from deadly import Deadly

    doomed = Deadly()
    doomed.__dict__.update(vars(normalizer))
    target = tmp_path / "adjusted"
    with pytest.raises(Exception, match=r"(?i)python worker|crashed|EOF"):
        adapter.transform(frame, doomed).write.parquet(str(target))
    assert not list(target.glob("part-*"))
    assert not (target / "_SUCCESS").exists()
    adapter.transform(frame, normalizer).write.mode("overwrite").parquet(str(target))
    assert spark.read.parquet(str(target)).count() == N_ROWS


def test_sums_for_adapting(spark):
    """Partitions summed apart and added up say what the rows say together."""
    pd = pytest.importorskip("pandas")
    adjuster, proba = shifted_case()
    frame = pd.DataFrame(proba, columns=[str(name) for name in adjuster.classes_])
    window = adapter.take_in(spark.createDataFrame(frame).repartition(3), adjuster)
    assert_same_shift(adjuster, window, proba)
    with pytest.raises(InputError, match="In partition"):
        adapter.take_in(spark.createDataFrame(frame * 2), adjuster)
    with pytest.raises(InputError, match="there are no rows"):
        adapter.take_in(spark.createDataFrame(frame).limit(0), adjuster)
