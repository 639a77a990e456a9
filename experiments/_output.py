"""What the studies share about arguments and files."""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "fill_page",
    "interval_labels",
    "markdown_table",
    "parse_arguments",
    "read_part",
    "read_records",
    "read_text",
    "write_csv",
    "write_records",
]


def parse_arguments(
    name: str,
    description: str | None,
    argv: Sequence[str] | None,
    *,
    data: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    has_tables: bool = False,
) -> argparse.Namespace:
    """Arguments of a study.

    A quick run goes into ``results/quick``, which git ignores, and so leaves the committed results
    alone.

    Parameters
    ----------
    name, description : str
        Name of the study's folder, and what it does.
    argv : sequence of str, optional
        The command line.
    data : str, optional
        What the folder holds that the study reads: it must then be given with ``--data DIR``.
    options : mapping, optional
        Further options, with the keywords of :meth:`argparse.ArgumentParser.add_argument`.
    has_tables : bool, default=False
        Whether the study makes its figures and page from the CSV files that it wrote before, and
        from nothing else. It then has options ``--measure`` and ``--tables`` for one of the two
        steps alone.

    Returns
    -------
    argparse.Namespace
        With an `output` folder that exists.
    """
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{name}", description=description)
    if data is not None:
        parser.add_argument("--data", type=_folder, metavar="DIR", help=f"folder with {data}")
    for flag, keywords in (options or {}).items():
        parser.add_argument(flag, **keywords)
    parser.add_argument("--quick", action="store_true", help="a small version, for a first look")
    parser.set_defaults(tables=False, measure=False)
    if has_tables:
        steps = parser.add_mutually_exclusive_group()
        meaning = "measure nothing: figures and page from the CSV files"
        steps.add_argument("--tables", action="store_true", help=meaning)
        meaning = "only measure: CSV files, no figures and no page"
        steps.add_argument("--measure", action="store_true", help=meaning)
    parser.add_argument("--output", type=Path, help="folder for the results")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 is one per core")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    if data is not None and arguments.data is None and not arguments.tables:
        parser.error(f"--data DIR is needed: the folder with {data}")
    if arguments.output is None:
        results = Path(__file__).parent / name / "results"
        arguments.output = results / "quick" if arguments.quick else results
    arguments.output.mkdir(parents=True, exist_ok=True)
    return arguments


def _folder(text: str) -> Path:
    """A folder that exists, as a type for :mod:`argparse`."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return path


def read_text(path: Path, source: str) -> str:
    """The text of a file, plain or compressed; without it, a user is sent to its source."""
    packed = path.with_name(f"{path.name}.gz")
    if path.exists():
        return path.read_text(encoding="utf-8")
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode("utf-8")
    raise SystemExit(
        f"There is neither {path.name} nor {packed.name} in {path.parent}. Download {source}."
    )


def write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of equal length; floats with five significant digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(f"{x:.5g}" if isinstance(x, float) else x for x in row)


def write_records(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write records that have the same fields, one per line."""
    write_csv(path, {name: [record[name] for record in records] for name in records[0]})


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read what `write_records` wrote; numbers and truth values are no longer text."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: _parsed(text) for k, text in row.items()} for row in csv.DictReader(file)]


def read_part(folder: Path, page: Path, name: str) -> list[dict[str, Any]]:
    """Records of a run; of a part that it left out, those beside the study's page."""
    path = folder / f"{name}.csv"
    return read_records(path if path.exists() else page.parent / path.name)


def _parsed(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def fill_page(page: Path, folder: Path, tables: Mapping[str, str]) -> None:
    """Put generated tables into the page of a study.

    A table stands between ``<!-- table NAME -->`` and ``<!-- end NAME -->``. All else on the page
    is written by hand, and says when.

    Parameters
    ----------
    page : pathlib.Path
        The page that is committed, with a place for each table.
    folder : pathlib.Path
        Where the results go; unless the page lies there, a copy of it does, with a warning.
    tables : mapping of str to str
        Markdown by name.
    """
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        start, end = f"<!-- table {name} -->\n", f"<!-- end {name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"{page} has no place for the table {name!r}: add {start}{end}")
        text = f"{before}{start}\n{table}\n\n{end}{after}"
    if folder.resolve() != page.parent.resolve():
        text = f"*The tables are from another run than the words.*\n\n{text}"
    (folder / "README.md").write_text(text, encoding="utf-8")


def interval_labels(edges: Sequence[float]) -> list[str]:
    """Neighbouring edges as text, the last interval closed: [0, .25), ..., [.75, 1]."""
    ends = [f"{edge:.2g}".replace("0.", ".") for edge in edges]
    closing = [")"] * (len(ends) - 2) + ["]"]
    return [f"[{a}, {b}{c}" for a, b, c in zip(ends[:-1], ends[1:], closing, strict=True)]
