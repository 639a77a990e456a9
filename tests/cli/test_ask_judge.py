"""From predictions without labels to an answer: ask, label some rows, judge."""

import numpy as np
import pandas as pd
import pytest

import altnorm
from altnorm import load
from altnorm.cli import ask as ask_command
from altnorm.io.formats import Layout
from altnorm.io.predictions import read_predictions
from tests.commands import CLASSES, refused, run, said, table, told, write_log
from tests.io.test_untrusted_files import FORMULAS


def read(name="ask.csv"):
    return pd.read_csv(name, dtype=str, keep_default_na=False)


def ask(n, *more, model="model", pool="test.parquet", output="ask.csv"):
    """Write questions, and return them."""
    assert run(["ask", model, pool, "-n", str(n), "-o", output, *more]) == 0
    return read(output)


def fill(truth, n, name="ask.csv"):
    """Answer the first `n` questions."""
    asked = read(name)
    answers = np.asarray(truth)[asked["row"].astype(int)]
    asked["label"] = np.where(np.arange(len(asked)) < n, answers, asked["label"])
    asked.to_csv(name, index=False)


def judged(capsys, model="model"):
    return told(capsys, ["judge", model, "ask.csv", "--json"])


def check_judged(capsys, judgement, model="model"):
    """The command says what the library says."""
    record, expected = judged(capsys, model), judgement.to_dict()
    assert {name: record[name] for name in expected} == expected
    return record


def fit(path, name="model", *, threshold=0.75, **layout):
    """Write a model that was fitted to the predictions in a file; return its name."""
    predictions = read_predictions(path, Layout(**layout))
    fitted = altnorm.AlternatingNormalizer(threshold=threshold, prior="uniform")
    fitted.fit(predictions.proba)
    fitted.classes_ = predictions.classes
    fitted.save(name)
    return name


@pytest.fixture
def model(folder):
    return fit("val.parquet")


@pytest.fixture
def pool():
    return pd.read_parquet("test.parquet")


def test_the_file_holds_what_ask_asks_for(folder, model, pool, capsys):
    arguments = ["ask", model, "test.parquet", "-n", "12", "-o", "ask.csv", "--label", "y"]
    assert "12 rows to label" in said(capsys, arguments)
    asked, proba = read(), pool[CLASSES].to_numpy()
    normalizer = load(model)
    rows = altnorm.ask(normalizer, proba, n=12)
    assert asked["row"].astype(int).tolist() == rows.tolist()
    assert asked["ask"].tolist() == [str(i) for i in range(1, 13)]
    columns = ["ask", "row", "note", "id", "candidate_1", "candidate_2", "label", "pool"]
    assert asked.columns.tolist() == columns
    assert asked["note"].tolist() == ["a, b"] * 12
    assert asked["id"].astype(int).tolist() == rows.tolist()
    before, after = CLASSES[proba.argmax(axis=1)][rows], normalizer.predict(proba)[rows]
    pairs = asked[["candidate_1", "candidate_2"]].to_numpy()
    assert [set(p) for p in pairs] == [{a, b} for a, b in zip(before, after, strict=True)]
    assert set(asked["label"]) == {""}


def test_neither_place_nor_line_betrays_the_new_class(folder, model, pool):
    asked, proba = ask(400), pool[CLASSES].to_numpy()
    new = load(model).predict(proba)[asked["row"].astype(int)]
    first = asked["candidate_1"].to_numpy() == new
    assert abs(first.mean() - 0.5) < 3 * 0.5 / np.sqrt(len(first))
    assert len(asked) > 100


def test_judge_says_what_the_library_says_and_what_to_do_next(folder, model, pool, capsys):
    ask(80)
    proba, normalizer = pool[CLASSES].to_numpy(), load(model)
    rows = altnorm.ask(normalizer, proba, n=80)
    for n in (0, 3, 80):
        fill(pool["y"], n)
        judgement = altnorm.judge(normalizer, proba, rows, pool["y"].to_numpy()[rows[:n]])
        record = check_judged(capsys, judgement)
        if n == 3:
            text = said(capsys, ["judge", model, "ask.csv", "--strict"], status=1)
            assert "Next: go on with question 4 in ask.csv." in text
    assert record["decision"] == "adopt"
    assert record["next"].startswith("altnorm apply model")
    fill(["neither"] * 900, 80)
    record = judged(capsys)
    assert (record["n_labelled"], record["n_fixed"], record["n_broken"]) == (80, 0, 0)
    assert f"altnorm ask model POOL -n {record['n_expected']} -o ask.csv" in record["next"]


