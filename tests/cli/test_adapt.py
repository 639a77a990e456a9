"""``altnorm adapt``: what Python says about new predictions, on files."""

import numpy as np
import pandas as pd
import pytest

from altnorm import Adjuster, AlternatingNormalizer, load
from altnorm.cli.apply import RowSample
from altnorm.io.predictions import Predictions, write_predictions
from tests.commands import CLASSES, refused, run, said, table, told

WORD = ["--assume", "label-shift"]
ROUNDING = 1e-9  # rows of a file lie in memory in another order


def shifted(n, seed):
    """Nine in ten ants turned away: rows of the same kind, in another balance."""
    data = table(4 * n, seed)
    keep = (data["y"] != "ant") | (np.random.default_rng(seed).random(4 * n) < 0.1)
    return data[keep].head(n).reset_index(drop=True)


def surer(n, seed):
    """A classifier that is much surer of itself: no other balance explains that."""
    data = table(n, seed)
    power = data[CLASSES].to_numpy() ** 3
    data[CLASSES] = power / power.sum(axis=1, keepdims=True)
    return data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("adapt")
    shifted(900, 2).to_parquet(path / "new.parquet", row_group_size=200)
    shifted(900, 2).to_csv(path / "new.csv", index=False)
    surer(900, 3).to_parquet(path / "surer.parquet")
    validation = table(1500, 0)
    Adjuster(("bias",)).fit(validation[CLASSES], validation["y"]).save(path / "m")
    AlternatingNormalizer().fit(validation[CLASSES]).save(path / "free")
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def proba_of(name):
    return pd.read_parquet(name)[CLASSES]


def test_without_a_word_it_only_says_what_it_saw(capsys, folder):
    before = sorted(folder.iterdir())
    printed = said(capsys, ["adapt", "m", "new.parquet"])
    assert printed.startswith("Not adapted: if only the class balance changed, ")
    assert " ant: 3" in printed
    assert "--assume label-shift -o MODEL2" in printed
    assert sorted(folder.iterdir()) == before


def test_with_the_word_it_writes_what_python_makes(capsys):
    printed = said(capsys, ["adapt", "m", "new.parquet", *WORD, "-o", "m2", "--force"])
    assert printed.startswith("Adapted to another class balance, assuming")
    assert "Next: altnorm ask m2 new.parquet --against m -o ask.csv" in printed
    assert "adapted to new.parquet (sha256 " in said(capsys, ["info", "m2"])
    proba = proba_of("new.parquet")
    expected, model = load("m").adapt(proba, "label_shift"), load("m2")
    np.testing.assert_allclose(model.shift_.after, expected.shift_.after, rtol=ROUNDING)
    assert model.shift_.n_changed == expected.shift_.n_changed > 0
    assert model.feature_names_in_.tolist() == list(CLASSES)
    np.testing.assert_allclose(model.transform(proba), expected.transform(proba), rtol=ROUNDING)


@pytest.mark.parametrize("name", ["new.csv", "new.npz"])
def test_every_format_says_the_same(capsys, name):
    if name == "new.npz":
        proba = proba_of("new.parquet").to_numpy()
        write_predictions(Predictions(proba, CLASSES), name, force=True)
    record = told(capsys, ["adapt", "m", name, "--json"])
    assert record["model"] is None
    expected = load("m").adapt(proba_of("new.parquet")).shift_
    shares = [record["shift"]["shares"][name]["now"] for name in CLASSES]
    np.testing.assert_allclose(shares, expected.after, atol=1e-6)


def test_a_rejected_assumption_is_refused_unless_one_insists(capsys):
    adapt = ["adapt", "m", "surer.parquet"]
    assert "something else has changed" in refused(capsys, *adapt, *WORD, "-o", "m3")
    text = said(capsys, [*adapt, "--strict"], status=1)
    assert text.startswith("Not adapted: something other than the class balance")
    text = said(capsys, [*adapt, *WORD, "--insist", "-o", "m3"])
    assert "although the predictions contradict that" in text
    assert load("m3").shift_.shift_rejected


def test_a_plain_apply_says_that_the_balance_may_have_changed(capsys):
    data = table(3000, 4)
    data[data["y"] == CLASSES[1]].to_parquet("one.parquet")
    assert run(["apply", "m", "one.parquet", "-o", "plain.parquet", "--force"]) == 0
    printed = capsys.readouterr().err
    assert printed.startswith("Warning: The class balance may have changed")
    assert "run `altnorm adapt` with --assume label-shift;" in printed


def test_refusals(capsys):
    run(["adapt", "m", "new.parquet", *WORD, "-o", "m2", "--force"])
    assert "adapted already" in refused(capsys, "adapt", "m2", "new.parquet")
    for more in (["-o", "m5"], ["--insist"]):
        assert "--assume is not given" in refused(capsys, "adapt", "m", "new.parquet", *more)
    assert "--output is not given" in refused(capsys, "adapt", "m", "new.parquet", *WORD)
    table(0, 0).to_parquet("none.parquet")
    assert "has no rows" in refused(capsys, "adapt", "m", "none.parquet")
    bad = table(50, 0)
    bad.loc[7, "ant"] = 3.0
    bad.to_parquet("bad.parquet")
    assert "row 7" in refused(capsys, "adapt", "m", "bad.parquet")
    assert "tuned on labels" in refused(capsys, "adapt", "free", "new.parquet")


def test_a_sample_keeps_rows_at_equal_steps():
    sample = RowSample(most=2 * 100)
    for part in np.array_split(np.arange(2000).reshape(1000, 2), 7):
        sample.add(part)
    assert sample.step == 16
    np.testing.assert_array_equal(sample.rows[:, 0], np.arange(0, 2000, 32))
