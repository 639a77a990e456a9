"""``altnorm apply`` on a large Parquet file, beside PyArrow's own copy of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from altnorm import AlternatingNormalizer
from benchmarks.data import IN_DOUBT, SURE, classifier_rows
from benchmarks.harness import Row, benchmark, peak_gigabytes, run_alone, seconds

N_ROWS = int(os.environ.get("ALTNORM_BENCH_ROWS", "5_000_000"))
N_CLASSES, BLOCK = 100, 2**19
LIMIT_GIGABYTES, LIMIT_RATE = 1.0, 0.5
NAMES = [f"class {j}" for j in range(N_CLASSES)]


@benchmark
def command_apply() -> list[Row]:
    """Time and memory of the command; each contender in a process of its own."""
    if find_spec("pyarrow") is None or find_spec("typer") is None:
        return [Row("altnorm apply", "Parquet to Parquet", "not installed")]
    with TemporaryDirectory() as folder:
        _prepare(Path(folder))
        times = {name: run_alone("bench_apply", name, folder) for name in CONTENDERS}
    time, gigabytes = times["apply"]
    what = f"{N_ROWS:,} rows, {N_CLASSES} classes, Parquet to Parquet"
    rows = [
        Row(
            "altnorm apply",
            f"{what}, memory",
            f"{gigabytes:.2f} GB resident",
            f"< {LIMIT_GIGABYTES:g} GB",
            gigabytes < LIMIT_GIGABYTES,
        )
    ]
    for name, other in (("copy", "PyArrow's copy"), ("plain_copy", "PyArrow without dictionaries")):
        ratio = times[name][0] / time
        measured = f"{ratio:.2f}x ({N_ROWS / time:,.0f} and {N_ROWS / times[name][0]:,.0f} rows/s)"
        target = f">= {LIMIT_RATE:g}x"
        rows.append(Row("altnorm apply", f"{what}, {other}", measured, target, ratio >= LIMIT_RATE))
    return rows


def _prepare(folder: Path) -> None:
    """Write the model and the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    both = [classifier_rows(rng, 1000, N_CLASSES, margin) for margin in (SURE, IN_DOUBT)]
    normalizer = AlternatingNormalizer().fit(np.concatenate(both))
    normalizer.classes_ = np.array(NAMES)
    normalizer.save(folder / "model")
    schema = pa.schema([("id", pa.int64()), *((name, pa.float64()) for name in NAMES)])
    with pq.ParquetWriter(folder / "in.parquet", schema) as writer:
        for start in range(0, N_ROWS, BLOCK):
            n = min(BLOCK, N_ROWS - start)
            halves = (n // 2, SURE), (n - n // 2, IN_DOUBT)
            rows = np.concatenate([classifier_rows(rng, k, N_CLASSES, m) for k, m in halves])
            columns = dict(zip(NAMES, np.ascontiguousarray(rows.T), strict=True))
            writer.write_table(pa.table({"id": np.arange(start, start + n)} | columns, schema))


def apply(folder: Path) -> None:
    from altnorm.cli._run import run

    files = [str(folder / name) for name in ("model", "in.parquet", "out.parquet")]
    if run(["apply", files[0], files[1], "-o", files[2], "--force"]):
        raise SystemExit("altnorm apply failed")


def copy(folder: Path, *, use_dictionary: bool = True) -> None:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(folder / "in.parquet")
    options = {"use_dictionary": use_dictionary}
    with pq.ParquetWriter(folder / "out.parquet", file.schema_arrow, **options) as writer:
        for batch in file.iter_batches():
            writer.write_batch(batch)


def plain_copy(folder: Path) -> None:
    copy(folder, use_dictionary=False)


CONTENDERS: dict[str, Callable[[Path], None]] = {
    function.__name__: function for function in (apply, copy, plain_copy)
}


if __name__ == "__main__":
    contender, folder = CONTENDERS[sys.argv[1]], Path(sys.argv[2])
    time = seconds(lambda: contender(folder))
    print(json.dumps([time, peak_gigabytes()]))
