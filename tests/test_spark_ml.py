"""Vectors of Spark ML, and the normalizer as a stage of its pipelines."""

import numpy as np
import pytest

from altnorm import Adjuster, AlternatingNormalizer
from altnorm._base.errors import InputError
from tests.batches import assert_same_shift, shifted_case

pytest.importorskip("pyspark")
adapter = pytest.importorskip("altnorm.spark")

pytestmark = pytest.mark.heavy

NOTE = {"ml_attr": {"num_attrs": 3}}


@pytest.fixture
def vectors(spark, proba):
    """Probabilities as vectors, every third sparse, beside the vectors of features."""
    from pyspark.ml.linalg import SparseVector, Vectors, VectorUDT
    from pyspark.sql import types as sql

    schema = sql.StructType(
        [
            sql.StructField("id", sql.IntegerType(), False),
            sql.StructField("features", VectorUDT()),
            sql.StructField("probability", VectorUDT(), True, NOTE),
            sql.StructField("note", sql.StringType()),
        ]
    )
    rows = [
        (
            i,
            Vectors.sparse(5, [i % 5], [1.0]),
            Vectors.dense(p) if i % 3 else SparseVector(3, range(3), p.tolist()),
            "x",
        )
        for i, p in enumerate(proba)
    ]
    return spark.createDataFrame(rows, schema).repartition(2, "id")


@pytest.fixture(scope="module")
def fitted(spark):
    """Rows, a fitted pipeline, and an Adjuster for its probabilities."""
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import VectorAssembler

    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    X = rng.normal(size=(900, 3)) + 1.2 * np.eye(3)[y] + 1.5 * np.eye(3)[0] * (y > 0)[:, None]
    rows = [(i, *map(float, x), float(k)) for i, (x, k) in enumerate(zip(X, y, strict=True))]
    frame = spark.createDataFrame(rows, ["id", "a", "b", "c", "label"])
    assemble = VectorAssembler(inputCols=["a", "b", "c"], outputCol="features")
    stages = [assemble, LogisticRegression(maxIter=5, regParam=1.0)]
    pipeline = Pipeline(stages=stages).fit(frame.where("id < 300"))
    found = by_id(pipeline.transform(frame.where("id between 300 and 599")))
    proba, labels = column(found, "probability"), [row["label"] for row in found]
    adjuster = Adjuster(cv=2, n_repeats=1).fit(proba, np.array(labels))
    return frame.where("id >= 600"), pipeline, adjuster


def by_id(frame):
    return sorted(frame.collect(), key=lambda row: row["id"])


def column(rows, name):
    return np.array([row[name].toArray() for row in rows])


def test_vectors_in_place(vectors, normalizer, proba):
    out = adapter.transform(vectors, normalizer, columns="probability", prediction="class")
    assert out.columns == [*vectors.columns, "class"]
    assert out.schema["probability"].dataType == vectors.schema["probability"].dataType
    assert out.schema["probability"].metadata == NOTE
    rows = by_id(out)
    np.testing.assert_array_equal(column(rows, "probability"), normalizer.transform(proba))
    assert [row["class"] for row in rows] == normalizer.predict(proba).tolist()
    assert [row["features"] for row in rows] == [row["features"] for row in by_id(vectors)]


def test_vectors_beside_those_that_came_in(vectors, adjuster, proba):
    out = adapter.transform(
        vectors, adjuster, columns="probability", output="better", prediction="c"
    )
    assert out.columns == [*vectors.columns, "better", "c"]
    rows = by_id(out)
    np.testing.assert_array_equal(column(rows, "better"), adjuster.transform(proba))
    assert [row["c"] for row in rows] == adjuster.predict(proba).tolist()
    before = [row["probability"] for row in by_id(vectors)]
    assert [row["probability"] for row in rows] == before
    assert [type(row["probability"]) for row in rows] == [type(value) for value in before]


def test_names_and_lengths_of_vectors(vectors, normalizer):
    with pytest.raises(InputError, match="there is a column 'note' already"):
        adapter.transform(vectors, normalizer, columns="probability", output="note")
    out = adapter.transform(vectors, normalizer, columns="features")
    with pytest.raises(InputError, match="one entry per class, 3"), adapter.input_errors():
        out.collect()


