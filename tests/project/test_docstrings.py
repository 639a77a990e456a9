"""The public names have complete docstrings, with an example that runs; no other name is used."""

import ast
import pkgutil
import re
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.validate import validate

import altnorm

PAGE = (Path(__file__).parents[2] / "docs" / "api.rst").read_text(encoding="utf-8")
PUBLIC = re.findall(r"^   ([\w.]+)$", PAGE, re.MULTILINE)
SUBMODULES = {name.split(".")[0] for name in PUBLIC if "." in name}
HEAVY = ("spark", "ray", "torch")  # slow to import, and extras
NAMES = [
    pytest.param(f"altnorm.{name}", marks=pytest.mark.heavy)
    if name.split(".")[0] in HEAVY
    else f"altnorm.{name}"
    for name in PUBLIC
]
# Summary, sections in order, every parameter documented, what comes back.
RULES = {
    *("GL06", "GL07", "GL08", "PR01", "PR02", "PR06", "PR07"),
    *("RT01", "RT03", "SS01", "SS02", "SS03"),
}
# One docstring stands for several alike; a generator yields.
ALLOWED = {
    "altnorm.trajectory": {"PR07"},
    "altnorm.arrow.apply_batches": {"RT01"},
}
WITHOUT_EXAMPLE = {
    "altnorm.io.predictions.read_predictions",
    "altnorm.io.predictions.write_predictions",
}


# Programs that look inside on purpose: one makes the package's data, others take fits apart or
# compare decisions that no estimator made.
INSIDERS = (
    "experiments/demo_data/__main__.py",
    "experiments/evidence/promise/rules.py",
    "experiments/evidence/study.py",
    "experiments/label_shift/study.py",
    "experiments/suite/measure.py",
    "experiments/suite/methods.py",
)


def is_record(name):
    """Records document fields as attributes; an example is with the function that returns one."""
    module, _, last = name.rpartition(".")
    public = getattr(import_module(module), last)
    return is_dataclass(public) or hasattr(public, "_fields")


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_is_complete(name):
    rules = RULES - ALLOWED.get(name, set()) - ({"PR01"} if is_record(name) else set())
    errors = [(code, message) for code, message in validate(name)["errors"] if code in rules]
    assert not errors


@pytest.mark.parametrize("name", NAMES)
def test_public_names_have_an_example(name):
    shown = ">>>" in (validate(name)["docstring"] or "")
    assert shown or is_record(name) or name in WITHOUT_EXAMPLE


def test_the_list_holds_what_the_package_exports():
    assert sorted(altnorm.__all__) == sorted(name for name in PUBLIC if "." not in name)
    assert set(dir(altnorm)) == {*altnorm.__all__, *SUBMODULES, "__version__"}
    for module in ("peers",):
        listed = {name.split(".")[1] for name in PUBLIC if name.startswith(module + ".")}
        assert set(getattr(altnorm, module).__all__) == listed


def test_a_public_module_has_something_public_in_it():
    modules = {module.name for module in pkgutil.iter_modules(altnorm.__path__)}
    assert modules >= SUBMODULES


@pytest.mark.parametrize("folder", ["experiments", "examples"])
def test_studies_and_examples_use_public_names_only(folder):
    """The names that their programs import from the package are on the list."""
    public = {f"altnorm.{name}" for name in PUBLIC}
    public |= {f"altnorm.{name}" for name in SUBMODULES}
    root = Path(__file__).parents[2]
    files = set((root / folder).rglob("*.py")) - {root / name for name in INSIDERS}
    used = {(file.name, name) for file in files for name in imported_names(file)}
    assert used
    assert {(file, name) for file, name in used if name not in public} == set()


def imported_names(file):
    """Full names of what a program imports from the package."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "altnorm":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_public_names_are_few():
    assert len(set(PUBLIC)) == len(PUBLIC) <= 50


def test_classes_and_functions_have_their_own_tables():
    """A class needs a template; and what is not public may change without notice."""
    tables = re.split(r"^\.\. autosummary::$", PAGE, flags=re.MULTILINE)[1:]
    for table in tables:
        listed = re.findall(r"^   ([\w.]+)$", table, re.MULTILINE)
        is_class = {name.split(".")[-1][0].isupper() for name in listed}
        assert is_class == {":template: class.rst" in table}
