"""Pages of studies: tables generated, words by hand, a sample of the lines measured anew."""

import re
import shutil
from importlib import import_module

import pytest

pytest.importorskip("matplotlib")

from experiments import _output as output, reproduce, samples
from experiments._output import read_records, write_records
from experiments.samples import SAMPLES, Folders, Sample
from tests.pages import check_page, read_page
from tests.versions import present_versions

PAGES = sorted(samples.ROOT.glob("**/results/README.md"))
WITHOUT_PAGE = {"demo_data"}  # folders that hold no study
IN_REPOSITORY = [
    pytest.param(one, marks=[pytest.mark.heavy] * bool(one.package), id=f"{one.study}/{one.table}")
    for one in SAMPLES
    if one.needs is None and not one.slow
]


@present_versions
@pytest.mark.parametrize("sample", IN_REPOSITORY)
def test_the_code_still_gives_the_committed_lines(sample):
    """If this fails: renew the page, or let it say that it is out of date."""
    if sample.package:
        pytest.importorskip(sample.package)
    if not samples.is_marked(sample):
        assert samples.differences(sample, Folders()) == []


def test_every_study_is_sampled():
    pages = {str(page.parents[1].relative_to(samples.ROOT)) for page in PAGES}
    assert {sample.study for sample in SAMPLES} == pages - WITHOUT_PAGE


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study with two committed lines, and a sample that measures the second anew."""
    monkeypatch.setattr(samples, "ROOT", tmp_path)
    folder = tmp_path / "tiny" / "results"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# Tiny\n")
    lines = [{"name": name, "gain": x, "seconds": 1.0} for name, x in (("a", 1 / 3), ("b", 2.0))]
    write_records(folder / "gains.csv", lines)
    return Sample("tiny", "gains", lambda folders: [lines[1] | {"seconds": 7.0}])


def test_a_line_that_has_changed_is_told(study, monkeypatch, capsys):
    monkeypatch.setattr(samples, "SAMPLES", (study,))
    assert samples.main([]) == 0
    assert capsys.readouterr().out == "tiny/gains: up to date\n"
    changed = study._replace(measure=lambda folders: [{"name": "a", "gain": 0.35}])
    monkeypatch.setattr(samples, "SAMPLES", (changed,))
    assert samples.main([]) == 1
    assert "tiny/gains: OUT OF DATE: 1 of the sampled lines, now: name a, gain 0.35" in (
        capsys.readouterr().out
    )
    page = changed.folder / "README.md"
    page.write_text(f"# Tiny\n\n{samples.OUT_OF_DATE} Renew it.\n")
    assert samples.main([]) == 0
    assert "OUT OF DATE (and the page says so)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lacking", "message"),
    [
        ({"needs": "predictions"}, "not looked at: give the folder with --predictions"),
        ({"package": "no_such_package"}, "not looked at: it needs no_such_package"),
    ],
)
def test_what_is_not_there_is_asked_for(study, monkeypatch, capsys, lacking, message):
    monkeypatch.setattr(samples, "SAMPLES", (study._replace(**lacking),))
    assert samples.main([]) == 0
    assert message in capsys.readouterr().out


# Pages of studies: tables generated, words by hand.


WORDS = "# By hand\n\n<!-- table a -->\n{}\n<!-- end a -->\n\nRead in 2026.\n"


def test_tables_are_replaced_and_words_stay(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(WORDS.format("old").replace("\nold\n", "\n"))  # a place with nothing in it
    for table in ("| 1 |", "| 2 |"):
        output.fill_page(page, tmp_path, {"a": table})
        assert page.read_text() == WORDS.format(f"\n{table}\n")
    quick = tmp_path / "quick"  # another folder gets a copy that says so
    quick.mkdir()
    output.fill_page(page, quick, {"a": "| 3 |"})
    assert page.read_text() == WORDS.format("\n| 2 |\n")
    warning = "*The tables are from another run than the words.*\n\n"
    assert read_page(quick) == warning + WORDS.format("\n| 3 |\n")
    with pytest.raises(SystemExit, match="no place for the table 'b'"):
        output.fill_page(page, tmp_path, {"b": "x"})


def test_records_come_back_as_they_were(tmp_path):
    records = [
        {"name": "a, b", "n": 3, "gain": -0.25, "adopted": True, "setting": ""},
        {"name": "c", "n": 1234567, "gain": 1 / 3, "adopted": False, "setting": "alpha 1"},
    ]
    write_records(tmp_path / "x.csv", records)
    read = read_records(tmp_path / "x.csv")
    assert read == [records[0], records[1] | {"gain": 0.33333}]


def test_a_part_that_a_run_left_out_comes_from_the_committed_numbers(tmp_path):
    committed, new = tmp_path / "results", tmp_path / "new"
    for folder, names in ((committed, "ab"), (new, "a")):
        folder.mkdir()
        for name in names:
            write_records(folder / f"{name}.csv", [{"from": folder.name}])
    page = committed / "README.md"
    assert [output.read_part(new, page, name)[0]["from"] for name in "ab"] == ["new", "results"]


def test_data_are_needed_to_measure_but_not_to_write_tables(tmp_path, capsys):
    arguments = ["--output", str(tmp_path)]
    options = {"data": "files", "has_tables": True}
    tables = output.parse_arguments("any", "", [*arguments, "--tables"], **options)
    assert tables.tables
    assert tables.data is None
    absent = ["--data", str(tmp_path / "absent")]
    for more, message in (([], "--data DIR is needed: the folder with files"), (absent, "--data")):
        with pytest.raises(SystemExit, match="2"):
            output.parse_arguments("any", "", [*arguments, *more], **options)
        assert message in capsys.readouterr().err


# The committed pages show the committed numbers.


OTHERS = {  # they write tables only from a run, or none at all
    *("benchmark.scikit_learn", "blur.corruption", "last_layer"),
    *("simulation", "simulation.geometry"),
}
STUDIES = [study.name for study in reproduce.STUDIES if study.name not in OTHERS]


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_follows_from_the_numbers(name, tmp_path):
    study = import_module(f"experiments.{name}.__main__")
    results = study.PAGE.parent
    for table in results.glob("*.csv"):
        shutil.copy(table, tmp_path)
    study.main(["--tables", "--output", str(tmp_path)])
    check_page(tmp_path, finite=False)
    # A page that is made elsewhere opens with a warning.
    assert read_page(tmp_path).endswith(read_page(results))


def test_there_are_few_studies_and_a_reader_gets_through_them():
    folders = {page.relative_to(samples.ROOT).parts[0] for page in PAGES}
    assert len(folders - WITHOUT_PAGE) <= 12
    pages = samples.ROOT.glob("**/README.md")
    n_words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    assert n_words <= 30_000


# Numbers in the words of a page.

ELSEWHERE = {
    "asking": "0.05 60",
    "benchmark": "0.0003 0.0011 0.000001 0.753 0.769 39.5",  # its CSV file
    "blur": "1.96 3.25",  # the paper's
    "evidence": "1.96 60",
    "evidence/promise": "0.99 1.1 1.5 2.2 2.5 15 28 45 77 82.5 85.9 94",  # its CSV file
    "label_shift": "0.05 0.3 1.3 10.5",
    "reference_choice": "0.35 2.5 12 50",
    "simulation": "0.25 0.269 0.69 0.999 1.28 6",
    "suite": "7.7 14.1 17.8 77.3",
    "ufet": "3.5 8",
}
"""What no table of the page has: settings, levels, what the paper says, what a CSV file has."""
LEVEL = 95.0  # of intervals
NUMBER = re.compile(r"\d[\d,]*\.?\d*")
SAID = re.compile(r"(?<![\w.])(?:\d[\d,]*\.\d+|\d+(?= (?:points|%)))")


def is_rounded(text, number):
    digits = len(text.partition(".")[2])
    return abs(number - float(text)) <= 0.5 * 10**-digits + 1e-9


def untold(page):
    """Numbers in a page's words, with a point, or in points or per cent, that no table has."""
    lines = re.sub(r"```.*?```", "", page, flags=re.DOTALL).splitlines()
    tables = "\n".join(line for line in lines if line.startswith("|"))
    words = "\n".join(line for line in lines if not line.startswith("|"))
    words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", words)
    numbers = [LEVEL, *(float(text.replace(",", "")) for text in NUMBER.findall(tables))]
    stated = {text.replace(",", "") for text in SAID.findall(words)}
    return {text for text in stated if not any(is_rounded(text, number) for number in numbers)}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.parents[1].name))
def test_numbers_in_the_words_are_in_the_tables(page):
    name = str(page.parents[1].relative_to(samples.ROOT))
    assert untold(page.read_text(encoding="utf-8")) - set(ELSEWHERE.get(name, "").split()) == set()


def test_a_number_that_no_table_has_is_found():
    table = "| a | +1.26 [0.5, 2.04] | 1,200 |\n"
    assert untold(f"Gains 1.3 points, at most 2.0, of 1,200.0 rows.\n\n{table}") == set()
    assert untold(f"Gains 1.2 points, or 7 %, not 7.\n\n{table}") == {"1.2", "7"}