def test_asking_again_appends_and_keeps_the_labels(folder, model, pool, capsys):
    ask(5, "--label", "y")
    fill(pool["y"], 5)
    answered = read()
    answered.assign(comment="clear").to_csv("ask.csv", index=False)
    again = ["ask", model, "test.parquet", "-o", "ask.csv", "--label", "y", "-n", "7"]
    assert "7 further rows to label" in said(capsys, again)
    longer, at_once = read(), ask(12, "--label", "y", output="at_once.csv")
    assert longer["comment"].tolist() == ["clear"] * 5 + [""] * 7
    pd.testing.assert_frame_equal(longer[:5].drop(columns="comment"), answered)
    pd.testing.assert_frame_equal(longer[5:].drop(columns="comment"), at_once[5:])
    assert len(ask(2, "--force")) == 2


def test_a_spreadsheet_may_sort_the_lines_and_use_semicolons(folder, model, pool, capsys):
    ask(30)
    fill(pool["y"], 20)
    in_order = judged(capsys)
    read().sort_values("label").to_csv("ask.csv", index=False, sep=";", encoding="utf-8-sig")
    assert judged(capsys) == in_order
    read_ = pd.read_csv("ask.csv", sep=";", dtype=str, keep_default_na=False)
    read_[read_["ask"] != "6"].to_csv("ask.csv", index=False)
    assert judged(capsys)["n_labelled"] == 5  # a deleted line is a missing label


def test_from_no_labels_at_all(folder, pool, capsys):
    pool[["id", *CLASSES]].to_csv("pool.csv", index=False)
    shares = pool["y"].value_counts(normalize=True)
    shares.to_csv("balance.csv")
    arguments = ["tune", "pool.csv", "--prior", "balance.csv", "--no-labels", "-o", "model"]
    assert "Next: altnorm ask model POOL -o ask.csv" in said(capsys, arguments)
    pool[CLASSES].add_prefix("p ").to_csv("named.csv", index=False)
    prefixed = ["tune", "named.csv", "--no-labels", "--prefix", "p ", "-o", "model", "--force"]
    assert "altnorm ask model POOL --prefix 'p ' -o ask.csv" in said(capsys, prefixed)
    assert run([*arguments, "--force"]) == 0
    proba = pool[CLASSES].to_numpy()
    expected = altnorm.AlternatingNormalizer(prior=shares[CLASSES].to_numpy()).fit(proba)
    np.testing.assert_array_equal(load("model").transform(proba), expected.transform(proba))
    ask(40, pool="pool.csv")
    fill(pool["y"], 40)
    assert judged(capsys)["decision"] == "adopt"


def test_several_labels_per_row(folder, capsys):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 3)) - 1
    truth = (rng.random((400, 3)) < 1 / (1 + np.exp(-2 * scores - 2))).astype(int)
    pool = pd.DataFrame(1 / (1 + np.exp(-scores)), columns=CLASSES)
    pool.assign(id=[f"n{i}" for i in range(400)]).to_parquet("tags.parquet")
    pd.DataFrame({"label": CLASSES, "share": truth.mean(axis=0)}).to_csv("b.csv", index=False)
    tune = ["tune", "tags.parquet", "--multilabel", "labelwise", "--prior", "b.csv", "--no-labels"]
    assert run([*tune, "-o", "model"]) == 0
    text = said(capsys, ["ask", "model", "tags.parquet", "-n", "25", "-o", "ask.csv"])
    assert "from the top (yes or no), then: altnorm judge model ask.csv" in text
    asked, normalizer = read(), load("model")
    rows = altnorm.ask(normalizer, pool.to_numpy(), n=25)
    assert asked.groupby("ask", sort=False)["row"].first().astype(int).tolist() == rows.tolist()
    assert len(asked) > 25
    assert all(set(p) == {"yes", "no"} for p in asked[["candidate_1", "candidate_2"]].to_numpy())
    column = [CLASSES.tolist().index(name) for name in asked["about"]]
    answer = truth[asked["row"].astype(int), column]
    asked["label"] = np.where(np.arange(len(asked)) % 2, np.array(["No", "Yes"])[answer], answer)
    asked.to_csv("ask.csv", index=False)
    check_judged(capsys, altnorm.judge(normalizer, pool.to_numpy(), rows, truth[rows]))
    twice = asked["ask"].value_counts().idxmax()
    gone = asked.index[asked["ask"] == twice][0]
    asked.drop(index=gone).to_csv("ask.csv", index=False)  # half a row is no row
    assert judged(capsys)["n_labelled"] == int(twice) - 1
    asked.loc[gone, "label"] = "perhaps"
    asked.to_csv("ask.csv", index=False)
    error = refused(capsys, "judge", "model", "ask.csv")
    assert f"A label must be one of 'yes', 'no'; question {twice} has 'perhaps'" in error


