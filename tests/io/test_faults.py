"""Faults, for real: nothing half-written under the final name, what was there before intact."""

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from altnorm import AlternatingNormalizer

N_ROWS, N_CLASSES = 60_000, 20
OLD = b"what was there before"
PARTIAL = ".partial"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A model, and a table."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    names = [f"class {j}" for j in range(N_CLASSES)]
    proba = rng.dirichlet(np.full(N_CLASSES, 0.2), N_ROWS)
    normalizer = AlternatingNormalizer(depth=2).fit(proba[:300])
    normalizer.classes_ = np.array(names)
    normalizer.save(folder / "model")
    table = pa.table({"id": np.arange(N_ROWS)} | dict(zip(names, proba.T.copy(), strict=True)))
    parquet.write_table(table, folder / "in.parquet", row_group_size=5000)
    return folder


def command(inputs, source, output, *options):
    code = "from altnorm.cli import main; main()"
    arguments = ["apply", inputs / "model", source, "-o", output, *options]
    return [sys.executable, "-c", code, *map(str, arguments)]


def apply(inputs, source, output, *options, **more):
    arguments = command(inputs, source, output, *options)
    return subprocess.run(arguments, capture_output=True, text=True, check=False, **more)


@pytest.fixture(scope="module")
def expected(inputs):
    output = inputs / "expected.parquet"
    assert apply(inputs, inputs / "in.parquet", output).returncode == 0
    return parquet.read_table(output)


@pytest.fixture
def output(tmp_path):
    """An output that exists already, alone in its folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "out.parquet"
    path.write_bytes(OLD)
    return path


@pytest.mark.parametrize("limit", [4_096, 200_000, 5_000_000])
def test_full_disk(inputs, output, limit):
    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = apply(inputs, inputs / "in.parquet", output, "--force", preexec_fn=little_room)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert "nothing was written" in done.stderr or "File too large" in done.stderr
    assert output.read_bytes() == OLD
    assert os.listdir(output.parent) == [output.name]


def wait_for_partial(folder, process):
    """Return once the output is being written (or the process has ended)."""
    while process.poll() is None and not any(n.endswith(PARTIAL) for n in os.listdir(folder)):
        time.sleep(0.002)


MOMENTS = np.random.default_rng(0).uniform(0, 0.4, 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("moment", MOMENTS)
def test_signal_at_a_random_moment(inputs, output, expected, number, moment):
    process = subprocess.Popen(
        command(inputs, inputs / "in.parquet", output, "--force"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_for_partial(output.parent, process)
    time.sleep(moment)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert b"Traceback" not in errors
    if process.returncode == 0:  # the signal came too late
        assert parquet.read_table(output).equals(expected)
    else:
        assert process.returncode in (130, 128 + number, -number)
        assert output.read_bytes() == OLD or parquet.read_table(output).equals(expected)
    left = [name for name in os.listdir(output.parent) if name != output.name]
    # Nothing can be cleaned up after SIGKILL, but what is left does not have the final name.
    assert number == signal.SIGKILL or not left
    assert all(name.startswith(".") and name.endswith(PARTIAL) for name in left)


def test_output_may_replace_the_input(inputs, tmp_path, expected):
    path = tmp_path / "in.parquet"
    path.write_bytes((inputs / "in.parquet").read_bytes())
    assert apply(inputs, path, path, "--force").returncode == 0
    assert parquet.read_table(path).equals(expected)
