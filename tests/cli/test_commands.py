"""The commands that make, apply and judge a model do what they say, on every kind of file."""

import hashlib
import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from altnorm import Adjuster, AlternatingNormalizer, load, peers
from altnorm.asking.judgement import Judgement
from altnorm.balance import Shift
from altnorm.estimator.drift import Drift
from altnorm.evidence.promise import Kept, Promise
from altnorm.io.formats import Layout
from altnorm.io.predictions import Predictions, read_predictions, write_predictions
from tests.commands import CLASSES, QUICK, draw, out, refused, run, said, table, told
from tests.problems import planted_labels

ROOT = Path(__file__).parents[2]
SUFFIXES = ("parquet", "arrow", "feather", "csv", "csv.gz", "tsv", "jsonl")


def test_apply_equals_transform_and_keeps_the_rest(folder, model):
    before = pd.read_parquet("test.parquet")
    normalizer = load(model)
    expected = normalizer.transform(before[CLASSES].to_numpy())
    for name in (f"out.{suffix}" for suffix in SUFFIXES):
        assert run(["apply", model, "test.parquet", "-o", name]) == 0
        read = read_predictions(name, Layout("y"), classes=CLASSES)
        np.testing.assert_array_equal(read.proba, expected)
    after = pq.read_table("out.parquet").to_pandas()
    assert after.columns.tolist() == [*before.columns, "prediction"]
    for column in ("id", "note", "y"):
        pd.testing.assert_series_equal(after[column], before[column])
    assert after["prediction"].tolist() == normalizer.predict(before[CLASSES].to_numpy()).tolist()


def test_memory_of_apply_does_not_grow_with_the_file(folder, model, monkeypatch):
    monkeypatch.setattr("altnorm.io.tables._BATCH_VALUES", 3000)
    monkeypatch.setattr("altnorm.io.tables._GROUP_BYTES", 8 * 3000)
    rows, usual, most = table(1000, 1)[CLASSES], pa.default_memory_pool(), []
    for n_batches in (8, 50):
        large = pa.Table.from_pandas(pd.concat([rows] * n_batches), preserve_index=False)
        pq.write_table(large, "in.parquet", row_group_size=2000)
        pa.set_memory_pool(pool := pa.proxy_memory_pool(usual))
        try:
            assert run(["apply", model, "in.parquet", "-o", "out.parquet", "--force"]) == 0
        finally:
            pa.set_memory_pool(usual)
        most.append(pool.max_memory())
    assert most[1] < 1.5 * most[0], most


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_apply_streams_to_the_standard_output(folder, model, capfdbinary, suffix):
    """Rows only, in the input's format or as CSV; what is said goes to the standard error."""
    assert run(["apply", model, "test.parquet", "-o", f"in.{suffix}", "--no-prediction"]) == 0
    apply = ["apply", model, f"in.{suffix}", "--no-prediction", "--json", "-o"]
    expected = Path("file.csv" if suffix == "parquet" else f"file.{suffix}")
    assert run([*apply, str(expected)]) == 0
    capfdbinary.readouterr()
    assert run([*apply, "-"]) == 0
    captured = capfdbinary.readouterr()
    assert captured.out == expected.read_bytes()
    assert json.loads(captured.err.splitlines()[-1])["n_rows"] == 900


def test_answers_that_failed_keep_their_line(folder, capsys):
    data = Path(__file__).parents[1] / "data"
    lines = (data / "openai_batch.jsonl").read_text().splitlines()
    AlternatingNormalizer(prior="uniform").fit(
        pd.DataFrame(draw(200, 0)[0], columns=["A", "B", "C"])
    ).save("m")
    Path("answers.jsonl").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="1 row of 5"):
        proba = read_predictions("answers.jsonl", classes=["A", "B", "C"]).proba
    assert told(capsys, ["apply", "m", "answers.jsonl", "-o", "a.jsonl", "--json"])["n_rows"] == 5
    written = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    ids = [json.loads(line)["custom_id"] for line in lines]
    assert [row["custom_id"] for row in written] == ids
    failed = written.pop(ids.index("row-9"))
    assert {failed[name] for name in ("A", "B", "C", "prediction")} == {None}
    # The model knows the classes; nobody has to name them again.
    assert run(["ask", "m", "answers.jsonl", "-o", "ask.csv", "--text", "custom_id"]) == 0
    after = load("m").transform(pd.DataFrame(proba, columns=["A", "B", "C"]))
    np.testing.assert_allclose([[row[name] for name in "ABC"] for row in written], after)