def test_where_nothing_changes_nothing_is_asked(folder, capsys):
    sure = pd.DataFrame(np.eye(3)[[0, 1, 2] * 5] * 0.97 + 0.01, columns=CLASSES)
    sure.to_parquet("sure.parquet")
    fit("val.parquet")
    text = said(capsys, ["ask", "model", "sure.parquet", "-o", "ask.csv"])
    assert "The model changes no decision in 15 rows: nothing to label." in text
    assert not (folder / "ask.csv").exists()


def test_what_is_refused(folder, model, pool, capsys):
    asked, other = ask(4), ask(4, "--seed", "1", output="other.csv")
    table(600, 2).to_parquet("elsewhere.parquet", index=False)
    error = refused(capsys, "ask", model, "elsewhere.parquet", "-o", "ask.csv")
    assert "only to a file of the same models, pool and seed" in error
    pool.to_csv("pool.csv")
    error = refused(capsys, "ask", model, "test.parquet", "-o", "pool.csv")
    assert "'pool.csv' must be a file of questions; it has no column 'ask'." in error
    for lines, message in (
        (asked.assign(label="cat"), "'ant', 'bee', 'cow', or 'neither'; question 1 has 'cat'"),
        (pd.concat([asked, asked[:1]]), "occur once, and number 1 occurs again"),
        (
            pd.concat([asked, other]),
            "'pool' must say the same in each line; the lines are about 2 pools, models",
        ),
        (asked.drop(columns="label"), "it has no column 'label'"),
    ):
        lines.to_csv("wrong.csv", index=False)
        assert message in refused(capsys, "judge", model, "wrong.csv")
    (folder / "wrong.csv").write_bytes(b"ask,row\n\xe9,1\n")
    assert "must be a CSV file in UTF-8" in refused(capsys, "judge", model, "wrong.csv")
    fit("test.parquet", "other")
    assert "those of this model" in refused(capsys, "judge", "other", "ask.csv")


def says(part, number):
    """All lines say another number of the pool."""
    return lambda asked: {
        "pool": asked["pool"].str.replace(rf"{part}=\S+", f"{part}={number}", regex=True)
    }


def first(column, text):
    """The first line has another text."""
    return lambda asked: {column: asked[column].where(asked["ask"] != "1", text)}


DIGITS = "9" * 5000  # more than Python turns into a number
WRITTEN, FIT = "The column 'pool' must be as `altnorm ask` wrote it", "must fit together"
CHANGED = {
    "other text": (first("pool", "?"), WRITTEN),
    "a long number of rows": (says("rows", DIGITS), WRITTEN),
    "a total that is none": (says("total", "nan"), WRITTEN),
    "no changed rows": (says("changed", 0), FIT),
    "more changed rows than rows": (says("changed", 10**17), FIT),
    "more answers than changed rows": (says("changed", 3), FIT),
    "changes worth nothing": (says("total", 0.5), FIT),
    "changes worth too much": (says("total", "1e+09"), FIT),
    "one row only": (lambda _: {"row": "5"}, FIT),
    "a row that is no number": (first("row", "x"), FIT),
    "a long number": (first("ask", DIGITS), FIT),
    "number 0": (first("ask", "0"), FIT),
    "one number twice": (first("ask", "2"), FIT),
    "a class that is none": (first("candidate_1", "dodo"), FIT),
    "one candidate twice": (lambda asked: first("candidate_1", asked["candidate_2"])(asked), FIT),
}


