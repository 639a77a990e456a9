"""The page on the paper: 74 things, and every place and command that it names is there."""

import re
from importlib import import_module
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from experiments._output import read_records

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.*) \| (.*) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
WORDS = ("agrees", "differs", "open", "cannot be rerun", "done", "cited", "not read")
PATH = re.compile(r"`([\w./-]*(?:/|\.md|NOTICE)[\w./-]*)(?:::(\w+))?`")


def find(name):
    """A path begins at the project's folder or at the package's."""
    places = [ROOT / name, ROOT / "src" / "altnorm" / name]
    existing = [place for place in places if place.exists()]
    assert existing, f"{name} is not there"
    return existing[0]


def test_all_is_there_in_order():
    assert [int(number) for number, *_ in ROWS] == list(range(1, 75))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_leads_to_what_exists(row):
    _, _, here, command, result = row
    assert any(word in result for word in WORDS)
    for name, definition in PATH.findall(f"{here} {result}"):
        place = find(name)
        headings = re.findall(rf'`{re.escape(name)}`, "([^"]+)"', here)
        for heading in headings:
            assert f"\n## {heading}\n" in place.read_text(encoding="utf-8")
        if definition:
            defined = rf"^(?:def|class) {definition}\b"
            assert re.search(defined, place.read_text(encoding="utf-8"), re.MULTILINE)
    for module in re.findall(r"`python -m ([\w.]+)`", command):
        base = ROOT / module.replace(".", "/")
        assert base.with_suffix(".py").exists() or (base / "__main__.py").exists()
    for tests in re.findall(r"`pytest ([\w./]+)`", command):
        assert (ROOT / tests).exists()


def test_what_has_a_star_makes_its_tables_from_a_clone(capsys):
    starred = {name for *_, command, _ in ROWS for name in re.findall(r"m ([\w.]+)` \*", command)}
    assert "experiments.suite" in starred
    for name in starred:
        with pytest.raises(SystemExit):
            import_module(f"{name}.__main__").main(["--help"])
        assert "--tables" in capsys.readouterr().out, name


def test_a_row_without_a_place_says_where_it_is():
    """ "The same" refers to the row above; everything else names a place."""
    for number, _, here, _, _ in ROWS:
        refers = re.match(r"the (same|default|pages of both)", here)
        assert PATH.search(here) or refers, number


# The numbers of ours that the page names.


def numbers_of(study, table):
    return read_records(ROOT / "experiments" / study / "results" / f"{table}.csv")


def result(number):
    return next(result for n, *_, result in ROWS if int(n) == number)


def mean_of(rows, field, **wanted):
    return fmean(row[field] for row in rows if wanted.items() <= row.items())


def test_what_is_gained_on_entity_types():
    rows = numbers_of("ufet", "results")
    after, before = (
        mean_of(rows, "val_macro", method=name) for name in ("CAN as published", "base")
    )
    assert f"gains {after - before:+.2f} there" in result(24)


def test_how_many_entries_are_in_doubt():
    rows = numbers_of("ufet", "doubt")
    papers = {(0.25, "validation"): 14269, (0.25, "test"): 19007}
    papers |= {(0.75, "validation"): 4454, (0.75, "test"): 4601}
    times = {
        key: mean_of(rows, "in_doubt", threshold=key[0], split=key[1]) / count
        for key, count in papers.items()
    }
    assert times.pop((0.25, "test")) == pytest.approx(1, abs=0.05)
    assert list(times.values()) == pytest.approx([4 / 3] * 3, abs=0.05)
    assert "about a third more of ours in validation, and at .75" in result(48)


def test_sizes_are_those_of_the_paper():
    rows = {(row["name"], row["file"]): row["rows"] for row in numbers_of("data", "data")}
    parts = [f"{split}.json.gz" for split in ("train", "dev", "test")]
    assert [rows["dialogre", part] for part in parts] == [5997, 1914, 1862]
    assert [rows["ufet", part] for part in parts] == [1998] * 3
    for study, n_classes in (("dialogre", 36), ("ufet", 10331)):
        sizes = [rows[study, part] * n_classes for part in parts[1:]]
        entries = {row["split"]: row["entries"] for row in numbers_of(study, "doubt")}
        assert list(entries.values()) == sizes


def test_how_much_of_the_simulation_the_reference_explains():
    """A two-way analysis of variance of the 16 means."""
    columns = numbers_of("simulation", "authors_prior")
    means = np.reshape([row["gain"] for row in columns], (4, 4))
    assert len({row["reference_low"] for row in columns[:4]}) == 1
    spread = ((means - means.mean()) ** 2).sum()
    assert 4 * ((means.mean(axis=1) - means.mean()) ** 2).sum() / spread > 0.5
    assert "more than half of the spread of delta" in result(22)


def test_images():
    papers = [26.97, 49.58, 68.84, 82.46, 91.44, 97.78]
    doubt = numbers_of("blur", "doubt")
    assert np.abs([row["share_all_k"] for row in doubt] - np.array(papers)).max() < 10
    assert "within 10 points" in result(50)
    rows = numbers_of("blur", "published")
    best, naive = (
        [row["gain_hard"] for row in rows if row["method"] == name]
        for name in ("best on these images", "alpha 1, depth 1")
    )
    assert [round(a - b, 5) > 0 for a, b in zip(best, naive, strict=True)].count(False) == 1
    assert best[3] == naive[3]
    assert "agrees at five; equal at sigma 8" in result(60)
    assert f"(ours {rows[9]['base_hard']:.2f} %)" in result(58)
    assert rows[9]["sigma"] == 8


def test_the_readings_of_equation_2_on_the_page_on_mathematics():
    """Two that renormalise, and two each without: ten k first, then all."""
    page = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    table = page[page.index("| the paper, ResNet-50 |") :].split("\n\n")[0].splitlines()[1:]
    shown = [[float(cell) for cell in re.findall(r" ([\d.]+) (?=\|)", line)] for line in table]
    fields = ("share", "share_all_k", "base_k", "base_k_all_k", "base_m", "base_m_all_k")
    assert shown == [[row[field] for row in numbers_of("blur", "doubt")] for field in fields]
