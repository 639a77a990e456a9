"""Each command does what it says, on every kind of file."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pyarrow.parquet as pq
import pytest

from altnorm import AlternatingNormalizerCV, load
from altnorm.cli._run import run
from altnorm.io.columns import Layout
from altnorm.io.predictions import Predictions, read_predictions, write_predictions
from tests.commands import CLASSES, QUICK, draw, out, refused, table


def test_from_nothing_to_an_answer(folder, capsys):
    model = "model"
    assert run(["tune", "val.parquet", "--label", "y", "-o", model, *QUICK]) == 0
    text = out(capsys)
    assert "600 rows, 3 classes" in text
    assert "Adopted: accuracy" in text
    assert run(["apply", model, "test.parquet", "-o", "out.parquet"]) == 0
    assert "900 rows in" in out(capsys)
    assert run(["evaluate", model, "test.parquet", "--label", "y"]) == 0
    text = out(capsys)
    assert "Better: accuracy" in text
    assert "macro-F1" in text
    assert "Lower is better: log loss, Brier score" in text
    assert "rows fixed, the first 5" in text


def test_apply_equals_transform_and_keeps_the_rest(folder, model):
    before = pd.read_parquet("test.parquet")
    normalizer = load(model)
    expected = normalizer.transform(before[CLASSES].to_numpy())
    for name in ("out.parquet", "out.arrow", "out.feather", "out.csv"):
        assert run(["apply", model, "test.parquet", "-o", name, "--prediction", "guess"]) == 0
        read = read_predictions(name, Layout("y"), classes=CLASSES)
        np.testing.assert_array_equal(read.proba, expected)
    after = pq.read_table("out.parquet").to_pandas()
    assert after.columns.tolist() == [*before.columns, "guess"]
    for column in ("id", "note", "y"):
        pd.testing.assert_series_equal(after[column], before[column])
    assert after["guess"].tolist() == CLASSES[expected.argmax(axis=1)].tolist()


def test_apply_reads_csv_and_leaves_its_text_alone(folder, model):
    before = pd.read_parquet("test.parquet")
    before["id"] = [f"{i:05d}" for i in range(len(before))]
    before.to_csv("in.csv", index=False)
    assert run(["apply", model, "in.csv", "-o", "out.csv"]) == 0
    after = pd.read_csv("out.csv", dtype={"id": str})
    assert after["id"].tolist() == before["id"].tolist()
    assert after.columns.tolist() == before.columns.tolist()


def test_apply_on_arrays(folder, model):
    proba, _ = draw(50, 2)
    write_predictions(Predictions(proba[:, ::-1], CLASSES[::-1]), "in.npz")
    assert run(["apply", model, "in.npz", "-o", "out.npz"]) == 0
    read = read_predictions("out.npz")
    assert read.classes.tolist() == CLASSES.tolist()
    np.testing.assert_array_equal(read.proba, load(model).transform(proba))
    assert run(["apply", model, "in.npz", "-o", "out.parquet"]) == 0
    np.testing.assert_array_equal(read_predictions("out.parquet").proba, read.proba)


def test_apply_warns_of_drift(folder, model, capsys):
    capsys.readouterr()
    assert run(["apply", model, "test.parquet", "-o", "same.parquet", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)["drift"]["drifted"] is False
    table(900, 3, bias=(-3.0, 3.0, 0.0)).to_parquet("moved.parquet")
    proba = pd.read_parquet("moved.parquet")[CLASSES].to_numpy()
    write_predictions(Predictions(proba, CLASSES), "moved.npz")
    for name in ("moved.parquet", "moved.npz"):
        assert run(["apply", model, name, "-o", f"out{name}"]) == 0
        printed = capsys.readouterr().err
        assert printed.startswith("Warning: These predictions no longer look like those at fit")
        assert printed.count("\n") == 1


def test_prefixes(folder):
    for name in ("val", "test"):
        data = pd.read_parquet(f"{name}.parquet").rename(columns={c: f"p_{c}" for c in CLASSES})
        data["ant"] = 3.5
        data.to_parquet(f"{name}2.parquet")
    columns = ["--prefix", "p_"]
    assert run(["tune", "val2.parquet", "--label", "y", *columns, "-o", "m", *QUICK]) == 0
    assert load("m").classes_.tolist() == CLASSES.tolist()
    assert run(["apply", "m", "test2.parquet", *columns, "-o", "out.parquet"]) == 0
    assert (pd.read_parquet("out.parquet")["ant"] == 3.5).all()
    assert run(["evaluate", "m", "test2.parquet", "--label", "y", *columns]) == 0


def test_logits_are_said_and_not_guessed(folder, capsys):
    proba, codes = draw(600, 0)
    data = pd.DataFrame(dict(zip(CLASSES, np.log(proba).T, strict=True)) | {"y": CLASSES[codes]})
    data.to_parquet("logits.parquet")
    tune = ["tune", "logits.parquet", "--label", "y", "-o", "m", *QUICK]
    assert "pass --logits" in refused(capsys, *tune)
    assert run([*tune, "--logits"]) == 0
    assert run(["apply", "m", "logits.parquet", "-o", "out.parquet"]) == 0
    after = pd.read_parquet("out.parquet")[CLASSES].to_numpy()
    np.testing.assert_allclose(after.sum(axis=1), 1)
    np.testing.assert_array_equal(after, load("m").transform(np.log(proba)))
    write_predictions(Predictions(proba, CLASSES), "proba.npz")
    printed = refused(capsys, "apply", "m", "proba.npz", "-o", "x.npz")
    assert "must hold `logits`; it holds 'proba', 'classes'" in printed
    data["fox"] = 0.5
    data.to_parquet("more.parquet")
    assert "--other 'fox'" in refused(capsys, "apply", "m", "more.parquet", "-o", "x.parquet")
    assert run(["apply", "m", "more.parquet", "-o", "x.parquet", "--other", "fox"]) == 0
    assert run(["compare", "logits.parquet", "logits.parquet", "--label", "y", "--logits"]) == 0


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_multilabel(folder, capsys, mode, suffix):
    rng = np.random.default_rng(0)
    truth = (rng.random((400, 3)) < 0.2).astype(np.uint8)
    proba = 1 / (1 + np.exp(-(rng.normal(size=(400, 3)) + 2 * truth - 3)))
    columns = ["--label-prefix", "y_", "--prefix", "p_"] if suffix == "csv" else []
    name = f"multi.{suffix}"
    write_predictions(Predictions(proba, CLASSES, truth), name, Layout(None, "p_", "y_"))
    tune = ["tune", name, *columns, "-o", "m", *QUICK]
    assert "--multilabel labelwise" in refused(capsys, *tune)
    assert run([*tune, "--multilabel", mode]) == 0
    assert run(["evaluate", "m", name, *columns]) == 0
    assert "micro-F1" in out(capsys)
    prefix = columns[2:]
    assert run(["apply", "m", name, *prefix, "-o", f"out.{suffix}"]) == 0
    read = read_predictions(f"out.{suffix}", Layout(prefix="p_"), classes=CLASSES)
    np.testing.assert_array_equal(read.proba, load("m").transform(proba))
    assert run(["compare", name, name, *columns, "--json"]) == 0
    methods = json.loads(out(capsys).splitlines()[-1])["methods"]
    assert {"alternating normalization, pairs", "do nothing"} <= {row["method"] for row in methods}


def test_single_labels_for_a_multilabel_model(folder, capsys):
    tune = ["tune", "val.parquet", "--label", "y", "-o", "m", "--multilabel", "pairs", *QUICK]
    assert "--label-prefix" in refused(capsys, *tune)


def test_classes_without_rows_keep_their_names(folder):
    data = pd.read_parquet("val.parquet")
    data[data["y"] != "cow"].to_parquet("two.parquet")
    assert run(["tune", "two.parquet", "--label", "y", "-o", "m", *QUICK]) == 0
    assert load("m").classes_.tolist() == CLASSES.tolist()


def test_identity_and_strict(folder, capsys):
    table(300, 0, bias=(0, 0, 0)).to_parquet("fair.parquet")
    tune = ["tune", "fair.parquet", "--label", "y", "-o", "m", *QUICK]
    assert run(tune) == 0
    assert "Not adopted" in (text := out(capsys))
    assert "changes nothing" in text
    assert run([*tune, "--force", "--strict"]) == 1
    evaluate = ["evaluate", "m", "fair.parquet", "--label", "y"]
    assert run(evaluate) == 0
    assert run([*evaluate, "--strict"]) == 1
    assert run(["apply", "m", "fair.parquet", "-o", "same.parquet"]) == 0
    assert pq.read_table("same.parquet").equals(pq.read_table("fair.parquet"))


def test_json(folder, model, capsys):
    out(capsys)
    commands = {
        "tune": ["val.parquet", "--label", "y", "-o", "m2", *QUICK],
        "evaluate": [model, "test.parquet", "--label", "y"],
        "apply": [model, "test.parquet", "-o", "o.parquet"],
        "compare": ["val.parquet", "test.parquet", "--label", "y", "--jobs", "1"],
        "export": [model, "-o", "m.onnx"],
        "info": [model],
    }
    printed = {}
    for name, arguments in commands.items():
        assert run([name, *arguments, "--json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        printed[name] = json.loads(captured.out)
    assert printed["tune"]["verdict"]["adopted"] is True
    assert printed["evaluate"]["verdict"]["n_fixed"] == len(printed["evaluate"]["fixed"])
    assert printed["evaluate"]["verdict"]["n_broken"] == len(printed["evaluate"]["broken"])
    assert printed["apply"]["n_rows"] == 900
    assert printed["info"]["classes"] == CLASSES.tolist()
    assert printed["info"]["verdict"] == printed["tune"]["verdict"]
    assert "alternating normalization" in {row["method"] for row in printed["compare"]["methods"]}


def test_rows_fixed_and_broken_are_the_right_ones(folder, model, capsys):
    assert run(["evaluate", model, "test.parquet", "--label", "y", "--json"]) == 0
    printed = json.loads(out(capsys).splitlines()[-1])
    data = pd.read_parquet("test.parquet")
    proba, truth = data[CLASSES].to_numpy(), data["y"].to_numpy()
    right = [CLASSES[p.argmax(axis=1)] == truth for p in (proba, load(model).transform(proba))]
    assert printed["fixed"] == np.flatnonzero(~right[0] & right[1]).tolist()
    assert printed["broken"] == np.flatnonzero(right[0] & ~right[1]).tolist()


def test_compare_shows_the_best_first(folder, capsys):
    assert run(["compare", "val.parquet", "test.parquet", "--label", "y", "--jobs", "1"]) == 0
    rows = [line for line in out(capsys).splitlines() if " to " in line]
    assert len(rows) >= 7
    gains = [float(line.split(" to ")[0].split()[-2].rstrip("%")) for line in rows]
    assert gains == sorted(gains, reverse=True)


def test_export(folder, model):
    command = ["export", model, "-o", "m.onnx", "--dtype", "float64"]
    assert run(command) == 0
    proba, _ = draw(50, 3)
    session = onnxruntime.InferenceSession("m.onnx")
    (adjusted,) = session.run(None, {"proba": proba})
    np.testing.assert_allclose(adjusted, load(model).transform(proba), atol=1e-12)
    assert run([*command, "--label-output", "class", "--force"]) == 0
    session = onnxruntime.InferenceSession("m.onnx")
    adjusted, decided = session.run(["adjusted", "class"], {"proba": proba})
    assert decided.tolist() == load(model).predict(proba).tolist()


def test_report(folder, model, capsys):
    command = ["report", model, "test.parquet", "--label", "y", "-o", "r.html", "--title", "Ours"]
    more = ["--validation", "val.parquet", "--text", "note"]
    assert run([*command, *more]) == 0
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "Ours" in page
    assert "a, b" in page
    out(capsys)
    assert "exists already" in refused(capsys, *command)
    assert "no column 'z'" in refused(capsys, *command, "--text", "z", "--force")
    assert run([*command, "--force", "--json"]) == 0


def test_search_settings_reach_the_estimator(folder, monkeypatch):
    seen = {}
    original = AlternatingNormalizerCV.fit

    def fit(self, *arguments):
        seen.update(self.get_params())
        return original(self, *arguments)

    monkeypatch.setattr(AlternatingNormalizerCV, "fit", fit)
    options = "--scoring f1_macro --prior counted --thresholds 0.4,0.6 --cv 3 --seed 7"
    options += " --significance 0.01"
    assert run(["tune", "val.parquet", "--label", "y", "-o", "m", *QUICK, *options.split()]) == 0
    expected = {
        "alphas": (0.5, 1.0),
        "depths": (1,),
        "thresholds": (0.4, 0.6),
        "scoring": "f1_macro",
        "prior": "counted",
        "cv": 3,
        "random_state": 7,
        "significance": 0.01,
        "n_jobs": 1,
        "verbose": 0,
    }
    assert {name: seen[name] for name in expected} == expected
