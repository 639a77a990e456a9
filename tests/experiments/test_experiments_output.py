"""Pages of studies: tables generated, words by hand."""

import pytest

from experiments._output import fill_page, parse_arguments, read_records, write_records

WORDS = "# By hand\n\n<!-- table a -->\n{}\n<!-- end a -->\n\nRead in 2026.\n"


def test_tables_are_replaced_and_words_stay(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(WORDS.format("old").replace("\nold\n", "\n"))  # a place with nothing in it
    for table in ("| 1 |", "| 2 |"):
        fill_page(page, tmp_path, {"a": table})
        assert page.read_text() == WORDS.format(f"\n{table}\n")


def test_another_folder_gets_a_copy_that_says_so(tmp_path):
    page, quick = tmp_path / "README.md", tmp_path / "quick"
    quick.mkdir()
    page.write_text(WORDS.format("old"))
    fill_page(page, quick, {"a": "| 1 |"})
    assert page.read_text() == WORDS.format("old")
    assert (quick / "README.md").read_text() == (
        "*The tables are from another run than the words.*\n\n" + WORDS.format("\n| 1 |\n")
    )


def test_a_place_that_is_missing_is_named(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("nothing here")
    with pytest.raises(SystemExit, match="no place for the table 'a'"):
        fill_page(page, tmp_path, {"a": "x"})


def test_records_come_back_as_they_were(tmp_path):
    records = [
        {"name": "a, b", "n": 3, "gain": -0.25, "adopted": True, "setting": ""},
        {"name": "c", "n": 1234567, "gain": 1 / 3, "adopted": False, "setting": "alpha 1"},
    ]
    write_records(tmp_path / "x.csv", records)
    found = read_records(tmp_path / "x.csv")
    assert found == [records[0], records[1] | {"gain": 0.33333}]


def test_data_are_needed_to_measure_but_not_to_write_tables(tmp_path, capsys):
    arguments = ["--output", str(tmp_path)]
    tables = parse_arguments("any", "", [*arguments, "--tables"], data="files", has_tables=True)
    assert tables.tables
    assert tables.data is None
    with pytest.raises(SystemExit, match="2"):
        parse_arguments("any", "", arguments, data="files")
    assert "--data DIR is needed: the folder with files" in capsys.readouterr().err