def test_a_vector_that_is_null(vectors, normalizer):
    from pyspark.sql import functions as F  # noqa: N812 - its customary name

    gap = vectors.withColumn("probability", F.when(F.col("id") != 700, F.col("probability")))
    out = adapter.transform(gap, normalizer, columns="probability")
    expected = r"^In partition \d: Probabilities must not be null; column 'probability' has 1 null"
    with pytest.raises(InputError, match=expected), adapter.input_errors():
        out.collect()


def test_sums_of_vectors_for_adapting(spark):
    from pyspark.ml.linalg import Vectors

    adjuster, proba = shifted_case()
    frame = spark.createDataFrame([(Vectors.dense(row),) for row in proba], ["p"]).repartition(3)
    assert_same_shift(adjuster, adapter.take_in(frame, adjuster, columns="p"), proba)


class TestStage:
    """In a pipeline behind a classifier of Spark ML."""

    def test_saved_and_loaded_with_its_pipeline(self, fitted, tmp_path):
        from pyspark.ml import PipelineModel

        frame, pipeline, adjuster = fitted
        stage = adapter.ProbabilityAdjuster(adjuster, outputCol="better")
        whole = PipelineModel([*pipeline.stages, stage])
        whole.write().overwrite().save(str(tmp_path / "model"))
        restored = PipelineModel.load(str(tmp_path / "model"))
        assert restored.stages[-1].uid == stage.uid
        rows = by_id(restored.transform(frame))
        proba = column(by_id(pipeline.transform(frame)), "probability")
        np.testing.assert_array_equal(column(rows, "better"), adjuster.transform(proba))
        np.testing.assert_array_equal(column(rows, "probability"), proba)
        found = [row["adjusted_prediction"] for row in rows]
        assert found == adjuster.predict(proba).tolist()

    def test_evaluators_take_its_predictions(self, fitted):
        from pyspark.ml.evaluation import MulticlassClassificationEvaluator

        frame, pipeline, adjuster = fitted
        out = adapter.ProbabilityAdjuster(adjuster).transform(pipeline.transform(frame))
        evaluator = MulticlassClassificationEvaluator(
            predictionCol="adjusted_prediction", metricName="accuracy"
        )
        rows = by_id(out)
        decided = adjuster.predict(column(rows, "probability"))
        expected = np.mean(decided == [row["label"] for row in rows])
        assert evaluator.evaluate(out) == pytest.approx(expected)

    def test_alone_and_with_other_columns(self, vectors, normalizer, proba, tmp_path):
        stage = adapter.ProbabilityAdjuster(normalizer, predictionCol="index")
        stage.save(str(tmp_path / "stage"))
        restored = adapter.ProbabilityAdjuster.load(str(tmp_path / "stage"))
        assert restored.extractParamMap() == stage.extractParamMap()
        out = restored.transform(vectors, {restored.outputCol: "other"})  # as Spark's stages allow
        rows = by_id(out)
        np.testing.assert_array_equal(column(rows, "other"), normalizer.transform(proba))
        codes = np.searchsorted(normalizer.classes_, normalizer.predict(proba))
        assert [row["index"] for row in rows] == codes.tolist()
        assert out.schema["index"].dataType.typeName() == "double"

    def test_several_labels(self, spark):
        from pyspark.ml.linalg import Vectors

        proba = np.random.default_rng(2).uniform(size=(60, 3))
        normalizer = AlternatingNormalizer(multilabel="labelwise").fit(proba)
        rows = [(i, Vectors.dense(row)) for i, row in enumerate(proba)]
        frame = spark.createDataFrame(rows, ["id", "probability"])
        rows = by_id(adapter.ProbabilityAdjuster(normalizer).transform(frame))
        np.testing.assert_array_equal(column(rows, "adjusted"), normalizer.transform(proba))
        expected = [np.flatnonzero(row).tolist() for row in normalizer.predict(proba)]
        assert [row["adjusted_prediction"] for row in rows] == expected

    def test_what_is_not_fitted(self):
        from sklearn.exceptions import NotFittedError

        with pytest.raises(NotFittedError):
            adapter.ProbabilityAdjuster(AlternatingNormalizer())
