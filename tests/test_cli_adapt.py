"""``altnorm adapt`` and ``altnorm apply --adapt``: the same as in Python, on files."""

import json

import numpy as np
import pandas as pd
import pytest

from altnorm import load
from altnorm.cli._run import run
from altnorm.io.predictions import Predictions, write_predictions
from tests.commands import CLASSES, QUICK, out, refused, table


def shifted(n, seed):
    """Nine in ten ants turned away: rows of the same kind, in another balance."""
    data = table(4 * n, seed)
    keep = (data["y"] != "ant") | (np.random.default_rng(seed).random(4 * n) < 0.1)
    return data[keep].head(n).reset_index(drop=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("adapt")
    table(1500, 0).to_parquet(path / "val.parquet")
    table(900, 1).to_parquet(path / "same.parquet")
    shifted(900, 2).to_parquet(path / "new.parquet", row_group_size=200)
    shifted(900, 2).to_csv(path / "new.csv", index=False)
    model = ["-o", str(path / "m"), *QUICK]
    assert run(["tune", str(path / "val.parquet"), "--label", "y", *model]) == 0
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_adapt_writes_what_python_makes(capsys):
    assert run(["adapt", "m", "new.parquet", "-o", "m2", "--force"]) == 0
    printed = out(capsys)
    assert printed.startswith("Adapted to another class balance, at a distance of 0.")
    assert "  ant: 3" in printed
    proba = pd.read_parquet("new.parquet")[CLASSES].to_numpy()
    expected = load("m").adapt(proba).shift_
    found = load("m2").shift_
    assert found.reason == expected.reason == "adapted"
    np.testing.assert_allclose(found.after, expected.after, atol=0.03)


def test_no_shift_is_an_equal_model(capsys):
    arguments = ["adapt", "m", "same.parquet", "-o", "m3", "--force"]
    assert run(arguments) == 0
    assert out(capsys).startswith("Not adapted: no sign of another class balance (900 rows")
    assert run([*arguments, "--strict"]) == 1
    proba = pd.read_parquet("same.parquet")[CLASSES].to_numpy()
    np.testing.assert_array_equal(load("m3").transform(proba), load("m").transform(proba))


def test_apply_adapts_in_two_passes(capsys):
    assert run(["adapt", "m", "new.parquet", "-o", "m2", "--force"]) == 0
    for name in ("new.parquet", "new.csv"):
        capsys.readouterr()
        assert run(["apply", "m", name, "--adapt", "-o", f"out-{name}", "--json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        assert json.loads(captured.out)["shift"]["reason"] == "adapted"
    proba = pd.read_parquet("new.parquet")[CLASSES].to_numpy()
    adjusted = pd.read_parquet("out-new.parquet")
    np.testing.assert_array_equal(adjusted[CLASSES], load("m2").transform(proba))
    truth = CLASSES.tolist().index
    codes = adjusted["y"].map(truth).to_numpy()
    before = load("m").transform(proba).argmax(axis=1)
    assert (adjusted[CLASSES].to_numpy().argmax(axis=1) == codes).mean() > (before == codes).mean()


def test_who_knows_better_is_believed(capsys):
    """The balance has not changed, so the estimate is near the old one; but it is adopted."""
    assert run(["adapt", "m", "same.parquet", "-o", "m6", "--only-balance", "--strict"]) == 0
    assert out(capsys).startswith("Adapted to another class balance, as asked, at a distance of 0.")
    found = load("m6")
    proba = pd.read_parquet("same.parquet")[CLASSES].to_numpy()
    assert found.shift_.reason == "assumed"
    assert found.shift_.strength == 1
    arguments = ["apply", "m", "same.parquet", "-o", "same2.parquet"]
    assert run([*arguments, "--adapt", "--only-balance"]) == 0
    assert "as asked" in out(capsys)
    np.testing.assert_array_equal(pd.read_parquet("same2.parquet")[CLASSES], found.transform(proba))
    assert "--adapt is not given" in refused(capsys, *arguments, "--only-balance", "--force")


def test_arrays(capsys):
    proba = pd.read_parquet("new.parquet")[CLASSES].to_numpy()
    write_predictions(Predictions(proba, CLASSES), "new.npz", force=True)
    assert run(["adapt", "m", "new.npz", "-o", "m4", "--json", "--force"]) == 0
    shift = json.loads(out(capsys))["shift"]
    assert shift["reason"] == "adapted"
    assert len(shift["after_low"]) == 3


def test_a_plain_apply_says_that_it_could_adapt(capsys):
    assert run(["apply", "m", "new.parquet", "-o", "plain.parquet", "--force"]) == 0
    printed = capsys.readouterr().err
    assert printed.startswith("Warning: The class balance has changed")
    assert printed.rstrip().endswith("Adapt to it; that needs no labels.")


def test_refusals(capsys):
    run(["adapt", "m", "new.parquet", "-o", "m2", "--force"])
    assert "adapted already" in refused(capsys, "adapt", "m2", "new.parquet", "-o", "m5")
    table(0, 0).to_parquet("none.parquet")
    assert "at least one row" in refused(capsys, "adapt", "m", "none.parquet", "-o", "m5")
    bad = table(50, 0)
    bad.loc[7, "ant"] = 3.0
    bad.to_parquet("bad.parquet")
    assert "row 7" in refused(capsys, "adapt", "m", "bad.parquet", "-o", "m5")
    tune = ["tune", "val.parquet", "--other", "id", "--no-labels", "-o", "free"]
    assert run(tune) == 0
    assert "tuned on labels" in refused(capsys, "adapt", "free", "new.parquet", "-o", "m5")