def test_apply_on_arrays_and_what_it_counts(folder, model, capsys):
    proba = pd.read_parquet("test.parquet")[CLASSES].to_numpy()
    after = load(model).transform(proba)
    write_predictions(Predictions(proba[:, ::-1], CLASSES[::-1]), "in.npz")
    for source, output in (("in.npz", "o.npz"), ("in.npz", "o1.csv"), ("test.parquet", "o2.csv")):
        printed = told(capsys, ["apply", model, source, "-o", output, "--json"])
        assert printed["n_rows_changed"] == (proba != after).any(axis=1).sum()
        moved = (proba.argmax(axis=1) != after.argmax(axis=1)).sum()
        assert printed["n_decisions_changed"] == moved
        read = read_predictions(output, Layout("y" if "2" in output else None), classes=CLASSES)
        np.testing.assert_array_equal(read.proba, after)
    text = said(capsys, ["apply", model, "test.parquet", "-o", "o2.parquet"])
    assert f"{moved} of {len(proba)} decisions changed: o2.parquet" in text


def save_for(name, **purpose):
    data = pd.read_parquet("val.parquet")
    Adjuster(("bias",), **purpose).fit(data[CLASSES].to_numpy(), data["y"]).save(name)


def test_arrays_that_do_not_show_the_decisions_are_told(folder, model, capsys):
    proba = pd.read_parquet("test.parquet")[CLASSES].to_numpy()
    write_predictions(Predictions(proba, CLASSES), "in.npz")
    for name, purpose in (
        ("costs", {"costs": COSTS_BY_NAME}),
        ("target", {"target_accuracy": 0.9}),
        ("rare", {"scoring": "balanced_accuracy"}),
    ):
        save_for(name, **purpose)
        assert run(["apply", name, "in.npz", "-o", f"{name}.npy"]) == 0
        printed = " ".join(capsys.readouterr().err.split())
        assert "Warning: The output holds no decisions, and" in printed
        assert "is not always the most probable class" in printed
    assert run(["apply", model, "in.npz", "-o", "plain.npy"]) == 0
    assert run(["apply", "costs", "in.npz", "-o", "costs.npz"]) == 0
    assert run(["apply", "costs", "test.parquet", "-o", "costs.csv"]) == 0
    assert run(["apply", "costs", "in.npz", "-o", "as-asked.npy", "--no-prediction"]) == 0
    assert capsys.readouterr().err == ""


def test_arrays_hold_the_decisions_that_a_table_holds(folder, model, capsys):
    """Names with nothing, or numbers with NaN, where a row is left to a person."""
    frame = pd.read_parquet("test.parquet")[CLASSES]
    write_predictions(Predictions(frame.to_numpy(), CLASSES), "in.npz")
    save_for("target", target_accuracy=0.9)
    for source, output in (("in.npz", "o.npz"), ("in.npz", "o1.csv"), ("test.parquet", "o2.csv")):
        assert run(["apply", "target", source, "-o", output, "--prediction", "said"]) == 0
    said = pd.read_csv("o2.csv")["said"].fillna("")
    assert 0 < (said == "").sum() < len(said)
    np.testing.assert_array_equal(pd.read_csv("o1.csv")["said"].fillna(""), said)
    with np.load("o.npz") as arrays:
        np.testing.assert_array_equal(arrays["said"], said)
    read_predictions("o.npz", classes=CLASSES)
    assert run(["apply", model, "in.npz", "-o", "none.npz", "--no-prediction"]) == 0
    assert sorted(np.load("none.npz").files) == ["classes", "proba"]
    named = ["apply", "target", "in.npz", "--prediction"]
    for name, output in (("proba", "bad.npz"), ("indices", "bad.npz"), (CLASSES[0], "bad.csv")):
        assert "must have a new name" in refused(capsys, *named, name, "-o", output)
    assert "probabilities alone" in refused(capsys, *named, "said", "-o", "bad.npy")
    assert "both are asked for" in refused(
        capsys, *named, "said", "--no-prediction", "-o", "bad.npz"
    )


