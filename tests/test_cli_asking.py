"""From predictions without labels to an answer: ask, label some rows, judge."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import altnorm
from altnorm import load
from altnorm.cli._run import run
from altnorm.io import formats as _formats
from tests.commands import CLASSES, out, refused, table, write_log


def read(name="ask.csv"):
    return pd.read_csv(name, dtype=str, keep_default_na=False)


def fill(truth, n, name="ask.csv"):
    """Answer the first `n` questions."""
    asked = read(name)
    known = np.asarray(truth)[asked["row"].astype(int)]
    asked["label"] = np.where(np.arange(len(asked)) < n, known, asked["label"])
    asked.to_csv(name, index=False)


def judged(capsys, *arguments):
    capsys.readouterr()
    assert run(["judge", "model", "ask.csv", "--json", *arguments]) == 0
    return json.loads(out(capsys))


@pytest.fixture
def pool():
    return pd.read_parquet("test.parquet")


def test_the_file_holds_what_ask_asks_for(folder, model, pool, capsys):
    assert run(["ask", model, "test.parquet", "-n", "12", "-o", "ask.csv", "--label", "y"]) == 0
    assert "12 rows to label" in out(capsys)
    asked, proba = read(), pool[CLASSES].to_numpy()
    normalizer = load(model)
    rows = altnorm.ask(normalizer, proba, n=12)
    assert asked["row"].astype(int).tolist() == rows.tolist()
    assert asked["ask"].tolist() == [str(i) for i in range(1, 13)]
    own = ["ask", "row", "note", "id", "candidate_1", "candidate_2", "label", "pool"]
    assert asked.columns.tolist() == own
    assert asked["note"].tolist() == ["a, b"] * 12
    assert asked["id"].astype(int).tolist() == rows.tolist()
    before, after = CLASSES[proba.argmax(axis=1)][rows], normalizer.predict(proba)[rows]
    pairs = asked[["candidate_1", "candidate_2"]].to_numpy()
    assert [set(p) for p in pairs] == [{a, b} for a, b in zip(before, after, strict=True)]
    assert set(asked["label"]) == {""}


def test_neither_place_nor_line_betrays_the_new_class(folder, model, pool):
    assert run(["ask", model, "test.parquet", "-n", "400", "-o", "ask.csv"]) == 0
    asked, proba = read(), pool[CLASSES].to_numpy()
    new = load(model).predict(proba)[asked["row"].astype(int)]
    first = asked["candidate_1"].to_numpy() == new
    assert abs(first.mean() - 0.5) < 3 * 0.5 / np.sqrt(len(first))
    assert len(asked) > 100


def test_judge_says_what_the_library_says(folder, model, pool, capsys):
    assert run(["ask", model, "test.parquet", "-n", "80", "-o", "ask.csv"]) == 0
    proba, normalizer = pool[CLASSES].to_numpy(), load(model)
    rows = altnorm.ask(normalizer, proba, n=80)
    for n in (0, 3, 80):
        fill(pool["y"], n)
        found = judged(capsys)
        known = altnorm.judge(normalizer, proba, rows, pool["y"].to_numpy()[rows[:n]]).to_dict()
        assert {name: found[name] for name in known} == known
    assert found["decision"] == "adopt"
    assert "altnorm apply model" in found["next"]


def test_half_filled_files_and_what_to_do_next(folder, model, pool, capsys):
    assert run(["ask", model, "test.parquet", "-n", "4", "-o", "ask.csv"]) == 0
    fill(pool["y"], 2)
    capsys.readouterr()
    assert run(["judge", model, "ask.csv", "--strict"]) == 1
    assert "Next: label question 3 and so on in ask.csv." in out(capsys)
    fill(["neither"] * 900, 4)
    found = judged(capsys)
    assert (found["n_labelled"], found["n_fixed"], found["n_broken"]) == (4, 0, 0)
    assert f"altnorm ask model POOL -n {found['n_expected']} -o ask.csv appends" in found["next"]


def test_asking_again_appends_and_keeps_the_labels(folder, model, pool, capsys):
    ask = ["ask", model, "test.parquet", "-o", "ask.csv", "--label", "y"]
    assert run([*ask, "-n", "5"]) == 0
    fill(pool["y"], 5)
    answered = read()
    answered.assign(comment="clear").to_csv("ask.csv", index=False)
    assert run([*ask, "-n", "7"]) == 0
    assert "7 further rows to label" in out(capsys)
    assert run(["ask", model, "test.parquet", "-n", "12", "-o", "whole.csv", "--label", "y"]) == 0
    longer = read()
    assert longer["comment"].tolist() == ["clear"] * 5 + [""] * 7
    pd.testing.assert_frame_equal(longer[:5].drop(columns="comment"), answered)
    pd.testing.assert_frame_equal(longer[5:].drop(columns="comment"), read("whole.csv")[5:])
    assert run([*ask, "-n", "2", "--force"]) == 0
    assert len(read()) == 2


def test_judge_appends_rows_of_the_pool(folder, model, pool, capsys):
    assert run(["ask", model, "test.parquet", "-n", "3", "-o", "ask.csv", "--label", "y"]) == 0
    found = judged(capsys, "--pool", "test.parquet")
    assert found["n_asked"] == 3  # there are rows to label first
    fill(["neither"] * 900, 3)
    found = judged(capsys, "--pool", "test.parquet", "--label", "y")
    assert found["n_asked"] == 3 + found["n_expected"] == len(read())
    assert "rows were appended" in found["next"]
    assert read()["label"].tolist()[:4] == ["neither"] * 3 + [""]


def test_a_spreadsheet_may_sort_the_lines_and_use_semicolons(folder, model, pool, capsys):
    assert run(["ask", model, "test.parquet", "-n", "30", "-o", "ask.csv"]) == 0
    fill(pool["y"], 20)
    known = judged(capsys)
    read().sort_values("label").to_csv("ask.csv", index=False, sep=";", encoding="utf-8-sig")
    assert judged(capsys) == known
    read_ = pd.read_csv("ask.csv", sep=";", dtype=str, keep_default_na=False)
    read_[read_["ask"] != "6"].to_csv("ask.csv", index=False)
    assert judged(capsys)["n_labelled"] == 5  # a deleted line is a missing label


def test_from_no_labels_at_all(folder, pool, capsys):
    pool[["id", *CLASSES]].to_csv("pool.csv", index=False)
    shares = pool["y"].value_counts(normalize=True)
    shares.to_csv("balance.csv")
    arguments = ["tune", "pool.csv", "--prior", "balance.csv", "--no-labels", "-o", "model"]
    assert run(arguments) == 0
    assert "Next: altnorm ask model POOL -o ask.csv" in out(capsys)
    known = altnorm.AlternatingNormalizer(prior=shares[CLASSES].to_numpy())
    known.fit(pool[CLASSES].to_numpy())
    proba = pool[CLASSES].to_numpy()
    np.testing.assert_array_equal(load("model").transform(proba), known.transform(proba))
    assert run(["ask", "model", "pool.csv", "-o", "ask.csv"]) == 0
    fill(pool["y"], 40)
    assert judged(capsys)["decision"] == "adopt"


def test_settings_without_labels(folder, capsys):
    arguments = ["tune", "val.parquet", "--no-labels", "-o", "model", "--json"]
    assert run([*arguments, "--alphas", "0.5", "--depths", "2", "--thresholds", "0.3"]) == 0
    assert json.loads(out(capsys)) == {"model": "model", "verdict": None}
    found = load("model")
    assert (found.alpha, found.depth, found.threshold) == (0.5, 2, 0.3)
    np.testing.assert_allclose(found.prior_, 1 / 3)
    error = refused(capsys, *arguments, "--force", "--alphas", "1,2")
    assert (
        "Without labels no setting can be chosen: --alphas must be one value; it is 1, 2" in error
    )


def test_several_labels_per_row(folder, capsys):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 3)) - 1
    truth = (rng.random((400, 3)) < 1 / (1 + np.exp(-2 * scores - 2))).astype(int)
    pool = pd.DataFrame(1 / (1 + np.exp(-scores)), columns=CLASSES)
    pool.assign(id=[f"n{i}" for i in range(400)]).to_parquet("tags.parquet")
    pd.DataFrame({"label": CLASSES, "share": truth.mean(axis=0)}).to_csv("b.csv", index=False)
    tune = ["tune", "tags.parquet", "--multilabel", "labelwise", "--prior", "b.csv", "--no-labels"]
    assert run([*tune, "-o", "model"]) == 0
    assert run(["ask", "model", "tags.parquet", "-n", "25", "-o", "ask.csv"]) == 0
    assert "from the top (yes or no), then: altnorm judge model ask.csv" in out(capsys)
    asked, normalizer = read(), load("model")
    rows = altnorm.ask(normalizer, pool.to_numpy(), n=25)
    assert asked.groupby("ask", sort=False)["row"].first().astype(int).tolist() == rows.tolist()
    assert len(asked) > 25
    assert all(set(p) == {"yes", "no"} for p in asked[["candidate_1", "candidate_2"]].to_numpy())
    column = [CLASSES.tolist().index(name) for name in asked["about"]]
    answer = truth[asked["row"].astype(int), column]
    asked["label"] = np.where(np.arange(len(asked)) % 2, np.array(["No", "Yes"])[answer], answer)
    asked.to_csv("ask.csv", index=False)
    known = altnorm.judge(normalizer, pool.to_numpy(), rows, truth[rows]).to_dict()
    found = judged(capsys)
    assert {name: found[name] for name in known} == known
    twice = asked["ask"].value_counts().idxmax()
    gone = asked.index[asked["ask"] == twice][0]
    asked.drop(index=gone).to_csv("ask.csv", index=False)  # half a row is no row
    assert judged(capsys)["n_labelled"] == int(twice) - 1
    asked.loc[gone, "label"] = "perhaps"
    asked.to_csv("ask.csv", index=False)
    error = refused(capsys, "judge", "model", "ask.csv")
    assert f"A label must be one of 'yes', 'no'; question {twice} has 'perhaps'" in error


def test_whole_numbers_that_a_gap_made_floats(folder, model, pool, capsys):
    proba = pool[CLASSES].to_numpy()
    np.savez("pool.npz", proba=proba)
    assert run(["tune", "pool.npz", "--no-labels", "-o", "numbers"]) == 0
    assert run(["ask", "numbers", "pool.npz", "-n", "9", "-o", "ask.csv"]) == 0
    asked = pd.read_csv("ask.csv")  # as pandas guesses: an empty column is one of floats
    codes = np.array([CLASSES.tolist().index(name) for name in pool["y"]])
    asked.loc[:5, "label"] = codes[asked["row"][:6]]
    asked.to_csv("ask.csv", index=False)
    assert ".0" in str(read()["label"].tolist())
    capsys.readouterr()
    assert run(["judge", "numbers", "ask.csv", "--json"]) == 0
    assert json.loads(out(capsys))["n_labelled"] == 6


def test_arrays_have_no_other_columns(folder, model, pool):
    np.savez("pool.npz", proba=pool[CLASSES].to_numpy(), classes=CLASSES)
    assert run(["ask", model, "pool.npz", "-n", "3", "-o", "ask.csv"]) == 0
    assert read().columns.tolist() == ["ask", "row", "candidate_1", "candidate_2", "label", "pool"]


def test_a_sample_log_as_the_pool_keeps_its_right_answers_to_itself(folder, pool, capsys):
    write_log(folder / "samples.jsonl", pool)
    assert run(["tune", "samples.jsonl", "--no-labels", "-o", "model"]) == 0
    assert run(["ask", "model", "samples.jsonl", "-n", "6", "-o", "ask.csv"]) == 0
    asked = read()
    assert asked["doc_id"].tolist() == asked["row"].tolist()
    assert asked["doc"][0] == json.dumps({"text": f"t{asked['row'][0]}"})
    assert "target" not in asked.columns


def test_questions_with_the_usual_number_of_options(folder, pool, capsys):
    write_log(folder / "samples.dat", pool, options=2)
    how = ["--format", "lm-eval", "--usual-options"]
    assert run(["tune", "samples.dat", "--no-labels", "-o", "model", *how]) == 0
    assert run(["ask", "model", "samples.dat", "-n", "6", "-o", "ask.csv", *how]) == 0
    asked = read()
    kept = [i for i in range(len(pool)) if i % 10]
    assert asked["doc_id"].astype(int).tolist() == [kept[int(row)] for row in asked["row"]]
    fill(["neither"] * 900, 6)
    found = judged(capsys, "--pool", "samples.dat", *how)
    assert found["n_asked"] == 6 + found["n_expected"] == len(read())
    error = refused(capsys, "ask", "model", "samples.dat", "-o", "b.csv", *how[:2])
    assert "--usual-options" in error


def test_a_pool_from_the_standard_input(folder, model, pool, capsys, monkeypatch):
    text = pool.to_csv(index=False).encode()
    assert run(["ask", model, "test.parquet", "-n", "6", "-o", "known.csv"]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    _formats._copy_stdin.cache_clear()
    ask = ["ask", model, "-", "--format", "csv", "--label", "y", "-n", "6", "-o", "ask.csv"]
    assert run(ask) == 0
    known = read("known.csv").drop(columns="y")
    pd.testing.assert_frame_equal(read()[known.columns], known)
    assert "Pass --format" in refused(capsys, "ask", model, "-", "-o", "b.csv")


def test_where_nothing_changes_nothing_is_asked(folder, capsys):
    sure = pd.DataFrame(np.eye(3)[[0, 1, 2] * 5] * 0.97 + 0.01, columns=CLASSES)
    sure.to_parquet("sure.parquet")
    assert run(["tune", "val.parquet", "--no-labels", "-o", "model"]) == 0
    capsys.readouterr()
    assert run(["ask", "model", "sure.parquet", "-o", "ask.csv"]) == 0
    assert "The model changes no decision in 15 rows: nothing to label." in out(capsys)
    assert not (folder / "ask.csv").exists()


def test_what_is_refused(folder, model, pool, capsys):
    ask = ["ask", model, "test.parquet", "-n", "4", "-o", "ask.csv"]
    assert run(ask) == 0
    table(600, 2).to_parquet("elsewhere.parquet", index=False)
    error = refused(capsys, "ask", model, "elsewhere.parquet", "-o", "ask.csv")
    assert "only to a file of the same model, pool and seed" in error
    asked = read()
    asked.assign(label="cat").to_csv("wrong.csv", index=False)
    error = refused(capsys, "judge", model, "wrong.csv")
    assert "one of 'ant', 'bee', 'cow', or 'neither'; question 1 has 'cat'" in error
    asked.assign(candidate_1="").to_csv("wrong.csv", index=False)
    assert "Row and candidates of a question" in refused(capsys, "judge", model, "wrong.csv")
    asked.assign(pool="?").to_csv("wrong.csv", index=False)
    assert "column 'pool' must say the same" in refused(capsys, "judge", model, "wrong.csv")
    asked.assign(ask="1").to_csv("wrong.csv", index=False)
    assert "each once; '1' is there 4 times" in refused(capsys, "judge", model, "wrong.csv")
    asked.drop(columns="label").to_csv("wrong.csv", index=False)
    assert "it has no column 'label'" in refused(capsys, "judge", model, "wrong.csv")
    (folder / "wrong.csv").write_bytes(b"ask,row\n\xe9,1\n")
    assert "must be a CSV file in UTF-8" in refused(capsys, "judge", model, "wrong.csv")
    assert run(["tune", "val.parquet", "--no-labels", "-o", "other"]) == 0
    assert "those of this model" in refused(capsys, "judge", "other", "ask.csv")


BALANCES = [
    ("ant,1\nbee,2\n", "must name each of the 3 classes once; 'cow' is missing"),
    ("ant,1\nbee,2\ncow,3\nfly,4\ngnu,5\n", "'fly', 'gnu' are unknown"),
    ("ant,1\nbee,2\ncow,3\ncow,4\n", "'cow' is there twice"),
    ("ant,1\nbee,-2\ncow,3\n", "must hold a class and a number, 0 or greater; one is 'bee,-2'"),
    ("class,share\nant\n", "one is 'ant'"),
]


@pytest.mark.parametrize(("text", "message"), BALANCES)
def test_a_class_balance_that_cannot_be_read(folder, capsys, text, message):
    (folder / "balance.csv").write_text(text)
    arguments = ["tune", "val.parquet", "--no-labels", "--prior", "balance.csv", "-o", "model"]
    assert message in refused(capsys, *arguments)


def test_a_prior_that_is_neither_a_kind_nor_a_file(folder, capsys):
    error = refused(
        capsys, "tune", "val.parquet", "--label", "y", "--prior", "x.csv", "-o", "model"
    )
    assert "--prior must be one of" in error
    assert "or a CSV file" in error