@pytest.mark.parametrize("change", CHANGED)
def test_what_cannot_be_is_refused(folder, model, pool, capsys, change):
    ask(4)
    fill(pool["y"], 4)
    columns, message = CHANGED[change]
    asked = read()
    asked.assign(**columns(asked)).to_csv("ask.csv", index=False)
    assert message in refused(capsys, "judge", model, "ask.csv")


def test_labels_saved_while_ask_works_are_not_lost(folder, model, pool, capsys, monkeypatch):
    ask(5)
    find = ask_command.find_changes

    def labelled_meanwhile(*arguments):
        fill(pool["y"], 5)
        return find(*arguments)

    monkeypatch.setattr(ask_command, "find_changes", labelled_meanwhile)
    error = refused(capsys, "ask", model, "test.parquet", "-n", "5", "-o", "ask.csv")
    assert "'ask.csv' was changed while this command was running, and is left as it is" in error
    assert len(read()) == 5
    assert "" not in read()["label"].tolist()


def test_two_models_are_compared_where_they_differ(folder, model, pool, capsys):
    fit("test.parquet", "second", threshold=0.3)
    asked = ask(30, "--against", model, model="second")
    models = load("second"), load(model)
    assert models[0].classes_.tolist() != models[1].classes_.tolist()  # columns in another order
    proba = pool[models[0].classes_].to_numpy()
    rows = altnorm.ask(models[0], proba, n=30, against=models[1])
    assert asked["row"].astype(int).tolist() == rows.tolist()
    after, before = (fitted.predict(pool[fitted.classes_].to_numpy())[rows] for fitted in models)
    pairs = asked[["candidate_1", "candidate_2"]].to_numpy()
    assert [set(p) for p in pairs] == [{a, b} for a, b in zip(before, after, strict=True)]
    fill(pool["y"], 30)
    truth = pool["y"].to_numpy()[rows]
    judgement = altnorm.judge(models[0], proba, rows, truth, against=models[1])
    check_judged(capsys, judgement, "second")
    fill(["neither"] * 900, 30)
    text = said(capsys, ["judge", "second", "ask.csv"])
    assert "altnorm ask second POOL --against MODEL0 -n" in text
    error = refused(capsys, "ask", "second", "test.parquet", "-o", "ask.csv")
    assert "same models, pool and seed" in error


@pytest.mark.filterwarnings("ignore:90 rows of 900 had another number of options")
def test_a_person_sees_what_is_named(folder, pool, capsys):
    """The documents of a log may hold the answer: nothing of them is shown unless it is named."""
    document = {"question": "q", "answer": 0, "about": {"idx": [1]}}

    def numbered(i, target):
        return document | {"question": f"q{i}"}

    write_log(folder / "samples.dat", pool, options=2, doc=numbered)
    fit("samples.dat", format="lm-eval")
    args = ["ask", "model", "samples.dat", "--format", "lm-eval", "-n", "6", "-o"]
    assert "Shown with them: no column of the pool; --text NAME" in said(capsys, [*args, "ask.csv"])
    ours = ["candidate_1", "candidate_2", "label", "pool"]
    assert read().columns.tolist() == ["ask", "row", *ours]
    texts = ("doc.about", "doc.question", "doc_id")
    named = [*args, "named.csv", *(part for text in texts for part in ("--text", text))]
    assert "Shown with them: doc.about, doc.question, doc_id." in said(capsys, named)
    asked = read("named.csv")
    assert asked.columns.tolist() == ["ask", "row", *texts, *ours]
    # Questions with another number of options than most are left out.
    kept = [i for i in range(len(pool)) if i % 10]
    assert asked["doc.question"].tolist() == [f"q{kept[int(row)]}" for row in asked["row"]]
    assert set(asked["doc.about"]) == {'{"idx": [1]}'}
    write_log(folder / "samples.dat", pool, doc=numbered)
    args += ["other.csv", "--text"]
    assert "The table has no column 'dog.question'" in refused(capsys, *args, "dog.question")
    assert "The column 'doc' has no field 'text'" in refused(capsys, *args, "doc.text")


def test_scores_and_labels_are_not_shown(folder, model, pool, capsys):
    pool.assign(size="9.50", list=[[1]] * len(pool)).to_parquet("pool.parquet", index=False)
    args = ["ask", model, "pool.parquet", "-n", "3", "--label", "y", "-o"]
    assert "Shown with them: note, id, size." in said(capsys, [*args, "ask.csv"])
    assert read()["size"].tolist() == ["9.50"] * 3


