"""A target accuracy at the command line: what is promised, handed over, and held to it later."""

import numpy as np
import pandas as pd
import pytest

from altnorm import load
from tests.commands import CLASSES, QUICK, run, said, table, told

TARGET = ["--target-accuracy", "0.9"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with predictions and a model for a target accuracy."""
    folder = tmp_path_factory.mktemp("target")
    for name, seed in (("val", 1), ("test", 2)):
        table(900, seed).to_parquet(folder / f"{name}.parquet")
    file = str(folder / "model.safetensors")
    options = ["--label", "y", *QUICK, *TARGET]
    assert run(["tune", str(folder / "val.parquet"), "-o", file, *options]) == 0
    return folder


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    """The same files in a working folder of its own."""
    for file in fitted.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def decisions():
    rows = pd.read_parquet("test.parquet")
    answers = load("model.safetensors").predict(rows[CLASSES].to_numpy())
    return rows, answers, np.array([answer is not None for answer in answers])


def test_tune_says_what_is_promised(folder, capsys):
    promise = load("model.safetensors").verdict_.promise
    options = ["--label", "y", *QUICK, *TARGET, "--force"]
    text = said(capsys, ["tune", "val.parquet", "-o", "again.safetensors", *options])
    assert f"It decides {promise.share:.1%} of the rows, for a target of 90%" in text
    record = told(capsys, ["tune", "val.parquet", "-o", "again.safetensors", *options, "--json"])
    assert record["verdict"]["promise"]["share"] == promise.share
    least = load("model.safetensors").decision_.least
    assert record["applied"]["rule"]["least_probability"] == least
    text = said(capsys, ["info", "model.safetensors"])
    assert "the most probable class, from a probability of 0." in text


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_apply_leaves_the_same_rows_empty_and_counts_them(folder, capsys, suffix):
    _, answers, decided = decisions()
    text = said(capsys, ["apply", "model.safetensors", "test.parquet", "-o", f"out.{suffix}"])
    assert f"{(~decided).sum()} rows left to a person" in text
    read = {"parquet": pd.read_parquet, "csv": pd.read_csv}.get(suffix)
    out = pd.read_json(f"out.{suffix}", lines=True) if read is None else read(f"out.{suffix}")
    assert out["prediction"].notna().tolist() == decided.tolist()
    assert out["prediction"][decided].tolist() == answers[decided].tolist()


def test_new_labels_say_whether_the_promise_holds(folder, capsys):
    rows, answers, decided = decisions()
    right = (answers == rows["y"])[decided].mean()
    check = ["check", "test.parquet", "--model", "model.safetensors", "--label", "y", "--force"]
    text = said(capsys, check)
    assert f"It decides {decided.mean():.1%} of the rows (at fit" in text
    assert f"{right:.1%} of them are right" in text
    record = told(capsys, [*check, "--json"])["test"]
    assert record["promise_kept"]["n_decided"] == decided.sum()
    assert record["left"] == np.flatnonzero(~decided).tolist()
    assert record["promise_kept"]["outcome"] in ("holds", "open")
    assert record["score"]["after"] > record["score"]["before"]  # of all rows


def test_broken_promise_is_named_and_fails_when_strict(folder, capsys):
    rows = pd.read_parquet("test.parquet")
    wrong = np.random.default_rng(0).random(len(rows)) < 0.3
    rows.loc[wrong, "y"] = rows.loc[wrong, "y"].map(
        dict(zip(CLASSES, np.roll(CLASSES, 1), strict=True))
    )
    rows.to_parquet("changed.parquet")
    check = ["check", "changed.parquet", "--model", "model.safetensors", "--label", "y"]
    assert "the promise of 90% is broken" in said(capsys, [*check, "--force"])
    assert run([*check, "--force", "--strict"]) == 1


def test_without_labels_the_queue_is_compared_with_that_at_fit(folder, capsys):
    _, _, decided = decisions()
    at_fit = 1 - load("model.safetensors").verdict_.promise.share
    pd.read_parquet("test.parquet").drop(columns="y").to_parquet("new.parquet")
    check = ["check", "new.parquet", "--model", "model.safetensors"]
    text = said(capsys, check)
    assert f"It would leave {1 - decided.mean():.1%} of these rows to a person" in text
    assert f"at fit it was {at_fit:.1%}" in text
    record = told(capsys, [*check, "--json"])
    assert record["share_left"] == pytest.approx({"now": 1 - decided.mean(), "at_fit": at_fit})


def test_where_nothing_is_decided_no_line_says_that_decisions_stay(folder, capsys):
    tune = ["tune", "val.parquet", "--label", "y", "-o", "none.safetensors", "--jobs", "1"]
    text = said(capsys, [*tune, "--target-accuracy", "0.9999", "--significance", "1e-99"])
    assert "the class of each row stays as it was. It decides nothing" in text
    assert "decisions stay" not in text
    assert "The model changes no class and calibrates probabilities" in text
    text = said(capsys, ["info", "none.safetensors"])
    assert "decides nothing; every row is left to a person" in text