@pytest.mark.parametrize("purpose", [{}, {"target_accuracy": 0.9}], ids=["all", "some"])
def test_arrays_of_numbered_classes_hold_numbers(folder, purpose):
    proba, codes = draw(600, 0)
    fitted = Adjuster(("bias",), **purpose).fit(proba, codes)
    fitted.save("numbered")
    np.savez("in.npz", proba=proba)
    assert run(["apply", "numbered", "in.npz", "-o", "o.npz"]) == 0
    predicted = np.load("o.npz")["prediction"]
    assert predicted.dtype.kind == ("f" if purpose else "i")
    expected = [np.nan if label is None else label for label in fitted.predict(proba)]
    np.testing.assert_array_equal(predicted, expected)


def test_arrays_of_several_labels_hold_a_matrix(folder):
    proba, labels = planted_labels(200)
    fitted = Adjuster(("bias",), multilabel="labelwise").fit(proba, labels)
    fitted.save("tagger")
    np.savez("in.npz", proba=proba)
    assert run(["apply", "tagger", "in.npz", "-o", "o.npz"]) == 0
    np.testing.assert_array_equal(np.load("o.npz")["prediction"], fitted.predict(proba))
    for output in ("o.parquet", "o.csv"):
        assert run(["apply", "tagger", "in.npz", "-o", output]) == 0
    rows = pd.read_parquet("o.parquet")["prediction"]
    matrix = [[j in row for j in range(proba.shape[1])] for row in rows]
    np.testing.assert_array_equal(matrix, fitted.predict(proba))


def test_names_of_a_data_frame_that_a_model_was_fitted_on_are_no_warning(folder, capsys):
    data = pd.read_parquet("val.parquet")
    Adjuster(("bias",)).fit(data[CLASSES], data["y"]).save("m")
    np.savez("in.npz", proba=pd.read_parquet("test.parquet")[CLASSES], classes=CLASSES)
    for arguments in (
        ["apply", "m", "in.npz", "-o", "out.npz"],
        ["ask", "m", "test.parquet", "-o", "ask.csv"],
        ["ask", "m", "test.parquet", "-o", "two.csv", "--against", "m"],
        ["check", "test.parquet", "--model", "m"],
        ["check", "test.parquet", "--model", "m", "--label", "y"],
    ):
        assert run(arguments) == 0
        assert capsys.readouterr().err == ""


def test_apply_counts_no_decision_where_those_stay_as_they_were(folder, capsys):
    data = pd.read_parquet("test.parquet")
    fitted = Adjuster(("bias",), scoring="f1_macro", significance=1e-99)
    fitted.fit(data[CLASSES], data["y"]).save("m")
    proba = data[CLASSES].to_numpy()
    assert not fitted.verdict_
    assert (fitted.transform(data[CLASSES]).argmax(axis=1) != proba.argmax(axis=1)).any()
    printed = told(capsys, ["apply", "m", "test.parquet", "-o", "kept.parquet", "--json"])
    assert printed["n_decisions_changed"] == 0


