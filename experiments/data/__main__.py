"""``python -m experiments.data --data DIR [--datasets DIR] [--check]``.

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

from experiments._output import parse_arguments, read_records, write_records
from experiments.dialogre.data import read_split as read_pairs
from experiments.ufet.data import read_split as read_mentions

FACTS = Path(__file__).parent
RESULTS = FACTS / "results"
DATASETS = {"type": Path, "metavar": "DIR", "help": "folder with the data sets"}
READERS = {"dialogre": read_pairs, "ufet": read_mentions}  # the paper gives their sizes
CHECK = {"action": "store_true", "help": "compare the files with the committed SHA-256"}


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
        fact | {"file": path.name, "rows": _rows(path), "sha256": sha256(path)}
        for fact in read_records(FACTS / "datasets.csv")
        for path in sorted((folder / fact["name"]).glob("*"))
    ]


def _rows(path: Path) -> int | str:
    """Rows of a part of the paper's two data sets of several labels per row."""
    reader = READERS.get(path.parent.name)
    split = path.name.partition(".")[0]
    return len(reader(path.parent, split)) if reader and split != "types" else ""


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
        "data", __doc__, argv, data="the predictions (.npz)", options=options
    )
    found = {"files": describe_predictions(arguments.data)}
    if arguments.datasets is not None:
        found["data"] = describe_datasets(arguments.datasets)
    if arguments.check:
        committed = {name: read_records(RESULTS / f"{name}.csv") for name in found}
        problems = [text for name in found for text in differences(found[name], committed[name])]
        print("\n".join(problems) or "all files are the ones that the numbers come from")
        return int(bool(problems))
    for name, records in found.items():
        write_records(arguments.output / f"{name}.csv", records)
    print(f"results in {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
