"""The public names have complete numpydoc docstrings, with an example that runs as a doctest."""

from dataclasses import is_dataclass
from importlib import import_module

import pytest
from numpydoc.validate import validate

import altnorm
from altnorm._api import SUBMODULES, page, public_names

HEAVY = ("spark", "ray", "torch")  # slow to import, and extras
NAMES = [
    pytest.param(f"altnorm.{name}", marks=pytest.mark.heavy)
    if name.split(".")[0] in HEAVY
    else f"altnorm.{name}"
    for name in public_names()
]
# Summary, sections in order, every parameter documented, what comes back.
RULES = {
    "GL06",
    "GL07",
    "GL08",
    "PR01",
    "PR02",
    "PR06",
    "PR07",
    "RT01",
    "RT03",
    "SS01",
    "SS02",
    "SS03",
}
# One docstring stands for several alike; a generator yields.
ALLOWED = {
    "altnorm.metrics.loose_micro_f1": {"PR01", "RT01"},
    "altnorm.trajectory": {"PR07"},
    "altnorm.arrow.apply_batches": {"RT01"},
}
WITHOUT_EXAMPLE = {
    "altnorm.model.load_model",
    "altnorm.predictions.read_predictions",
    "altnorm.predictions.write_predictions",
    "altnorm.reference.reference_mask",
    "altnorm.report.render_report",
}


def is_record(name):
    """Records document fields as attributes; an example is with the function that returns one."""
    module, _, last = name.rpartition(".")
    return is_dataclass(getattr(import_module(module), last))


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_is_complete(name):
    rules = RULES - ALLOWED.get(name, set()) - ({"PR01"} if is_record(name) else set())
    found = [(code, told) for code, told in validate(name)["errors"] if code in rules]
    assert not found


@pytest.mark.parametrize("name", NAMES)
def test_public_names_have_an_example(name):
    shown = ">>>" in (validate(name)["docstring"] or "")
    assert shown or is_record(name) or name in WITHOUT_EXAMPLE


def test_the_list_holds_what_the_package_exports():
    assert sorted(altnorm.__all__) == sorted(name for name in public_names() if "." not in name)
    assert set(SUBMODULES) <= set(dir(altnorm))
    for module in ("peers", "metrics"):
        listed = {name.split(".")[1] for name in public_names() if name.startswith(module + ".")}
        assert set(getattr(altnorm, module).__all__) == listed


def test_the_page_lists_every_name_once():
    lines = page().splitlines()
    assert all(lines.count(f"   {name}") == 1 for name in public_names())
