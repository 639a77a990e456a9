"""What `import altnorm` brings along, and what a built wheel can do on its own."""

import json
import pydoc
import subprocess
import sys
import zipfile
from importlib import import_module, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONAL = {
    *("duckdb", "jinja2", "matplotlib", "onnx", "onnxruntime", "pandas", "polars", "pyarrow"),
    *("pyspark", "ray", "rich", "torch", "transformers", "typer"),
}


def imported_by(statement):
    """Top-level modules that are there after `statement` in a new process."""
    tell = "print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    code = f"import sys, json; {statement}; {tell}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_altnorm_pulls_in_no_optional_library():
    by_sklearn = imported_by("import sklearn.model_selection, sklearn.metrics")
    assert imported_by("import altnorm") & OPTIONAL <= by_sklearn


def test_submodules_are_reached_by_name():
    import altnorm

    assert altnorm.report is import_module("altnorm.report")
    assert "peers" in dir(altnorm)
    assert altnorm.__version__ == metadata.version("altnorm")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = altnorm.nothing


def test_the_method_is_found_by_its_name():
    """By who knows it from the paper: in Python's help, in the index's keywords."""
    import altnorm

    shown = pydoc.plain(pydoc.render_doc(altnorm))
    assert "CAN, classification with alternating normalization" in shown
    assert "class AlternatingNormalizerCV" in shown
    assert "CAN" in metadata.metadata("altnorm")["Keywords"].split(",")


@pytest.mark.heavy
def test_the_wheel_runs_the_demo_in_an_empty_environment(tmp_path):
    """With the core and the `cli` extra alone, and nothing of the source tree."""

    def run(*command, **options):
        return subprocess.run(
            [str(part) for part in command], check=True, capture_output=True, text=True, **options
        ).stdout

    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("altnorm-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "altnorm/py.typed" in names
    assert any(name.startswith("altnorm/io/data/") and name.endswith(".npz") for name in names)
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    constraints = ROOT / "requirements" / "constraints.txt"
    run(python, "-m", "pip", "install", "-q", "-c", constraints, f"{wheel}[cli]")
    printed = run(python.parent / "altnorm", "demo", cwd=tmp_path)
    assert "Adopted" in printed
