"""Cautions: each is raised by its cause, with its number; input that looks wrong is refused."""

import itertools
import re

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier

from altnorm import Adjuster, load
from altnorm.evidence.cautions import Labelled, hurt_classes, share_seen, sketch_rows
from altnorm.io.predictions import Predictions
from altnorm.report.evaluation import evaluate
from tests.problems import calibrated, planted

NAMES = np.array(["ant", "bee", "cat", "dog"])


def codes(fitted):
    return {caution.code for caution in fitted.verdict_.cautions}


def one(fitted, code):
    (caution,) = (c for c in fitted.verdict_.cautions if c.code == code)
    return caution


def bias(**settings):
    return Adjuster(("bias",), **settings)


def test_no_caution_without_a_cause():
    assert codes(bias().fit(*planted(600))) == set()


# Input that is probably wrong.


def sure(n=600, seed=0):
    """Four classes that are told apart well."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    return softmax(1.5 * (rng.normal(size=(n, 4)) + 2.5 * np.eye(4)[y]), axis=1), y


def in_order(columns):
    proba, y = sure()
    return proba[:, columns], y


def trained(seed=0, n=400):
    """A forest, on the rows that it was fitted to."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    x = rng.normal(size=(n, 6)) + np.eye(4, 6)[y]
    return RandomForestClassifier(50, random_state=seed).fit(x, y).predict_proba(x), y


def left_out(n=100, seed=0):
    """A classifier that learns class shares only, each row left out in turn."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 5)), rng.choice(4, n, p=[0.3, 0.3, 0.2, 0.2])
    shares = LogisticRegression(C=1e-3)
    return cross_val_predict(shares, x, y, cv=LeaveOneOut(), method="predict_proba"), y


def left_out_of_a_line(n=90, seed=0):
    """One feature, three classes: two thirds of what predictions hold is which row was left out."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    x = rng.normal(size=(n, 1)) + 0.7 * y[:, None]
    line = LogisticRegression()
    return cross_val_predict(line, x, y, cv=LeaveOneOut(), method="predict_proba"), y


def exchanged(n=600, seed=0):
    """Two of two columns exchanged, one class rare."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.05).astype(int)
    p = expit(-3 + 3 * y + rng.normal(size=n))
    return np.column_stack([p, 1 - p]), y


ONE_CLASS = planted(400)[0], np.full(400, 2)
SUSPICIOUS = {
    "swapped_columns": (in_order([1, 0, 2, 3]), "columns of ant and bee look exchanged"),
    "one_class": (ONE_CLASS, "All labels are 2: nothing can be learnt"),
    "trained_on": (trained(), "see these rows in training.* All 400 .* not seen"),
    "ranked_backwards": (left_out(), "Every column is lower where its class is"),
    "told_backwards": (left_out_of_a_line(), r"told from the predictions, .* -0\.[89]. with"),
}


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_input_that_is_probably_wrong_is_not_used(code):
    (proba, y), message = SUSPICIOUS[code]
    labels = y if code == "one_class" else NAMES[y]  # a single label does not name four columns
    fitted = bias().fit(proba, labels)
    caution = one(fitted, code)
    assert caution.serious
    assert re.search(message, str(caution))
    assert not fitted.verdict_.adopted
    assert fitted.verdict_.reason == "suspect_input"
    assert "the input is probably wrong" in str(fitted.verdict_)
    assert str(caution).rstrip(".")[1:] in str(fitted.verdict_)
    np.testing.assert_array_equal(fitted.transform(proba), proba)
    np.testing.assert_array_equal(fitted.predict(proba), fitted.classes_[proba.argmax(axis=1)])
    insisted = bias(insist=True).fit(proba, labels)
    assert insisted.verdict_.reason == "suspect_input"  # it goes on saying so
    assert not insisted.verdict_
    assert not np.array_equal(insisted.transform(proba), proba)


def test_rows_seen_in_training_are_recognised_whatever_their_number():
    for n in (400, 407, 414, 442):  # all but the first times 1/n add up to just below 1
        assert "trained_on" in codes(bias().fit(*trained(n=n)))


def test_decisions_without_evidence_are_applied_on_request():
    proba, y = calibrated(300, 1)
    careful, insisted = (Adjuster(insist=insist).fit(proba, y) for insist in (False, True))
    assert careful.verdict_.gates == insisted.verdict_.gates
    assert not careful.verdict_.adopted
    assert not insisted.verdict_.adopted
    assert insisted.verdict_.insisted
    assert not careful.verdict_.insisted
    assert "applied all the same, because of insist=True" in str(insisted.verdict_)
    assert "your decisions stay as they were" in str(careful.verdict_)
    np.testing.assert_array_equal(careful.predict(proba), proba.argmax(axis=1))
    assert not np.array_equal(insisted.predict(proba), proba.argmax(axis=1))


def test_the_columns_that_are_named_are_those_that_changed_places():
    proba, y = in_order([3, 2, 1, 0])
    text = str(one(bias().fit(proba, NAMES[y]), "swapped_columns"))
    assert re.search("^The columns of (.*) and 3 others .* of a row of \\1 and one of", text)


def test_exchanged_columns_of_a_rare_class_are_told():
    fitted = bias().fit(*exchanged())
    assert fitted.verdict_.reason == "suspect_input"


@pytest.mark.parametrize("order", [[1, 0, 2], [0, 2, 1], [1, 2, 0]])
@pytest.mark.parametrize("seed", range(3))
def test_exchanged_columns_of_rare_classes_among_others_are_told(order, seed):
    """Decisions are for the frequent class, under whatever name, and show little of the others."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.9, 0.05, 0.05])
    y = rng.choice(3, size=1500, p=shares)
    logits = rng.normal(size=(1500, 3)) + 2.5 * np.eye(3)[y] + np.log(shares)
    proba = softmax(2 * logits, axis=1)
    assert bias().fit(proba, y).verdict_.reason != "suspect_input"
    assert one(bias().fit(proba[:, order], y), "swapped_columns").value >= 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [75, 300])
