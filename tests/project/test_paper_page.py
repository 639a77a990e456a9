"""The page on the paper: 74 things, and every place and command that it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.*) \| (.*) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
WORDS = ("agrees", "differs", "open", "cannot be rerun", "done", "cited", "not read")
PATH = re.compile(r"`([\w./-]*(?:/|\.md|NOTICE)[\w./-]*)(?:::(\w+))?`")


def find(name):
    """A path begins at the project's folder or at the package's."""
    places = [ROOT / name, ROOT / "src" / "altnorm" / name]
    found = [place for place in places if place.exists()]
    assert found, f"{name} is not there"
    return found[0]


def test_all_is_there_in_order():
    assert [int(number) for number, *_ in ROWS] == list(range(1, 75))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_leads_to_what_exists(row):
    _, _, here, command, result = row
    assert any(word in result for word in WORDS)
    for name, definition in PATH.findall(f"{here} {result}"):
        place = find(name)
        if definition:
            defined = rf"^(?:def|class) {definition}\b"
            assert re.search(defined, place.read_text(encoding="utf-8"), re.MULTILINE)
    for module in re.findall(r"`python -m ([\w.]+)`", command):
        base = ROOT / module.replace(".", "/")
        assert base.with_suffix(".py").exists() or (base / "__main__.py").exists()
    for tests in re.findall(r"`pytest ([\w./]+)`", command):
        assert (ROOT / tests).exists()


def test_a_row_without_a_place_says_where_it_is():
    """ "The same" refers to the row above; everything else names a place."""
    for number, _, here, _, _ in ROWS:
        refers = re.match(r"the (same|default|pages of both)", here)
        assert PATH.search(here) or refers, number