def test_apply_warns_of_drift(folder, model, capsys):
    capsys.readouterr()
    assert run(["apply", model, "test.parquet", "-o", "same.parquet", "--json", "--strict"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)["drift"]["drifted"] is False
    table(900, 3, bias=(-3.0, 3.0, 0.0)).to_parquet("moved.parquet")
    proba = pd.read_parquet("moved.parquet")[CLASSES].to_numpy()
    write_predictions(Predictions(proba, CLASSES), "moved.npz")
    for name in ("moved.parquet", "moved.npz"):
        assert run(["apply", model, name, "-o", f"out{name}", "--strict"]) == 1
        printed = capsys.readouterr().err
        assert printed.startswith("Warning: These predictions no longer look like those at fit")
        assert printed.count("\n") == 1


def test_prefixes(folder, capsys):
    for name in ("val", "test"):
        data = pd.read_parquet(f"{name}.parquet").rename(columns={c: f"p_{c}" for c in CLASSES})
        data["ant"] = 3.5
        data.to_parquet(f"{name}2.parquet")
    columns = ["--prefix", "p_"]
    assert run(["tune", "val2.parquet", "--label", "y", *columns, "-o", "m", *QUICK]) == 0
    assert load("m").classes_.tolist() == CLASSES.tolist()
    pd.read_parquet("val2.parquet").drop(columns="ant").to_parquet("forgot.parquet")
    for command in (["tune", "forgot.parquet", "--label", "y"], ["apply", "m", "forgot.parquet"]):
        assert "start with 'p_', pass --prefix p_." in refused(capsys, *command, "-o", "x.parquet")
    apply = ["apply", "m", "test2.parquet", *columns, "-o", "out.parquet"]
    assert "900 rows in" in said(capsys, apply)
    assert (pd.read_parquet("out.parquet")["ant"] == 3.5).all()
    text = said(capsys, ["check", "test2.parquet", "--model", "m", "--label", "y", *columns])
    for words_of_it in ("Better: accuracy", "macro-F1", "Report, with all rows that changed"):
        assert words_of_it in text


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
    assert "micro-F1" in said(capsys, ["check", name, "--model", "m", *columns])
    prefix = columns[2:]
    assert run(["apply", "m", name, *prefix, "-o", f"out.{suffix}"]) == 0
    read = read_predictions(f"out.{suffix}", Layout(prefix="p_"), classes=CLASSES)
    np.testing.assert_array_equal(read.proba, load("m").transform(proba))


def test_a_model_card(folder, capsys):
    data = pd.read_parquet("val.parquet").rename(columns={"ant": "a|<b>"})
    names = ["a|<b>", *CLASSES[1:]]
    fitted = Adjuster(("bias",)).fit(data[names], data["y"].replace("ant", "a|<b>"))
    fitted.save("m")
    capsys.readouterr()
    assert run(["info", "m", "--card"]) == 0
    card = out(capsys)
    assert card.startswith("# Model card: m\n")
    assert "| classes | 3 classes: a&#124;&lt;b>, bee, cow |" in card
    assert str(fitted.verdict_) in card
    assert re.search(r"\| cost \| [\d,]+(\.\d)? microseconds per row on this machine \|", card)
    assert run(["tune", "val.parquet", "--label", "y", "-o", "named", *QUICK]) == 0
    digest = hashlib.sha256(Path("val.parquet").read_bytes()).hexdigest()[:12]
    text = said(capsys, ["info", "named", "--card"])
    assert f"| data | val.parquet (sha256 {digest}) | | labelled rows | 600 |" in text
    assert all(f"- {caution.text}" in card for caution in fitted.verdict_.cautions)
    assert told(capsys, ["info", "m", "--json"])["digest"] in card
    costly = Adjuster(("bias",), costs=[[0, 1, 2], [1, 0, 1], [1, 1, 0]], insist=True)
    costly.fit(data[names], data["y"].replace("ant", "a|<b>")).save("c")
    capsys.readouterr()
    assert run(["info", "c", "--card"]) == 0
    assert "least expected cost; true a&#124;&lt;b>: a&#124;&lt;b> 0, bee 1" in out(capsys)
    AlternatingNormalizer().fit(data[names].to_numpy()).save("plain")
    text = said(capsys, ["info", "plain", "--card"])
    assert "fitted without labels, so it is unknown" in text


def test_info_prints_settings_as_values(folder, capsys):
    data = pd.read_parquet("val.parquet")
    by_name = {("ant", "bee"): 5, ("ant", None): 0.2}
    for costs, told_as in (
        (1 - np.eye(3), (1 - np.eye(3)).tolist()),
        (by_name, {"ant": {"bee": 5, "person": 0.2}}),
    ):
        fitted = Adjuster(("bias",), costs=costs).fit(data[CLASSES], data["y"])
        fitted.save("m", force=True)
        record = told(capsys, ["info", "m", "--json"])
        settings = record["settings"]
        assert settings["families"] == ["bias"]
        assert record["classes"] == CLASSES.tolist()
        assert record["verdict"]["adopted"] is fitted.verdict_.adopted
        assert settings["costs"] == told_as


def test_strict(folder, capsys):
    table(300, 0, bias=(0, 0, 0)).to_parquet("fair.parquet")
    tune = ["tune", "fair.parquet", "--label", "y", "-o", "m", *QUICK]
    assert "no decision changes" in said(capsys, tune)
    assert run([*tune, "--force", "--strict"]) == 1
    check = ["check", "fair.parquet", "--label", "y", "--model", "m", "--force"]
    assert run(check) == 0
    assert run([*check, "--strict"]) == 1
    assert run(["check", "fair.parquet", "--label", "y", "-j", "1", "--force", "--strict"]) == 1
    assert "The model changes nothing" in said(capsys, [*tune, "--force", "--no-calibrate"])
    assert "nothing changed" in said(
        capsys, ["apply", "m", "fair.parquet", "-o", "same.parquet", "--no-prediction"]
    )
    assert pq.read_table("same.parquet").equals(pq.read_table("fair.parquet"))


def fields_of(record):
    """Fields at any depth; what is called by names of the data stands for itself."""
    if isinstance(record, list):
        return {field for part in record for field in fields_of(part)}
    if not isinstance(record, dict):
        return set()
    named = {"about", "families", "shares", "weights", "costs", "thresholds"}
    named |= {"settings", "versions"}
    fields = set(record)
    for name, value in record.items():
        parts = list(value.values()) if name in named and isinstance(value, dict) else value
        fields |= fields_of(parts)
    return fields


def test_every_field_of_json_is_documented(folder, model, capsys):
    table(300, 5).to_parquet("new.parquet")
    target = ["--target-accuracy", "0.9"]
    check = ["check", "val.parquet", "test.parquet", "--label", "y", "-j", "1", "-o", "t"]
    commands = [
        [*check, "--report", "r.html", *target],
        ["check", "new.parquet", "--model", "t", "--label", "y"],
        ["check", "new.parquet", "--model", "t"],
        ["apply", "t", "new.parquet", "-o", "o.parquet"],
        ["adapt", "t", "new.parquet"],
        ["ask", "t", "new.parquet", "-o", "ask.csv"],
        ["judge", "t", "ask.csv"],
        ["export", "t", "-o", "m.onnx"],
        ["info", "t"],
    ]
    page = (ROOT / "docs" / "cli.rst").read_text(encoding="utf-8")
    section = page.partition("\nJSON\n----")[2].partition("\nExit status\n")[0]
    documented = set(re.findall(r"\w+", " ".join(re.findall("``(.*?)``", section))))
    for kind in (Promise, Kept, Drift, Shift, Judgement):
        documented |= {field.name for field in fields(kind)}
    for command in commands:
        assert fields_of(told(capsys, [*command, "--json"])) <= documented, command


def test_json_names_rows_by_id(folder, model, capsys):
    data = pd.read_parquet("test.parquet").assign(case=lambda d: [f"c-{i}" for i in d["id"]])
    data.to_parquet("named.parquet")
    check = ["check", "named.parquet", "--model", model, "--label", "y", "--id", "case"]
    printed = told(capsys, [*check, "--json"])["test"]
    proba, truth = data[CLASSES].to_numpy(), data["y"].to_numpy()
    before, after = CLASSES[proba.argmax(axis=1)], load(model).predict(proba)
    assert printed["fixed"] == data["case"][(before != truth) & (after == truth)].tolist()
    assert printed["broken"] == data["case"][(before == truth) & (after != truth)].tolist()


def test_new_data_without_labels(folder, model, capsys):
    check = ["check", "--model", model]
    report = folder / "altnorm-report.html"
    report.write_text("of an earlier run")  # no report is written, so it is in nobody's way
    text = said(capsys, [*check, "test.parquet", "--strict"])
    assert "These predictions look like those at fit" in text
    assert report.read_text() == "of an earlier run"
    table(900, 3, bias=(-3.0, 3.0, 0.0)).to_parquet("moved.parquet")
    assert told(capsys, [*check, "moved.parquet", "--json"])["drift"]["drifted"] is True
    for more, name in ((["test.parquet"], "TEST"), (["--costs", "c.csv"], "--costs")):
        assert f"{name} is given, too" in refused(capsys, *check, "moved.parquet", *more)


COSTS = "true,ant,bee,cow,person\nant,0,1,1,0.2\nbee,1,0,1,0.2\ncow,4,4,0,0.2\n"


def test_costs_and_rows_left_to_a_person(folder, capsys):
    (folder / "costs.csv").write_text(COSTS)
    both = ["check", "val.parquet", "test.parquet", "--label", "y", "-o", "m", "--jobs", "1"]
    text = said(capsys, [*both, "--costs", "costs.csv"])
    assert "Adopted: mean cost" in text
    assert "A row may be left to a person." in text
    assert "The other methods decide for the most probable class." in text
    compared = text.partition("How does it compare?")[2]
    assert re.search(r"altnorm 0\.\d+ -0\.\d+ -", compared), "names of methods are not broken"
    assert "Lower is better: mean cost, log loss" in compared
    apply = ["apply", "m", "test.parquet", "-o"]
    assert "left to a person" in said(capsys, [*apply, "out.csv", "--prediction", "guess"])
    written = pd.read_csv("out.csv", keep_default_na=False)["guess"]
    decided = load("m").predict(pd.read_parquet("test.parquet")[CLASSES].to_numpy())
    assert [name or None for name in written] == decided.tolist()
    assert None in decided.tolist()
    n_left = told(capsys, [*apply, "again.csv", "--json"])["n_rows_left"]
    assert n_left == decided.tolist().count(None)
    assert "two ways to state a goal" in refused(
        capsys, *both, "--force", "--costs", "costs.csv", "--scoring", "f1_macro"
    )


def test_balanced_accuracy_is_advised_and_followed(folder, capsys):
    rng = np.random.default_rng(0)
    codes = rng.choice(3, size=2000, p=[0.75, 0.22, 0.03])
    scores = np.exp(rng.normal(size=(2000, 3)) + 1.2 * np.eye(3)[codes] + [0, 0.7, 0])
    frame = pd.DataFrame(scores / scores.sum(axis=1, keepdims=True), columns=CLASSES)
    frame.assign(y=CLASSES[codes]).to_parquet("rare.parquet")
    tune = ["tune", "rare.parquet", "--label", "y", "--force", "-o", "m", *QUICK]
    assert "--scoring balanced_accuracy would give" in said(capsys, tune)
    text = said(capsys, [*tune, "--scoring", "balanced_accuracy"])
    assert "adopted: balanced accuracy" in text.lower()
    error = refused(capsys, *tune, "--scoring", "fbeta=2")
    assert "--scoring fbeta=2_macro" in error
    assert "'fbeta=2_macro'" not in error


def test_export(folder, model):
    command = ["export", model, "-o", "m.onnx", "--dtype", "float64", "--label-output", "class"]
    assert run(command) == 0
    proba, _ = draw(50, 3)
    session = onnxruntime.InferenceSession("m.onnx")
    adjusted, decided = session.run(["adjusted", "class"], {"proba": proba})
    np.testing.assert_allclose(adjusted, load(model).transform(proba), atol=1e-12)
    assert decided.tolist() == load(model).predict(proba).tolist()


def test_the_number_of_threads_is_not_part_of_the_model(folder):
    for jobs in ("1", "2"):
        files = ["-o", f"m{jobs}", "--report", f"{jobs}.html"]
        assert run(["check", "val.parquet", "--label", "y", *files, "-j", jobs]) == 0
    assert Path("m1").read_bytes() == Path("m2").read_bytes()


def test_options_reach_the_estimator(folder):
    options = "--scoring f1_macro --prior counted --cv 3 --significance 0.02 --insist "
    options += "--no-calibrate --families bias --jobs 1"
    assert run(["tune", "val.parquet", "--label", "y", "-o", "m", *options.split()]) == 0
    expected = {
        "families": ("bias",),
        "scoring": "f1_macro",
        "prior": "counted",
        "cv": 3,
        "significance": 0.02,
        "insist": True,
        "calibrate": False,
    }
    assert load("m").get_params().items() >= expected.items()


# ``altnorm info`` says what a model file holds.


COSTS_BY_NAME = {("ant", "bee"): 5, **{(name, None): 0.4 for name in CLASSES}}
RULES = [
    (
        {"costs": COSTS_BY_NAME},
        "mean cost",
        "cost true ant: ant 0, bee 5, cow 1, a person 0.4 true bee:",
    ),
    ({"scoring": "balanced_accuracy"}, "balanced accuracy", "weighted probability: ant "),
    ({}, "accuracy", "the most probable class"),
]


@pytest.mark.parametrize(("purpose", "name", "rule"), RULES, ids=["costs", "weights", "plain"])
def test_a_tuned_model(tmp_path, capsys, purpose, name, rule):
    data = table(400, 0)
    Adjuster(("bias",), **purpose).fit(data[CLASSES], data["y"]).save(tmp_path / "m")
    text = said(capsys, ["info", str(tmp_path / "m")])
    assert rule in text.partition("decides ")[2]
    assert "takes probabilities, one label per row" in text
    assert "classes 3 classes: ant, bee, cow" in text
    assert "does multiplies each class by a factor and calibrates probabilities" in text
    assert f"numpy {np.__version__}" in text
    digest = told(capsys, ["info", str(tmp_path / "m"), "--json"])["digest"]
    assert digest in text.replace(" ", "")
    assert f"goal {name} does" in text
    assert re.search(r"mixes \d+% the corrected row", text)
    assert "always the score rises yes" in text
    assert f"Adopted: {name} " in text


PROBA = np.full((20, 12), 1 / 12)
NAMED = np.array(["[bold]", "a\nb", *"cdefghijkl"])


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (AlternatingNormalizer(2.0, reference="all"), "alternating normalization, exponent 2"),
        (peers.Identity(), "change nothing: the baseline of every comparison"),
    ],
)
def test_a_model_without_evidence(tmp_path, capsys, estimator, expected):
    estimator.fit(PROBA)
    estimator.classes_ = NAMED
    estimator.save(tmp_path / "m")
    text = said(capsys, ["info", str(tmp_path / "m")])
    assert expected in text
    assert "12 classes: [bold], a\\nb, c, d, e, f, g, h, i, j, ..." in text
    assert "goal" not in text


