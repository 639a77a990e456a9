"""The table of files: facts, sizes and hashes."""

import hashlib

import numpy as np
import pytest

from experiments.provenance import __main__ as provenance
from tests.pages import check_page, read_page

NAME = "letter26_gnb"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "predictions"
    path.mkdir()
    parts = {"val_logits": np.zeros((5, 3)), "test_logits": np.zeros((7, 3))}
    np.savez(path / f"{NAME}.npz", val_labels=np.zeros(5), test_labels=np.zeros(7), **parts)
    (path / "README.md").write_text("not a file of predictions")
    return path


@pytest.fixture
def datasets(tmp_path):
    path = tmp_path / "datasets" / "banking77"
    path.mkdir(parents=True)
    (path / "test.csv").write_text("text")
    return path.parent


def test_the_page_holds_sizes_and_hashes(folder, datasets, tmp_path):
    output = tmp_path / "out"
    given = ["--data", str(folder), "--datasets", str(datasets), "--output", str(output)]
    assert provenance.main(given) == 0
    tables = check_page(output)
    (row,), (data,) = tables["files"], tables["data"]
    assert row["sha256"] == hashlib.sha256((folder / f"{NAME}.npz").read_bytes()).hexdigest()
    assert (row["classes"], row["validation"], row["test"]) == ("3", "5", "7")
    assert data["file"] == "test.csv"
    page = read_page(output)
    assert f"| 3 | 5 / 7 | `{row['sha256'][:12]}` |" in page
    assert "banking77/test.csv" in page


def test_other_and_missing_files_are_told(folder, tmp_path, capsys):
    assert provenance.main(["--data", str(folder), "--check", "--output", str(tmp_path)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert f"{NAME}: another file" in told
    assert "sst2_gpt2: missing" in told


def test_a_file_that_nobody_knows_is_an_error(folder, tmp_path):
    (folder / "stranger.npz").write_bytes(b"")
    with pytest.raises(SystemExit, match=r"stranger\.npz"):
        provenance.main(["--data", str(folder), "--output", str(tmp_path)])


def test_every_committed_file_has_a_hash_and_facts():
    facts = provenance.read_records(provenance.FACTS / "predictions.csv")
    committed = provenance.read_records(provenance.PAGE.with_name("files.csv"))
    assert [one["name"] for one in facts] == [one["name"] for one in committed]
    for one in committed:
        assert len(one["sha256"]) == 64
        assert all(one[name] for name in ("trained", "source", "licence", "split"))
