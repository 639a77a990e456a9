"""The committed pages show the committed numbers."""

import shutil
from importlib import import_module

import pytest

pytest.importorskip("matplotlib")

from tests.pages import read_page

STUDIES = (
    "asking",
    "blur",
    "confident_reference",
    "corruption",
    "dialogre",
    "evidence",
    "label_shift",
    "language",
    "provenance",
    "reference_choice",
    "suite",
    "ufet",
)


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_follows_from_the_numbers(name, tmp_path):
    study = import_module(f"experiments.{name}.__main__")
    results = study.PAGE.parent
    for table in results.glob("*.csv"):
        shutil.copy(table, tmp_path)
    study.main(["--tables", "--output", str(tmp_path)])
    # A page that is made elsewhere opens with a warning.
    assert read_page(tmp_path).endswith(read_page(results))