def test_where_decisions_stay_probabilities_are_better(tmp_path, capsys):
    rows = table(300, 0)
    rows.to_parquet(tmp_path / "val.parquet")
    command = [str(tmp_path / "val.parquet"), "--label", "y", "--jobs", "1"]
    text = said(capsys, ["tune", *command, "-o", str(tmp_path / "m"), "--significance", "1e-99"])
    assert "then: altnorm ask candidate.safetensors POOL -o ask.csv" in text
    assert "your decisions stay as they were." in text
    assert re.search(r"Probabilities are better: log loss 0\.\d+ -> 0\.\d+\.", text)
    assert re.search(r"the score's own test no \S+ one-sided p < 1e-99", text)
    table(60, 0, bias=(0.0, 0.0, 0.0)).to_parquet(tmp_path / "few.parquet")
    few = ["tune", str(tmp_path / "few.parquet"), "--label", "y", "-o", str(tmp_path / "few")]
    text = said(capsys, [*few, "--significance", "1e-99"])
    assert re.search(r"Probabilities (are not clearly better|hardly change): log loss", text)
    text = said(capsys, ["info", str(tmp_path / "m")])
    assert "does changes no decision and calibrates probabilities" in text
    assert "decides as the predictions came" in text


# Rows without labels, rows that belong together, and rows that change.


