"""Pages of studies: tables generated, words by hand."""

import pytest

from experiments._output import fill_page


def test_tables_are_replaced_and_words_stay(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("# By hand\n\n<!-- table a -->\nold\n<!-- end a -->\n\nRead in 2026.\n")
    for table in ("| 1 |", "| 2 |"):
        fill_page(tmp_path, {"a": table})
        text = page.read_text()
        assert text == (
            f"# By hand\n\n<!-- table a -->\n\n{table}\n\n<!-- end a -->\n\nRead in 2026.\n"
        )


def test_a_place_that_is_missing_is_named(tmp_path):
    (tmp_path / "README.md").write_text("nothing here")
    with pytest.raises(SystemExit, match="no place for the table 'a'"):
        fill_page(tmp_path, {"a": "x"})


def test_without_a_page_the_tables_stand_alone(tmp_path):
    fill_page(tmp_path, {"a": "| 1 |", "b": "| 2 |"})
    text = (tmp_path / "README.md").read_text()
    assert text.index("| 1 |") < text.index("| 2 |")