def test_few_folds_are_not_taken_for_rows_left_out(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    x = rng.normal(size=(n, 1)) + 0.7 * y[:, None]
    proba = cross_val_predict(LogisticRegression(), x, y, method="predict_proba")
    assert bias().fit(proba, y).verdict_.reason != "suspect_input"


def test_an_honest_forest_is_not_accused():
    """Right nearly always, and not sure of itself: as forests are on rows they have not seen."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=1000)
    x = rng.normal(size=(1000, 20)) + 4 * np.eye(4, 20)[y]
    forest = RandomForestClassifier(50, max_features=2, random_state=0).fit(x[:500], y[:500])
    proba = forest.predict_proba(x[500:])
    assert 0.95 < (proba.argmax(axis=1) == y[500:]).mean() < 1
    assert proba.max(axis=1).mean() < 0.85
    fitted = Adjuster().fit(proba, y[500:])
    assert fitted.verdict_.reason != "suspect_input"
    assert fitted.calibration_.gain > 0.05


def test_all_columns_in_another_order_are_told():
    assert one(bias().fit(*in_order([3, 2, 1, 0])), "swapped_columns").value == 4


@pytest.mark.parametrize("make", [planted, calibrated, sure])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ordinary_input_is_not_suspected(make, seed):
    assert bias().fit(*make(300, seed)).verdict_.reason != "suspect_input"


@pytest.mark.parametrize("in_order", [np.arange(4), [2, 0, 3, 1]])
def test_the_beginning_of_a_file_sorted_by_class_is_refused(in_order):
    """A correction would take the other classes for ones that do not occur."""
    proba, y = planted(600)
    place = np.argsort(np.argsort(in_order)[y], kind="stable")
    cut = place[:250]
    fitted = bias().fit(proba[cut], y[cut], classes=range(4))
    assert one(fitted, "cut_by_class").value == 4 - np.unique(y[cut]).size > 0
    assert fitted.verdict_.reason == "suspect_input"
    np.testing.assert_array_equal(fitted.transform(proba), proba)
    assert bias(insist=True).fit(proba[cut], y[cut], classes=range(4)).verdict_.insisted


@pytest.mark.parametrize(("n", "n_cut"), [(60, None), (150, None), (2400, 1200)])
def test_a_sample_in_the_order_of_classes_may_lack_some_of_many(n, n_cut):
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(60, size=n))
    proba = softmax(3 * np.eye(60)[y] + rng.normal(size=(n, 60)), axis=1)
    assert 0 < np.unique(y[:n_cut]).size < 60
    fitted = bias(cv=2).fit(proba[:n_cut], y[:n_cut], classes=range(60))
    assert ("cut_by_class" in codes(fitted)) == (n_cut is not None)


def test_predictions_that_expect_too_much_of_rare_classes_are_no_cut():
    """A forest names classes that the sample lacks far more often than they occur."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), [130, 90, 50, 3, 7, 20])  # and two classes lack
    logits = 2 * np.eye(8)[y] + rng.normal(size=(300, 8)) + 1.5 * (np.arange(8) > 3)
    fitted = bias().fit(softmax(logits, axis=1), y, classes=range(8))
    assert fitted.verdict_.reason != "suspect_input"


def test_sorted_rows_of_all_classes_and_mixed_ones_of_some_are_not_suspected():
    proba, y = planted(600)
    by_class, of_two = np.argsort(y, kind="stable"), np.flatnonzero(y < 2)
    for rows in (by_class, of_two, np.append(by_class[:250], by_class[0])):
        fitted = bias().fit(proba[rows], y[rows], classes=range(4))
        assert "cut_by_class" not in codes(fitted)


@pytest.mark.parametrize(("n", "suspected"), [(8, False), (60, True)])
def test_few_rows_are_sorted_by_chance(n, suspected):
    proba, y = planted(600)
    first, second = (np.flatnonzero(y == j)[: n // 2] for j in (0, 1))
    rows = np.append(first, second)
    fitted = bias(cv=2).fit(proba[rows], y[rows], classes=range(4))
    assert ("cut_by_class" in codes(fitted)) == suspected


def test_one_class_that_is_taken_for_another_is_a_mistake_and_no_exchange():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=600)
    seen = np.where((y == 2) & (rng.random(600) < 0.9), 1, y)
    proba = softmax(rng.normal(size=(600, 4)) + 3 * np.eye(4)[seen], axis=1)
    assert "swapped_columns" not in codes(bias().fit(proba, y))


@pytest.mark.parametrize(("n", "exchanged"), [(9, False), (12, True)])
def test_a_few_rows_of_two_classes_may_all_be_taken_for_each_other(n, exchanged):
    proba, y = in_order([1, 0, 2, 3])
    few = [np.flatnonzero(y == j)[:n] for j in (0, 1)]
    rows = np.sort(np.concatenate([*few, np.flatnonzero(y > 1)]))
    assert ("swapped_columns" in codes(bias().fit(proba[rows], y[rows]))) == exchanged


# What the labels and rows are like.


def test_classes_that_the_labels_never_show():
    proba, y = planted(600)
    some = y < 2
    caution = one(bias().fit(proba[some], y[some]), "unseen_classes")
    assert caution.value == 2
    assert "never show 2 of 4 classes" in str(caution)


def test_a_classifier_worse_than_the_most_frequent_class():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.1).astype(int)
    p = rng.uniform(0.3, 0.72, 400) + 0.1 * y
    caution = one(bias().fit(np.stack([1 - p, p], axis=1), y), "below_majority")
    assert caution.value == pytest.approx(((p > 0.5) == y).mean())


def test_copies_of_rows():
    proba, y = planted(100)
    copies, labels = np.tile(proba, (5, 1)), np.tile(y, 5)
    caution = one(bias().fit(copies, labels), "duplicates")
    assert caution.value == 400
    assert "equal rows may be different cases" in str(caution)
    assert "duplicates" not in codes(bias().fit(copies, labels, groups=np.tile(np.arange(100), 5)))


def test_sure_rows_of_a_class_are_no_copies():
    y = np.arange(400) % 4
    assert "duplicates" not in codes(bias(insist=True).fit(np.eye(4)[y], y))


def test_too_few_rows_for_a_gain_of_this_size():
    proba, y = planted(200)
    verdict = bias(significance=1e-100).fit(proba, y).verdict_
    assert verdict.reason == "not_significant"
    (caution,) = (c for c in verdict.cautions if c.code == "too_few_rows")
    assert caution.value >= 200
    assert "there are 200" in str(caution)


def in_pairs(n, seed=0):
    """Rows in pairs that follow each other and nearly agree, sorted by class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.sort(rng.integers(4, size=n // 2)), 2)
    z = np.repeat(rng.normal(size=(n // 2, 4)), 2, axis=0) + 0.1 * rng.normal(size=(n, 4))
    return softmax(2 * z + 2 * np.eye(4)[y], axis=1), y


def test_rows_that_follow_each_other_and_are_alike():
    proba, y = in_pairs(600)
    caution = one(bias().fit(proba, y), "neighbours_alike")
    # Every second pair of neighbours belongs together.
    assert caution.value == pytest.approx(0.5, abs=0.1)
    assert "groups" in str(caution)
    assert "neighbours_alike" not in codes(bias().fit(proba, y, groups=np.arange(600) // 2))


def test_a_file_sorted_by_class_is_no_cause():
    proba, y = planted(600)
    order = np.argsort(y, kind="stable")
    assert codes(bias().fit(proba[order], y[order])) == set()


def test_a_file_of_which_nobody_can_see_whether_it_is_sorted():
    """By a hierarchy of classes, or its persons have two classes each."""
    proba, y = planted(600)
    order = np.argsort(y // 2, kind="stable")
    fitted = bias().fit(proba[order], y[order])
    assert codes(fitted) == {"classes_in_places"}
    assert fitted.verdict_.adopted
    assert one(fitted, "classes_in_places").value > 100  # runs of a class
    assert codes(bias().fit(proba[order], y[order], groups=np.arange(600))) == set()


# What is gained at the expense of something else.


def rare_class(n=3000, seed=0):
    """Class 2 is rare and the classifier does not know: accuracy wants it named less often."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.49, 0.49, 0.02])
    z = 0.8 * np.eye(3)[y] + rng.normal(size=(n, 3))
    return softmax(z, axis=1), y


def recalls(decided, y, m):
    return np.array([(decided[y == c] == c).mean() for c in range(m)])


def test_a_class_that_is_given_up():
    proba, y = rare_class()
    fitted = bias().fit(proba, NAMES[y])
    assert fitted.verdict_.adopted
    caution = one(fitted, "other_purpose")
    assert caution.serious
    fresh, truth = rare_class(20_000, seed=1)
    before, after = (
        recalls(d, truth, 3) for d in (fresh.argmax(axis=1), fitted.predict_proba(fresh).argmax(1))
    )
    assert caution.value == pytest.approx(after.mean() - before.mean(), abs=0.06)
    balanced = bias(scoring="balanced_accuracy").fit(proba, NAMES[y])
    promised = float(str(caution).split("a balanced accuracy of ")[1].split("%")[0]) / 100
    assert promised == pytest.approx(balanced.score(fresh, NAMES[truth]), abs=0.05)
    assert str(caution).startswith("Class cat is ")
    assert "other_purpose" not in codes(balanced)
    assert "; but class cat is " in str(fitted.verdict_)


def test_another_goal_without_a_gain_is_told_to_keep_decisions():
    y = np.repeat([0, 1, 2], [80, 10, 10])
    rows = Labelled(np.eye(3)[y], y, np.ones(100), NAMES[:3])
    nothing, half = np.zeros(100, dtype=int), np.where(np.arange(100) % 2, y, 0)
    for before, aimed in ((y, half), (half, y)):
        text = str(hurt_classes(rows, before, nothing, aimed))
        assert text.startswith(
            "Classes bee, cat are never predicted any more and balanced accuracy"
        )
        kept = "a balanced accuracy of 100.0% instead of 33.3%"
        assert kept in text
        assert text.endswith("at an accuracy of 100.0%.")


def test_no_other_goal_is_advised_where_it_is_worse():
    y = np.repeat([0, 1, 2], [40, 40, 20])
    rows = Labelled(np.eye(3)[y], y, np.ones(100), NAMES[:3])
    some_of_each = np.where(np.arange(100) % 4 == 0, y, (y + 1) % 3)
    without_cat = np.where(y == 2, 0, y)
    text = str(hurt_classes(rows, some_of_each, without_cat, some_of_each))
    assert text == "Class cat is never predicted any more."


# Rows that resemble each other.


def near_copies(n_cases, n_copies, noise, seed=0):
    """Cases with labels that follow the predictions, each often with a little noise, shuffled."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n_cases, 6))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    rows = rng.permutation(np.repeat(np.arange(n_cases), n_copies))
    return softmax(z[rows] + noise * rng.normal(size=(len(rows), 6)), axis=1), y[rows]


@pytest.mark.parametrize(
    ("n_cases", "n_copies", "noise"), [(60, 6, 0.02), (30, 40, 0.1), (30, 40, 0.3), (100, 12, 0.5)]
)
def test_nothing_is_learnt_from_near_copies(n_cases, n_copies, noise):
    proba, y = near_copies(n_cases, n_copies, noise)
    fitted = Adjuster().fit(proba, y)
    assert fitted.verdict_.gates.route  # the evidence itself is fooled
    assert not fitted.verdict_.adopted
    assert fitted.verdict_.reason == "near_copies"
    assert one(fitted, "likeness").serious
    assert "near copies" in str(fitted.verdict_)
    np.testing.assert_array_equal(fitted.transform(proba), proba)


def test_probabilities_stay_where_copies_change_no_decision():
    proba, y = near_copies(30, 40, 0.1)
    fitted = Adjuster(scoring="accuracy", families=("bias",), significance=1e-12).fit(proba, y)
    assert fitted.verdict_.reason != "near_copies"  # there is no gain to be refused
    assert one(fitted, "likeness").value == 40
    np.testing.assert_array_equal(fitted.transform(proba), proba)
    cases = np.unique(proba.round(1), axis=0, return_inverse=True)[1]
    told = Adjuster(families=("bias",)).fit(proba, y, groups=cases)
    assert "likeness" not in codes(told)


def in_blocks(seed=0, n_cases=60, n_copies=5):
    """Noisy predictions of the same cases, one block after another; nothing can be learnt."""
    rng = np.random.default_rng(seed)
    z, y = 2 * rng.normal(size=(n_cases, 6)), rng.integers(6, size=n_cases)
    noise = rng.normal(size=(n_copies * n_cases, 6))
    return softmax(np.tile(z, (n_copies, 1)) + 0.4 * noise, axis=1), np.tile(y, n_copies)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_copies", "n_lacking"), [(5, 0), (5, 17), (2, 11)])
def test_copies_in_blocks_are_no_evidence(n_copies, n_lacking, seed):
    """All blocks are whole, or the file ends within the last one."""
    proba, y = in_blocks(seed, 60 if n_copies > 2 else 300, n_copies)
    fitted = Adjuster().fit(proba[: len(y) - n_lacking], y[: len(y) - n_lacking])
    assert not fitted.verdict_.adopted
    assert "one block after another" in str(one(fitted, "likeness"))
    if fitted.verdict_.gates.route:  # the evidence itself is fooled
        assert fitted.verdict_.reason == "near_copies"


@pytest.mark.parametrize(("seed", "refused"), [(0, True), (3, True), (1, False)])
def test_a_gain_that_rests_on_pairs_of_near_copies_is_told(seed, refused):
    """They leave no gap between neighbours. Seed 1: of 22 points 1.7 are left."""
    rng = np.random.default_rng(seed)
    y = np.repeat(rng.integers(10, size=300), 2)
    z = 1.5 * rng.normal(size=(300, 10)) + 1.5 * np.eye(10)[y[::2]]
    proba = softmax(np.repeat(z, 2, axis=0) + 0.3 * rng.normal(size=(600, 10)), axis=1)
    shuffled = rng.permutation(600)
    fitted = Adjuster().fit(proba[shuffled], y[shuffled])
    assert fitted.verdict_.gates.route  # the evidence itself is fooled
    assert "Most of the gain is gone" in str(one(fitted, "likeness"))
    assert fitted.verdict_.adopted != refused


def test_rows_that_take_few_values_are_no_copies():
    """Five neighbours vote: rows are equal without being of the same case."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    p = np.where(np.arange(3) == y[:, None], 0.5, 0.25)
    votes = np.stack([rng.multinomial(5, row) for row in p])
    votes[:, 0] += 2  # favours class 0
    fitted = bias().fit(votes / 7, y)
    assert fitted.verdict_.adopted


@pytest.mark.parametrize(
    "classifier",
    [RandomForestClassifier(10, random_state=0), KNeighborsClassifier(5), BernoulliNB()],
    ids=str,
)
def test_honest_classifiers_are_not_taken_for_copies(classifier):
    x, y = make_classification(3000, 20, n_informative=6, n_classes=5, flip_y=0.1, random_state=0)
    proba = classifier.fit(x[:1000], y[:1000]).predict_proba(x[1000:])
    assert Adjuster().fit(proba, y[1000:]).verdict_.reason != "near_copies"


@pytest.mark.parametrize("seed", [25, 27, 31, 35])
def test_few_rows_of_two_classes_are_no_copies(seed):
    """Naive Bayes is all but sure of either class, and most rows of one are near each other."""
    rng = np.random.default_rng(seed)
    y, sure, u = (rng.random(60) < 0.4).astype(int), rng.random(60) < 0.8, rng.random(60)
    log_odds = np.where(sure, np.where(y, 8 + 15 * u**2, -3 - 2 * u), np.where(y, -2, 4) * u)
    fitted = bias().fit(np.column_stack([expit(-log_odds), expit(log_odds)]), y)
    assert not any("noisy copies" in caution.text for caution in fitted.verdict_.cautions)
    assert fitted.family_ is not None


# What labels cannot show.


def test_a_gain_that_fades_along_the_file_is_told():
    proba, y = calibrated(1200)
    biased = np.where(np.arange(1200)[:, None] < 600, proba * [9, 1, 1], proba)
    fitted = bias().fit(biased / biased.sum(axis=1, keepdims=True), y)
    assert fitted.verdict_.adopted
    assert one(fitted, "fading").serious
    assert "fading" not in codes(bias().fit(*planted(1200)))


def test_a_gain_whose_log_loss_fades_along_the_file_is_told():
    """Where decisions are too few to show it."""
    rng, told = np.random.default_rng(0), 0
    for _ in range(12):
        logits = 1.5 * rng.normal(size=(1000, 4))
        y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        logits[:500, 0] -= 2
        proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        fitted = bias().fit(proba, y)
        told += fitted.verdict_.adopted
        assert not fitted.verdict_.adopted or one(fitted, "fading").serious
    assert told


def test_labels_of_unsure_rows_only_are_told():
    proba, y = planted(900)
    unsure = proba.max(axis=1) < np.quantile(proba.max(axis=1), 0.3)
    caution = one(bias().fit(proba, np.where(unsure, y, np.nan)), "unlike_labelled")
    assert "Rows with labels are less sure than those without" in str(caution)
    at_random = np.random.default_rng(5).random(900) < 0.3
    assert "unlike_labelled" not in codes(bias().fit(proba, np.where(at_random, y, np.nan)))


def test_weights_that_leave_little_of_the_evidence_are_told():
    proba, y = planted(600)
    weight = np.random.default_rng(0).lognormal(sigma=3, size=600)
    caution = one(bias().fit(proba, y, sample_weight=weight), "uneven_weights")
    assert caution.value == pytest.approx(weight.sum() ** 2 / (weight @ weight))
    even = np.random.default_rng(0).uniform(0.5, 2, 600)
    assert "uneven_weights" not in codes(bias().fit(proba, y, sample_weight=even))


# Rows that were there before.


def draw(n, m=5, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(m), size=n)


def test_rows_that_look_alike_by_chance_prove_nothing():
    coarse = np.round(draw(2000, m=2), 2)
    assert sketch_rows(coarse).size == 0
    sure = np.eye(3)[np.random.default_rng(0).integers(3, size=500)]
    assert sketch_rows(sure).size == 0
    assert share_seen(sketch_rows(draw(50)), sure[:, [0, 1, 2, 0, 1]]) == 0


@pytest.mark.filterwarnings("ignore::altnorm._base.errors.InputWarning")  # rows of rounded numbers
@pytest.mark.parametrize("decimals", [3, 4, 16])
def test_evaluation_on_the_rows_of_tuning_says_so(tmp_path, decimals):
    """Also in another order, in fewer digits, and of a model file."""
    proba, y = planted(600)
    tuned = bias().fit(proba[:400], y[:400])
    tuned.save(tmp_path / "m")
    rows = proba.round(decimals).astype(np.float32 if decimals == 16 else float)
    parts = {1.0: np.arange(400)[::-1], 0.5: np.arange(200, 600), 0.0: np.arange(400, 600)}
    for model, (share, part) in itertools.product((tuned, load(tmp_path / "m")), parts.items()):
        cautions = evaluate(model, Predictions(rows[part], np.arange(4), y[part])).verdict.cautions
        assert [each.code for each in cautions] == ["tuned_on_these_rows"] * (share > 0)
        if share:
            assert cautions[0].value == pytest.approx(share, abs=0.2)
            assert "too good" in cautions[0].text
