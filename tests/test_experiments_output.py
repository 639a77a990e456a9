"""Pages of studies: tables generated, words by hand."""

import pytest

from experiments._output import fill_page

WORDS = "# By hand\n\n<!-- table a -->\n{}\n<!-- end a -->\n\nRead in 2026.\n"


def test_tables_are_replaced_and_words_stay(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(WORDS.format("old"))
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
