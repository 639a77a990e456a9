"""Rows without labels, rows that belong together, and rows that change."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from altnorm import load
from altnorm.cli._run import run
from altnorm.io.columns import Layout
from altnorm.io.predictions import Predictions, read_predictions, write_predictions
from tests.commands import CLASSES, QUICK, draw, out, refused, table, words


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_rows_without_labels(folder, capsys, suffix):
    data = pd.read_parquet("val.parquet")
    data.loc[100:399, "y"] = None
    name = f"some.{suffix}"
    if suffix == "npz":
        labels = np.where(data["y"].isna(), "", data["y"].fillna(""))
        np.savez(name, proba=data[CLASSES].to_numpy(), classes=CLASSES, labels=labels.astype(str))
    else:
        getattr(data, f"to_{suffix}")(name, index=False)
    label = [] if suffix == "npz" else ["--label", "y"]
    assert run(["tune", name, *label, "-o", "m", *QUICK]) == 0
    text = " ".join(out(capsys).split())
    assert "600 rows (300 without a label), 3 classes ('ant', 'bee', 'cow')" in text
    assert load("m").verdict_.n_rows == 300
    message = refused(capsys, "check", name, "--model", "m", *label)
    assert "Each row must have a label" in message
    assert "empty in row 100" in message


def test_minus_one_is_no_label_unless_it_is_a_class(folder):
    proba, codes = draw(60, 0)
    np.savez("a.npz", proba=proba, labels=np.where(np.arange(60) < 50, codes, -1))
    known = read_predictions("a.npz", Layout(gaps=True))
    assert known.has_label.sum() == 50
    assert known.codes[:50].tolist() == codes[:50].tolist()
    assert known.codes[55] is None
    assert known.labelled().codes.tolist() == codes[:50].tolist()
    np.savez("b.npz", proba=proba, labels=codes - 1, classes=np.array([-1, 0, 1]))
    assert read_predictions("b.npz", Layout(gaps=True)).has_label.all()


def test_groups_reach_the_estimator(folder, capsys):
    data = pd.read_parquet("val.parquet")
    data["who"] = np.arange(len(data)) // 100 + 0.5  # a number, and no class
    data.to_parquet("grouped.parquet")
    tune = ["tune", "grouped.parquet", "--label", "y", "--json", *QUICK]
    assert run([*tune, "-o", "m", "--group", "who"]) == 0
    grouped = json.loads(out(capsys))["verdict"]
    assert run([*tune, "-o", "m2", "--other", "who"]) == 0
    alone = json.loads(out(capsys))["verdict"]
    assert grouped["p_value"] > alone["p_value"]  # six groups are less evidence than 600 rows
    data.loc[3, "who"] = None
    data.to_csv("gap.csv")
    tune[1] = "gap.csv"
    assert "Each row must have a group" in refused(capsys, *tune, "-o", "m3", "--group", "who")
    np.savez("a.npz", proba=draw(60, 0)[0], labels=draw(60, 0)[1])
    tune = ["tune", "a.npz", "-o", "m3", "--group", "who"]
    assert "--group names a column of a table" in refused(capsys, *tune)


def grouped_file(name, n_groups):
    """A file in which every group of rows is either right or wrong: copies of one row."""
    data = pd.read_parquet("test.parquet")
    rows = np.arange(n_groups).repeat(len(data) // n_groups)
    data = data.iloc[rows].assign(who=[f"person {i}" for i in rows])
    data.to_parquet(name)


def test_groups_count_in_test_rows_and_new_rows(folder, capsys):
    """Ten copies of forty rows are forty rows, not four hundred."""
    data = pd.read_parquet("val.parquet")
    data.assign(who=np.arange(len(data))).to_parquet("val.parquet")
    grouped_file("copies.parquet", 40)
    check = ["check", "val.parquet", "copies.parquet", "--label", "y", "--json", "--force"]
    check += ["-o", "m", "--report", "r.html"]
    assert run([*check, "--group", "who"]) == 0
    by_group = json.loads(out(capsys))
    assert run(check) == 0
    by_row = json.loads(out(capsys))
    assert by_group["test"]["verdict"]["gain"] == pytest.approx(by_row["test"]["verdict"]["gain"])
    wide = width(by_group["test"]["verdict"])
    assert wide > 2 * width(by_row["test"]["verdict"])
    ours = next(row for row in by_group["comparison"] if row["method"] == "altnorm")
    assert width(ours) == pytest.approx(wide)
    existing = ["check", "copies.parquet", "--model", "m", "--label", "y", "--json", "--force"]
    existing += ["--report", "r.html"]
    assert run([*existing, "--group", "who"]) == 0
    assert width(json.loads(out(capsys))["verdict"]) == pytest.approx(wide)


def width(record):
    return record["ci_high"] - record["ci_low"]


def test_groups_that_test_rows_lack(folder, capsys):
    data = pd.read_parquet("val.parquet")
    data.assign(who=np.arange(len(data))).to_parquet("val.parquet")
    check = ["check", "val.parquet", "test.parquet", "--label", "y", "--group", "who"]
    assert "no column 'who'" in refused(capsys, *check)
    grouped_file("test.parquet", 1)
    assert "at least 2 groups; all" in refused(capsys, *check)


def test_apply_counts_what_changes(folder, model, capsys):
    data = pd.read_parquet("test.parquet")[CLASSES].to_numpy()
    after = load(model).transform(data)
    write_predictions(Predictions(data, CLASSES), "test.npz")
    for name in ("test.parquet", "test.npz"):
        assert run(["apply", model, name, "-o", f"o-{name}", "--json"]) == 0
        printed = json.loads(out(capsys).splitlines()[-1])
        assert printed["n_rows_changed"] == (data != after).any(axis=1).sum()
        assert printed["n_decisions_changed"] == (data.argmax(axis=1) != after.argmax(axis=1)).sum()
    assert run(["apply", model, "test.parquet", "-o", "o2.parquet"]) == 0
    assert f"{printed['n_decisions_changed']} decisions changed" in out(capsys)


def test_a_model_that_changes_nothing(folder, capsys):
    table(300, 0, bias=(0, 0, 0)).to_parquet("fair.parquet")
    tune = ["tune", "fair.parquet", "--label", "y", "-o", "m", "--no-calibrate", *QUICK]
    assert run(tune) == 0
    assert "The model changes nothing" in out(capsys)
    assert run(["apply", "m", "fair.parquet", "-o", "same.parquet"]) == 0
    assert "the model changes nothing" in out(capsys)
    assert pq.read_table("same.parquet").equals(pq.read_table("fair.parquet"))


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("f1", "is about one of two classes"),
        ("r2", "must be a score for classification; 'r2' is not"),
        ("adjusted_rand_score", "must be a score for classification"),
    ],
)
def test_scores_that_do_not_suit(folder, capsys, scoring, message):
    tune = ["tune", "val.parquet", "--label", "y", "-o", "m", "--scoring", scoring]
    assert message in refused(capsys, *tune, *QUICK)


def test_the_rows_of_tuning_are_recognised(folder, model, capsys):
    check = ["check", "--model", model, "--label", "y", "--force"]
    assert run([*check, "val.parquet"]) == 0
    assert "that the model was tuned on" in words(capsys)
    assert run([*check, "test.parquet"]) == 0
    assert "tuned on" not in out(capsys)
