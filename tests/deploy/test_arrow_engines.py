"""The example scripts for DuckDB and Polars run, and a library that is missing is named."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.batches import matrix

EXAMPLES = Path(__file__).parents[2] / "examples" / "engines"


class TestExamples:
    """The scripts in examples/engines run, and say what the normalizer says."""

    def test_duckdb(self):
        pytest.importorskip("duckdb")
        example = runpy.run_path(str(EXAMPLES / "duckdb_example.py"))
        normalizer, given = (
            example["normalizer"],
            example["predictions"].take(np.arange(0, 10_000, 2)),
        )
        proba = matrix(given, normalizer.classes_)
        result = example["result"]
        assert result.column_names == ["id", "dog", "cat", "bird", "class"]
        assert result["id"].to_pylist() == given["id"].to_pylist()
        found = matrix(result, normalizer.classes_)
        np.testing.assert_array_equal(found, normalizer.transform(proba))
        assert result["class"].to_pylist() == normalizer.predict(proba).tolist()

    def test_polars(self):
        pytest.importorskip("polars")
        example = runpy.run_path(str(EXAMPLES / "polars_example.py"))
        normalizer, proba = example["normalizer"], example["proba"]
        expected = normalizer.transform(proba)
        assert example["adjusted"].columns == ["id", "dog", "cat", "bird", "class"]
        np.testing.assert_array_equal(example["adjusted"][normalizer.classes_].to_numpy(), expected)
        np.testing.assert_array_equal(example["adjusted_arrays"]["scores"].to_numpy(), expected)
        for frame in (example["adjusted"], example["adjusted_arrays"]):
            assert frame["class"].to_list() == normalizer.predict(proba).tolist()


def test_missing_library_names_the_extra():
    code = """
import sys
for module, library in {"spark": "pyspark", "ray": "ray", "arrow": "pyarrow"}.items():
    sys.modules[library] = None
    try:
        __import__("altnorm." + module)
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"altnorm.{module} needs the `{module}` extra; "
        f"install it with pip install 'altnorm[{module}]'"
        for module in ("spark", "ray", "arrow")
    ]
