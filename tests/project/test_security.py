"""Every promise of SECURITY.md is held by tests, which it names; and nothing runs what is read."""

import ast
import re
from pathlib import Path

import pytest

import altnorm

ROOT = Path(__file__).parents[2]
SOURCES = sorted(Path(altnorm.__file__).parent.rglob("*.py"))
RUNS = {"eval", "exec", "compile", "__import__"}
UNPICKLES = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}


def test_the_tests_that_hold_a_promise_are_there():
    promises = re.findall(r"^\| (.+) \| (.+) \|$", (ROOT / "SECURITY.md").read_text(), re.M)[2:]
    assert len(promises) >= 10
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    for promise, held_by in promises:
        names = re.findall(r"`(test_\w+)`", held_by)
        assert names, promise
        for name in names:
            assert f"def {name}(" in tests, promise


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_source_file_can_run_what_it_reads(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                assert name not in RUNS
            case ast.Import(names=modules):
                assert not {module.name.split(".")[0] for module in modules} & UNPICKLES
            case ast.ImportFrom(module=str(module)):
                assert module.split(".")[0] not in UNPICKLES
            case ast.keyword(arg="allow_pickle", value=value):
                assert ast.unparse(value) == "False"
