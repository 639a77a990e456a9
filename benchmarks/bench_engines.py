"""Rows a second through Arrow, Spark and Ray, beside the engine's own copy of the same file."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from altnorm import AlternatingNormalizer
from benchmarks.data import IN_DOUBT, SURE, classifier_rows
from benchmarks.harness import Row, alternate, benchmark

N_ROWS, N_CLASSES, N_FILES = 2_000_000, 16, 4
LIMIT = 0.5
WHAT = f"{N_ROWS:,} rows, {N_CLASSES} classes, depth 1, Parquet to Parquet"


@benchmark
def engine_arrow() -> list[Row]:
    """PyArrow reads and writes batch by batch, with and without the normalizer between."""
    if find_spec("pyarrow") is None:
        return [Row("Arrow", WHAT, "not installed")]
    with _files() as (source, target):
        return [_beside("Arrow", *_arrow_copies(source, target))]


@benchmark
def engine_spark() -> list[Row]:
    """Spark on two local threads."""
    if find_spec("pyspark") is None:
        return [Row("Spark", WHAT, "not installed")]
    with _files() as (source, target), _spark_session() as spark:
        return [_beside("Spark, local[2]", *_spark_copies(spark, source, target))]


@benchmark
def engine_ray() -> list[Row]:
    """Ray on two local workers."""
    if find_spec("ray") is None:
        return [Row("Ray", WHAT, "not installed")]
    import ray
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        with _files() as (source, target):
            return [_beside("Ray, 2 CPUs", *_ray_copies(source, target))]
    finally:
        ray.shutdown()


def _beside(name: str, copy: Callable[[], object], adjust: Callable[[], object]) -> Row:
    alternate(copy, adjust, repeats=2)  # a Java machine compiles for two rounds; workers start
    copy_time, time = alternate(copy, adjust, repeats=4)
    ratio = copy_time / time
    measured = f"{ratio:.2f}x ({N_ROWS / time:,.0f} and {N_ROWS / copy_time:,.0f} rows/s)"
    return Row(name, WHAT, measured, f">= {LIMIT:g}x of its copy", ratio >= LIMIT)


def _normalizer() -> AlternatingNormalizer:
    rng = np.random.default_rng(1)
    rows = [classifier_rows(rng, 1000, N_CLASSES, margin) for margin in (SURE, IN_DOUBT)]
    return AlternatingNormalizer(depth=1).fit(np.concatenate(rows))


@contextmanager
def _files() -> Iterator[tuple[Path, Path]]:
    """A folder with a table in a few files, and the path of a folder that is not there yet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        source = Path(folder) / "in"
        source.mkdir()
        for part in range(N_FILES):
            half = N_ROWS // N_FILES // 2
            proba = np.concatenate(
                [classifier_rows(rng, half, N_CLASSES, margin) for margin in (SURE, IN_DOUBT)]
            ).astype(np.float32)
            rng.shuffle(proba)
            columns = {str(j): proba[:, j].copy() for j in range(N_CLASSES)}
            table = pa.table({"id": np.arange(len(proba)), **columns})
            pq.write_table(table, source / f"{part}.parquet", row_group_size=2**17)
        yield source, Path(folder) / "out"


def _arrow_copies(source: Path, target: Path) -> tuple[Callable[[], object], ...]:
    import pyarrow.parquet as pq

    from altnorm.arrow import apply_batches

    normalizer = _normalizer()

    def copy(adjust: Callable[[Any], Any]) -> None:
        for path in sorted(source.iterdir()):
            file = pq.ParquetFile(path)
            with pq.ParquetWriter(target, file.schema_arrow) as writer:
                for batch in adjust(file.iter_batches(2**16)):
                    writer.write_batch(batch)

    return lambda: copy(iter), lambda: copy(
        lambda batches: apply_batches(normalizer, batches, prediction=None)
    )


@contextmanager
def _spark_session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def _spark_copies(spark: Any, source: Path, target: Path) -> tuple[Callable[[], object], ...]:
    from altnorm.spark import transform

    normalizer = _normalizer()

    def copy(adjust: Callable[[Any], Any]) -> None:
        frame = adjust(spark.read.parquet(str(source)))
        frame.write.mode("overwrite").parquet(str(target))

    return lambda: copy(lambda frame: frame), lambda: copy(
        lambda f: transform(f, normalizer, prediction=None)
    )


def _ray_copies(source: Path, target: Path) -> tuple[Callable[[], object], ...]:
    import ray

    from altnorm.ray import transform

    normalizer = _normalizer()

    def copy(adjust: Callable[[Any], Any]) -> None:
        shutil.rmtree(target, ignore_errors=True)
        adjust(ray.data.read_parquet(str(source))).write_parquet(str(target))

    return lambda: copy(lambda ds: ds), lambda: copy(
        lambda ds: transform(ds, normalizer, prediction=None)
    )
