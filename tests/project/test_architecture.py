"""Rules of the house that no linter knows."""

import ast
from pathlib import Path

import pytest

import altnorm

SOURCES = sorted(Path(altnorm.__file__).parent.rglob("*.py"))
NAMED_TUPLE = {"_replace", "_asdict", "_fields", "_make"}  # public, whatever their spelling


def private_attributes(tree):
    """Private attributes of anything but `self`, `cls` and `super()`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr in NAMED_TUPLE:
            continue
        if node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = ast.unparse(node.value)
            if owner not in ("self", "cls", "super()"):
                yield f"{owner}.{node.attr} in line {node.lineno}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_private_call_across_objects(path):
    assert not list(private_attributes(ast.parse(path.read_text(encoding="utf-8"))))