def test_no_cell_is_a_formula(folder, pool, capsys):
    names = dict(zip(CLASSES, ("=ant", "-bee", "c;@cow"), strict=True))
    copied = {"=ant": "'=ant", "-bee": "'-bee", "c;@cow": "c;'@cow"}
    notes = [list(FORMULAS)[i % len(FORMULAS)] for i in range(len(pool))]
    data = pool.drop(columns="note").rename(columns=names).assign(**{"=note": notes, "less": "-3"})
    data.to_parquet("pool.parquet", index=False)
    fit("pool.parquet")
    asked = ask(30, "--label", "y", pool="pool.parquet")
    assert asked["'=note"].tolist() == [FORMULAS[notes[int(row)]] for row in asked["row"]]
    assert set(asked["less"]) == {"-3"}  # a number
    assert set(asked["candidate_1"]) <= set(copied.values())
    # Answers as they are copied from the candidates, and as the classes are called.
    truth = np.array([names[y] for y in pool["y"]])
    fill([copied[name] if i % 2 else name for i, name in enumerate(truth)], 30)
    rows = asked["row"].astype(int).to_numpy()
    fitted = load("model")
    proba = data[fitted.classes_].to_numpy()
    check_judged(capsys, altnorm.judge(fitted, proba, rows, truth[rows]))
    notes = ask(2, "--label", "y", pool="pool.parquet")["'=note"].tolist()
    assert notes[:30] == asked["'=note"].tolist()
    assert "" not in notes


COSTS = np.array([[0.0, 1, 5, 0.4], [1, 0, 1, 0.4], [2, 2, 0, 0.4]])


def test_questions_about_costs_and_rows_left_to_a_person(folder, pool, capsys):
    labelled = pd.read_parquet("val.parquet")
    altnorm.Adjuster(("bias",), costs=COSTS).fit(labelled[CLASSES], labelled["y"]).save("model")
    asked = ask(50, "--label", "y", "--seed", "3")
    model, proba, truth = load("model"), pool[CLASSES], pool["y"].to_numpy()
    assert (asked[["candidate_1", "candidate_2"]] == "(left to a person)").any(axis=1).sum() > 10
    rows = altnorm.ask(model, proba, n=50, random_state=3)
    assert asked["row"].astype(int).tolist() == rows.tolist()
    for n in (0, 12, 50):
        fill(truth, n)
        judgement = altnorm.judge(model, proba, rows, truth[rows[:n]])
        check_judged(capsys, judgement)
    assert "cost saved per row" in str(judgement)
    fill(["neither"] * len(pool), 50)
    assert "right class must be named; " in refused(capsys, "judge", "model", "ask.csv")
    fill(["(left to a person)"] * len(pool), 50)
    error = refused(capsys, "judge", "model", "ask.csv")
    assert "A label must be one of 'ant', 'bee', 'cow', or" in error


def test_a_text_too_long_for_a_cell_is_cut(folder, model, pool, capsys):
    pool.assign(note="x" * 200_000).iloc[:300].to_parquet("pool.parquet", index=False)
    assert ask(2, pool="pool.parquet")["note"][0] == "x" * 32_000 + " ..."
    assert judged(capsys)["decision"] == "go on"


BALANCES = [
    ("ant,1\nbee,2\n", "must name each of the 3 classes once; 'cow' is missing"),
    ("ant,1\nbee,2\ncow,3\nfly,4\ngnu,5\n", "'fly', 'gnu' are unknown"),
    ("ant,1\nbee,2\ncow,3\ncow,4\n", "'cow' is there twice"),
    (
        "ant,1\nbee,-2\ncow,3\n",
        "of classes and numbers, 0 or greater, in UTF-8; one line is 'bee,-2'",
    ),
    ("class,share\nant\n", "one line is 'ant'"),
]


@pytest.mark.parametrize(("text", "message"), BALANCES)
def test_a_class_balance_that_cannot_be_read(folder, capsys, text, message):
    (folder / "balance.csv").write_text(text)
    arguments = ["tune", "val.parquet", "--no-labels", "--prior", "balance.csv", "-o", "model"]
    assert message in refused(capsys, *arguments)
