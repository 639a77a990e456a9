"""The table of files: facts, sizes and hashes."""

import hashlib
import json

import numpy as np
import pytest

from experiments._output import read_records
from experiments.data import __main__ as data_command

NAME = "letter26_gnb"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "predictions"
    path.mkdir()
    parts = {"val_logits": np.zeros((5, 3)), "test_logits": np.zeros((7, 3))}
    np.savez(path / f"{NAME}.npz", val_labels=np.zeros(5), test_labels=np.zeros(7), **parts)
    (path / "README.md").write_text("not a file of predictions")
    return path


def test_the_tables_hold_sizes_and_hashes_and_rows_of_dialogues(folder, tmp_path):
    output, datasets = tmp_path / "out", tmp_path / "datasets"
    for name in ("banking77", "dialogre"):
        (datasets / name).mkdir(parents=True)
    (datasets / "banking77" / "test.csv").write_text("text")
    pairs = [{"x": "a", "y": "b", "rid": [1]}, {"x": "b", "y": "c", "rid": [37]}]
    dialogues = [[["A: hi"], pairs], [["B: no"], pairs[:1]]]
    (datasets / "dialogre" / "dev.json").write_text(json.dumps(dialogues))
    arguments = ["--data", str(folder), "--datasets", str(datasets), "--output", str(output)]
    assert data_command.main(arguments) == 0
    (row,), data = (read_records(output / f"{name}.csv") for name in ("files", "data"))
    assert row["sha256"] == hashlib.sha256((folder / f"{NAME}.npz").read_bytes()).hexdigest()
    assert (row["classes"], row["validation"], row["test"]) == (3, 5, 7)
    assert {record["file"]: record["rows"] for record in data} == {"test.csv": "", "dev.json": 3}


def test_other_missing_and_unknown_files_are_told(folder, tmp_path, capsys):
    assert data_command.main(["--data", str(folder), "--check", "--output", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {f"{NAME}: another file", "sst2_gpt2: missing"} <= set(lines)
    (folder / "stranger.npz").write_bytes(b"")
    with pytest.raises(SystemExit, match=r"stranger\.npz"):
        data_command.main(["--data", str(folder), "--output", str(tmp_path)])


def test_every_committed_file_has_a_hash_and_facts():
    facts = read_records(data_command.FACTS / "predictions.csv")
    committed = read_records(data_command.RESULTS / "files.csv")
    assert [record["name"] for record in facts] == [record["name"] for record in committed]
    for record in committed:
        assert len(record["sha256"]) == 64
        assert all(record[name] for name in ("trained", "source", "licence", "split"))