def test_rows_without_labels(folder, capsys):
    data = pd.read_parquet("val.parquet")
    data.loc[100:399, "y"] = None
    data.to_csv("some.csv", index=False)
    text = said(capsys, ["tune", "some.csv", "--label", "y", "-o", "m", *QUICK])
    assert "600 rows (300 without a label), 3 classes ('ant', 'bee', 'cow')" in text
    assert load("m").verdict_.n_rows == 300
    message = refused(capsys, "check", "some.csv", "--model", "m", "--label", "y")
    assert "Each row must have a label" in message
    assert "empty in row 100" in message
    data.assign(y="").to_csv("none.csv", index=False)
    message = refused(capsys, "tune", "none.csv", "--label", "y", "-o", "m2")
    assert "Some rows must have a label; 'y' is empty in row 0." in message
    assert message.endswith("Without any, `altnorm tune --no-labels` makes a model.")


def test_groups_reach_the_estimator(folder, capsys):
    data = pd.read_parquet("val.parquet")
    data["who"] = np.arange(len(data)) // 100 + 0.5  # a number, and no class
    data.to_parquet("grouped.parquet")
    tune = ["tune", "grouped.parquet", "--label", "y", "--json", *QUICK]
    grouped = told(capsys, [*tune, "-o", "m", "--group", "who"])["verdict"]
    alone = told(capsys, [*tune, "-o", "m2", "--other", "who"])["verdict"]
    assert grouped["p_value"] > alone["p_value"]  # six groups are less evidence than 600 rows
    data.loc[3, "who"] = None
    data.to_csv("gap.csv")
    tune[1] = "gap.csv"
    assert "Each row must have a group" in refused(capsys, *tune, "-o", "m3", "--group", "who")
    np.savez("a.npz", proba=draw(60, 0)[0], labels=draw(60, 0)[1])
    tune = ["tune", "a.npz", "-o", "m3", "--group", "who"]
    assert "--group names a column of a table" in refused(capsys, *tune)


