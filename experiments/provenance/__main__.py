"""``python -m experiments.provenance --data DIR [--datasets DIR] [--check]``.

Writes a table of all files that the studies read: what this folder's ``predictions.csv`` and
``datasets.csv`` know of them, their sizes, and their SHA-256. With ``--check`` nothing is written:
it says which files are not those that the committed numbers come from.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._output import (
    fill_page,
    markdown_table,
    parse_arguments,
    read_records,
    write_records,
)

FACTS = Path(__file__).parent
PAGE = FACTS / "results" / "README.md"
DATASETS = {"type": Path, "metavar": "DIR", "help": "folder with the data sets"}
CHECK = {"action": "store_true", "help": "compare the files with the committed SHA-256"}
FIELDS = ("name", "trained", "source", "licence", "split", "classes")
SHOWN = 12  # characters of a SHA-256 on the page


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def describe_predictions(folder: Path) -> list[dict[str, Any]]:
    """One record per file of predictions that is known and there."""
    known = read_records(FACTS / "predictions.csv")
    paths = {fact["name"]: folder / f"{fact['name']}.npz" for fact in known}
    strangers = sorted({path.stem for path in folder.glob("*.npz")} - set(paths))
    if strangers:
        raise SystemExit(f"Nothing is known of {strangers[0]}.npz: add a line to predictions.csv.")
    return [
        fact | _sizes(paths[fact["name"]]) | {"sha256": sha256(paths[fact["name"]])}
        for fact in known
        if paths[fact["name"]].exists()
    ]


def _sizes(path: Path) -> dict[str, int]:
    with np.load(path, allow_pickle=False) as file:
        halves = "val_logits" in file
        val, test = (file["val_logits"], file["test_logits"]) if halves else (file["logits"], ())
        return {"classes": val.shape[1], "validation": len(val), "test": len(test)}


def describe_datasets(folder: Path) -> list[dict[str, Any]]:
    """One record per file of the data sets."""
    return [
        fact | {"file": path.name, "sha256": sha256(path)}
        for fact in read_records(FACTS / "datasets.csv")
        for path in sorted((folder / fact["name"]).glob("*"))
    ]


def make_tables(results: Path) -> dict[str, str]:
    """The tables of the page, from the CSV files."""
    predictions, files = (read_records(results / f"{name}.csv") for name in ("files", "data"))
    header = ["file", "trained", "source", "licence", "split", "classes", "rows", "SHA-256"]
    lines = [
        [
            *(
                str(r[name])
                for name in ("name", "trained", "source", "licence", "split", "classes")
            ),
            f"{r['validation']:,} / {r['test']:,}" if r["test"] else f"{r['validation']:,}",
            f"`{r['sha256'][:SHOWN]}`",
        ]
        for r in predictions
    ]
    data = [
        [f"{r['name']}/{r['file']}", r["source"], r["licence"], f"`{r['sha256'][:SHOWN]}`"]
        for r in files
    ]
    return {
        "predictions": markdown_table(header, lines),
        "datasets": markdown_table(["file", "source", "licence", "SHA-256"], data),
    }


def differences(found: Sequence[dict[str, Any]], committed: Sequence[dict[str, Any]]) -> list[str]:
    """Files that are missing, or other than the committed ones."""
    names = [(r["name"], r.get("file", "")) for r in found]
    hashes = dict(zip(names, (r["sha256"] for r in found), strict=True))
    problems = []
    for r in committed:
        key = (r["name"], r.get("file", ""))
        if key not in hashes:
            problems.append(f"{'/'.join(filter(None, key))}: missing")
        elif hashes[key] != r["sha256"]:
            problems.append(f"{'/'.join(filter(None, key))}: another file")
    return problems


def main(argv: Sequence[str] | None = None) -> int:
    """Describe the files, or compare them with those that were described."""
    options = {"--datasets": DATASETS, "--check": CHECK}
    arguments = parse_arguments(
        "provenance", __doc__, argv, data="the predictions (.npz)", options=options, has_tables=True
    )
    found = {}
    if not arguments.tables:
        found["files"] = describe_predictions(arguments.data)
        if arguments.datasets is not None:
            found["data"] = describe_datasets(arguments.datasets)
    if arguments.check:
        committed = {name: read_records(PAGE.with_name(f"{name}.csv")) for name in found}
        problems = [text for name in found for text in differences(found[name], committed[name])]
        print("\n".join(problems) or "all files are the ones that the numbers come from")
        return int(bool(problems))
    for name, records in found.items():
        write_records(arguments.output / f"{name}.csv", records)
    if not arguments.measure:
        fill_page(PAGE, arguments.output, make_tables(arguments.output))
    print(f"results in {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
