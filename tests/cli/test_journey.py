"""The first thing anyone runs, and the same on one's own files."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from altnorm import Adjuster, load, load_demo
from tests.commands import CLASSES, draw, refused, said, table, told, write_log


def test_demo_tells_the_whole_story(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = said(capsys, ["demo", "-o", "story.html", "--jobs", "1"])
    assert "Adopted: accuracy 69.6% -> 8" in text
    for line in (
        "matrix family 0.",
        "of the mixture",
        "not tried: too many classes",
        "the score's own test yes < 0.001 one-sided p < 0.01",
    ):
        assert line in text
    assert "Cross-validated on 3,000 rows" in text
    assert "Log loss is the mean surprise" in text
    assert text.count("fixed “") == 3
    assert text.count("broken “") == 1
    demo = load_demo()
    right = load("story.safetensors").predict(demo.test.proba) == demo.test.labels
    for mark, query in re.findall("(fixed|broken) “(.*?)”", text):
        assert right[list(demo.queries).index(query)] == (mark == "fixed")
    assert "BCTS" in text
    assert "CC BY 3.0" in text
    assert str(tmp_path / "story.html") in text
    assert str(tmp_path / "story.safetensors") in text
    assert (tmp_path / "story.html").stat().st_size > 10_000


def test_check_with_test_data(folder, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    both = ["check", "val.parquet", "test.parquet", "--label", "y", "--jobs", "1"]
    text = said(capsys, [*both, "--open", "--strict"])
    assert "Adopted: accuracy" in text
    assert "Better: accuracy" in text
    assert "test rows that it has not seen" in text
    assert "What do the numbers mean?" not in text
    assert str(folder / "altnorm-model.safetensors") in text
    assert opened == [(folder / "altnorm-report.html").as_uri()]
    assert load("altnorm-model.safetensors").verdict_.adopted
    page = (folder / "altnorm-report.html").read_text(encoding="utf-8")
    digests = [hashlib.sha256((folder / f).read_bytes()).hexdigest()[:12] for f in both[1:3]]
    assert f"Validation rows: val.parquet (sha256 {digests[0]}); Test rows: test.parquet (" in page
    assert re.search(rf"sha256 {digests[1]}\); Date: \d{{4}}-\d\d-\d\d\.", page)
    assert "exists already" in refused(capsys, *both)
    printed = told(capsys, [*both, "--force", "--json"])
    assert printed["test"]["score"]["gain"] > 0
    assert {row["method"] for row in printed["comparison"]} >= {"altnorm", "do nothing", "BCTS"}


def test_too_few_decimals_do_not_show_whether_test_rows_were_seen(folder, capsys):
    rounded = pq.read_table(folder / "val.parquet").to_pandas()
    rounded[CLASSES] = rounded[CLASSES].round(1)
    rounded = rounded[(rounded[CLASSES].sum(axis=1) - 1).abs() < 1e-9]
    rounded.to_parquet(folder / "rounded.parquet")
    text = said(capsys, ["check", "val.parquet", "rounded.parquet", "--label", "y", "--jobs", "1"])
    assert "Before and after on" in text
    assert "test rows that it has not seen" not in text


@pytest.mark.parametrize("n_new", [0, 300])
def test_check_with_test_rows_of_which_some_were_seen(folder, capsys, n_new):
    val, test = (pq.read_table(folder / f"{name}.parquet") for name in ("val", "test"))
    seen = val if n_new == 0 else val.slice(0, 300)
    rows = pa.concat_tables([seen, test.slice(0, n_new)], promote_options="default")
    pq.write_table(rows, folder / "seen.parquet")
    text = said(capsys, ["check", "val.parquet", "seen.parquet", "--label", "y", "--jobs", "1"])
    assert "test rows that it has not seen" not in text
    assert "What changes? Before and after on" in text
    assert n_new or "but these are the rows that the model was tuned on" in text


def test_check_on_logits_compares_the_model_itself(folder, capsys):
    for name, (n, seed) in {"lv.npz": (600, 0), "lt.npz": (900, 1)}.items():
        proba, codes = draw(n, seed)
        np.savez(name, logits=np.log(proba), labels=codes)
    printed = told(capsys, ["check", "lv.npz", "lt.npz", "--jobs", "1", "--json"])
    ours = next(row for row in printed["comparison"] if row["method"] == "altnorm")
    assert ours["score"] == printed["test"]["score"]["after"]


def test_what_was_tried_lies_between_the_numbers_of_what_is_applied(folder, capsys):
    """Each number of the line below the table is in it, and says what it is of."""
    table(60, 0).to_parquet("few.parquet")
    text = said(capsys, ["check", "few.parquet", "--label", "y", "--jobs", "1"])
    before, after = re.search(r"log loss ([\d.]+) -> (\d+\.\d+)", text).groups()
    assert f"as they came {before} " in text
    assert f"what is applied {after} the mixture" in text


def test_check_with_costs_says_what_it_compares_with(folder, capsys):
    Path("costs.csv").write_text("true,ant,bee,cow\nant,0,5,1\nbee,1,0,1\ncow,1,1,0\n")
    both = ["check", "val.parquet", "test.parquet", "--label", "y", "--jobs", "1"]
    text = said(capsys, [*both, "--costs", "costs.csv"])
    tuned, tested = text.split("What changes?")
    assert "Before: the predictions as they came, decided by cost or for" in tuned
    assert "Before: the most probable class" not in tuned
    assert "Before: the most probable class of predictions as they came" in tested
    page = (folder / "altnorm-report.html").read_text(encoding="utf-8")
    assert "Before: the most probable class of predictions as they came" in page


def test_check_on_sample_logs(folder, capsys):
    for name, (n, seed) in {"val": (600, 0), "test": (300, 1)}.items():
        write_log(folder / f"samples_{name}.jsonl", table(n, seed), options=2)
    both = ["check", "samples_val.jsonl", "samples_test.jsonl", "--jobs", "1"]
    printed = told(capsys, [*both, "--text", "doc", "--json"])
    proba, codes = draw(300, 1)
    kept = np.arange(300) % 10 > 0
    right = np.mean(proba[kept].argmax(axis=1) == codes[kept])
    assert printed["test"]["score"]["before"] == pytest.approx(right)
    # The texts belong to the rows that were kept: the first question is left out.
    page = (folder / "altnorm-report.html").read_text(encoding="utf-8")
    assert "t11" in page
    assert '"t10"' not in page.replace("\\", "")


def test_check_with_several_labels(folder, capsys):
    rng = np.random.default_rng(0)
    for name in ("mv.npz", "mt.npz"):
        truth = (rng.random((400, 3)) < 0.25).astype(np.uint8)
        proba = 1 / (1 + np.exp(-(rng.normal(size=(400, 3)) + 2.2 * truth - 2.6)))
        np.savez(name, proba=proba, labels=truth)
    options = ["--multilabel", "labelwise", "--jobs", "1"]
    assert "label decisions changed" in said(capsys, ["check", "mv.npz", "mt.npz", *options])


def test_a_folder_of_sample_logs(folder, capsys):
    """A line for each task and the mean; of two runs of a task the later one counts."""
    logs = folder / "results" / "org__model"
    logs.mkdir(parents=True)
    write_log(logs / "samples_fair_2026-11-01T10-00-00.123.jsonl", table(300, 0, bias=(0, 0, 0)))
    write_log(logs / "samples_odd_task_2026-11-01T10-00-00.123.jsonl", table(60, 0, bias=(0, 0, 0)))
    write_log(logs / "samples_odd_task_2026-11-02T10-00-00.123.jsonl", table(300, 0))
    (logs / "samples_text_2026-11-01T10-00-00.123.jsonl").write_text(
        json.dumps({"doc_id": 0, "doc": {}, "target": "a", "filtered_resps": ["a"]}) + "\n"
    )
    check = ["check", "results", "-j", "1"]
    record = told(capsys, [*check, "--json"])
    assert list(record["tasks"]) == ["fair", "odd_task", "text"]
    fair, odd = (record["tasks"][name]["verdict"] for name in ("fair", "odd_task"))
    assert (fair["adopted"], odd["adopted"], odd["n_rows"]) == (False, True, 300)
    assert "Only logs of multiple-choice tasks" in record["tasks"]["text"]["error"]
    assert record["mean"] == {
        "before": pytest.approx((fair["before"] + odd["before"]) / 2),
        "after": pytest.approx((fair["before"] + odd["after"]) / 2),
    }
    printed = said(capsys, check)
    assert "mean" in printed
    assert f"{record['mean']['after']:.1%} 2 tasks" in printed
    assert not list(folder.glob("altnorm-*"))
    write_log(folder / "results" / "samples_fair_2026.jsonl", table(60, 0))
    names = ["org__model/fair", "org__model/odd_task", "org__model/text", "results/fair"]
    assert sorted(told(capsys, [*check, "--json"])["tasks"]) == names
    assert "--output is given, too" in refused(capsys, *check, "-o", "m")
    (folder / "texts").mkdir()
    (logs / "samples_text_2026-11-01T10-00-00.123.jsonl").rename("texts/samples_text_2026.jsonl")
    assert re.search(r"can be read\.$", refused(capsys, "check", "texts")), "one full stop"
    (folder / "empty").mkdir()
    assert "no file samples_*.jsonl" in refused(capsys, "check", "empty")


def test_with_few_labels_the_way_to_those_that_decide_is_told_and_works(folder, capsys):
    few = (table(150, seed, bias=(0.7, 0, 0)) for seed in range(30))
    unproved = next(
        data
        for data in few
        if Adjuster().fit(data[CLASSES], data["y"]).verdict_.reason == "not_significant"
    )
    unproved.to_parquet("few.parquet")
    check = ["check", "few.parquet", "--label", "y", "--jobs", "1"]
    text = said(capsys, check)
    assert "test rows" not in text
    step = re.search(
        r"Next: ask for the labels that decide \(about ([\d,]+) labels\): run this again with "
        r"(.*?), then: altnorm (ask .* -o ask.csv)",
        text,
    )
    assert 10 < int(step[1].replace(",", "")) < 150
    text = said(capsys, [*check, *step[2].split()])
    assert f"altnorm {step[3]}" in text  # of the model that was insisted on, at once
    assert "run this again" not in text
    assert "applied all the same, because of --insist." in text
    table(2000, 2, bias=(0.7, 0, 0)).to_parquet("pool.parquet")
    assert "40 rows to label" in said(capsys, step[3].replace("POOL", "pool.parquet").split())