def test_groups_count_in_test_rows_and_new_rows(folder, capsys):
    """Ten copies of forty rows are forty rows, not four hundred."""
    data = pd.read_parquet("val.parquet")
    data.assign(who=np.arange(len(data))).to_parquet("val.parquet")
    rows = np.arange(40).repeat(10)
    copies = pd.read_parquet("test.parquet").iloc[rows].assign(who=[f"person {i}" for i in rows])
    copies.to_parquet("copies.parquet")
    both = ["--label", "y", "--json", "--force", "--report", "r.html"]
    check = ["check", "val.parquet", "copies.parquet", "-o", "m", *both]
    by_group, by_row = told(capsys, [*check, "--group", "who"]), told(capsys, check)
    assert by_group["test"]["score"]["gain"] == pytest.approx(by_row["test"]["score"]["gain"])
    wide = width(by_group["test"]["score"])
    assert wide > 2 * width(by_row["test"]["score"])
    ours = next(row for row in by_group["comparison"] if row["method"] == "altnorm")
    assert width(ours) == pytest.approx(wide)
    existing = told(capsys, ["check", "copies.parquet", "--model", "m", *both, "--group", "who"])
    assert width(existing["test"]["score"]) == pytest.approx(wide)
    check[2] = "test.parquet"
    assert "no column 'who'" in refused(capsys, *check, "--group", "who")
    copies.assign(who="one").to_parquet("test.parquet")
    assert "at least 2 groups; all" in refused(capsys, *check, "--group", "who")


def width(record):
    return record["ci_high"] - record["ci_low"]
