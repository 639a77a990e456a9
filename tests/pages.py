"""What the page of an experiment mentions must lie beside it."""

import csv


def read_page(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


def check_figures(folder, names):
    """The page shows each figure, and there is something in its file."""
    page = read_page(folder)
    for name in names:
        assert f"({name}.png)" in page
        assert (folder / f"{name}.png").stat().st_size > 1000


def read_table(folder, name):
    """Rows of a table that the page mentions."""
    assert f"({name}.csv)" in read_page(folder)
    with (folder / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))
