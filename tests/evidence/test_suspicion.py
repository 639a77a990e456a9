"""Input that looks wrong is refused, and honest input is not."""

import itertools
import math
import re

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from altnorm import Adjuster
from altnorm.evidence.suspicion import Labelled, _lowest_correlation, find_suspicion
from tests.problems import calibrated, planted
from tests.verdicts import NAMES, bias, codes, one


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


def on_a_line(n=90, seed=0, cv=None):
    """One feature, three classes: of rows left out singly, it is mostly which one was left out."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    x = rng.normal(size=(n, 1)) + 0.7 * y[:, None]
    return cross_val_predict(LogisticRegression(), x, y, cv=cv, method="predict_proba"), y


def exchanged(n=600, seed=0):
    """Two of two columns exchanged, one class rare."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.05).astype(int)
    p = expit(-3 + 3 * y + rng.normal(size=n))
    return np.column_stack([p, 1 - p]), y


ONE_CLASS = planted(400)[0], np.full(400, 2)
SUSPICIOUS = {
    "swapped_columns": (
        in_order([1, 0, 2, 3]),
        r"columns of ant and bee look exchanged.* like ant in (9\d|100)% of cases",
    ),
    "swapped_columns of a rare class": (exchanged(), "columns of ant and bee look exchanged"),
    "one_class": (ONE_CLASS, "All labels are 2: nothing can be learnt"),
    "trained_on": (trained(), "see these rows in training.* All 400 .* not seen"),
    "ranked_backwards": (left_out(), "Every column is lower where its class is"),
    "told_backwards": (
        on_a_line(cv=LeaveOneOut()),
        r"told from the predictions, .* -0\.[89]. with",
    ),
}


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_input_that_is_probably_wrong_is_not_used(code):
    ((proba, y), message), code = SUSPICIOUS[code], code.split()[0]
    labels = y if code == "one_class" else NAMES[y]  # a single label does not name four columns
    fitted = bias().fit(proba, labels)
    caution = one(fitted, code)
    assert caution.serious
    assert re.search(message, str(caution))
    assert not fitted.verdict_.adopted
    assert fitted.verdict_.reason == "suspect_input"
    assert fitted.verdict_.gates[0].name == "input"
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
    caution = one(bias().fit(proba, NAMES[y]), "swapped_columns")
    assert caution.value == 4
    assert re.search("^The columns of (.*) and 3 others .* of a row of \\1 and one", str(caution))


def test_exchanged_columns_of_zeros_and_ones_are_told():
    proba, y = sure()
    hard = np.eye(4)[proba.argmax(axis=1)]
    assert one(bias().fit(hard[:, [1, 0, 2, 3]], y), "swapped_columns").value == 2


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


def test_two_classes_that_are_told_backwards_a_little_are_a_mistake():
    """A classifier may err so, as rows that are left out leave clearer traces."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=2000)
    z = rng.normal(size=(2000, 4)) + np.array([2.0, 2.0, -0.6, -0.6]) * np.eye(4)[y]
    is_honest(softmax(z, axis=1), y, correlation=-0.2)


def test_two_rows_of_a_rare_class_show_no_direction():
    rng = np.random.default_rng(0)
    y = np.append(rng.integers(3, size=98), [3, 3])
    z = rng.normal(size=(100, 4)) + 2 * np.eye(4)[y]
    z[:, 3] = z[:, :3].mean(axis=1) - np.where(y == 3, 9, 0) + 0.01 * rng.normal(size=100)
    is_honest(softmax(z, axis=1), y, correlation=-0.7)


def suspected(proba, y, weight=1.0):
    """Code of what is suspected, which is serious, or None."""
    names = NAMES[: proba.shape[1]]
    caution = find_suspicion(Labelled(proba, y, weight * np.ones(len(y)), names))
    assert caution is None or caution.serious
    return caution and caution.code


def is_honest(proba, y, correlation):
    assert _lowest_correlation(proba, y)[0] < correlation
    assert suspected(proba, y) is None


def expecting_rare_classes(n, seed):
    """A forest names classes that the sample lacks far more often than they occur."""
    y = np.repeat(np.arange(6), [130, 90, 50, 3, 7, 20])  # and two classes lack
    logits = 2 * np.eye(8)[y] + np.random.default_rng(seed).normal(size=(n, 8))
    return softmax(logits + 1.5 * (np.arange(8) > 3), axis=1), y


def lacking_a_rare_class(n, seed):
    """In the order of the classes; of the third one less than a row is expected."""
    y = np.repeat([0, 1], n // 2)
    logits = 3 * np.eye(3)[y] + np.random.default_rng(seed).normal(size=(n, 3))
    return softmax(logits - [0, 0, 6], axis=1), y


HONEST = [
    *itertools.product([planted, calibrated, sure], [300], range(3)),
    *itertools.product([on_a_line], [75, 300], range(5)),
    (expecting_rare_classes, 300, 0),
    (lacking_a_rare_class, 300, 0),
]


@pytest.mark.parametrize(("make", "n", "seed"), HONEST)
def test_ordinary_input_is_not_suspected(make, n, seed):
    proba, y = make(n, seed)
    fitted = bias().fit(proba, y, classes=np.arange(proba.shape[1]))
    assert fitted.verdict_.reason != "suspect_input"


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


def test_sorted_rows_of_all_classes_and_mixed_ones_of_some_are_not_suspected():
    proba, y = planted(600)
    by_class, of_two = np.argsort(y, kind="stable"), np.flatnonzero(y < 2)
    for rows in (by_class, of_two, np.append(by_class[:250], by_class[0])):
        fitted = bias().fit(proba[rows], y[rows], classes=range(4))
        assert "cut_by_class" not in codes(fitted)


@pytest.mark.parametrize(
    ("counts", "expected", "is_cut"),
    [
        # Of all orders of their rows two keep the classes together: of 31, 1,716 and 3,432.
        ((30, 1), 6.0, False),
        ((7, 6), 6.0, False),
        ((7, 7), 6.0, True),
        # A third class that is no more frequent is lacking with a probability of exp(-6), or -7.
        ((6, 20), 20.0, False),
        ((7, 20), 20.0, True),
        # Of x expected rows none comes with q = exp(-x): x is x q and five x sqrt(q (1 - q)).
        ((30, 30), math.log(26) - 0.05, False),
        ((30, 30), math.log(26) + 0.05, True),
    ],
)
def test_two_of_three_classes_one_after_the_other_may_be_chance(counts, expected, is_cut):
    y, share = np.repeat([0, 1], counts), expected / sum(counts)
    proba = np.tile([(1 - share) / 2, (1 - share) / 2, share], (y.size, 1))
    assert (suspected(proba, y) == "cut_by_class") == is_cut


@pytest.mark.parametrize(("above", "code"), [(21, "ranked_backwards"), (22, None)])
def test_two_columns_may_be_lower_where_their_class_is_by_chance(above, code):
    """Of 10 rows of each class: at -3.09 in all, each of the two that say the same at -2.185."""
    ranks = np.arange(10) + np.r_[np.zeros(7, int), above - 20, 10, 10]
    p = 0.6 + 1e-3 * np.append(ranks, np.setdiff1d(np.arange(20), ranks))
    assert suspected(np.column_stack([p, 1 - p]), np.arange(20) // 10) == code


def test_one_column_that_is_higher_where_its_class_is_clears_the_others_of_their_order():
    proba, y = left_out()
    proba[:, 0] = 0.3 + 1e-3 * (y == 0)
    assert suspected(proba, y) != "ranked_backwards"


@pytest.mark.parametrize(
    ("p", "n", "of_mistake", "code"),
    [
        (0.945, 100, None, "trained_on"),  # 5.5 mistakes are expected
        (0.955, 100, None, None),
        (0.9, 99, None, None),
        (0.9, 200, 1.0, None),
        (0.9, 200, 0.0, "trained_on"),
    ],
)
def test_a_hundred_rows_without_a_mistake_were_seen_if_five_are_expected(p, n, of_mistake, code):
    y, weight = np.arange(n) % 2, np.ones(n)
    proba = np.where(np.eye(2)[y] == 1, p, 1 - p)
    if of_mistake is not None:
        y[7], weight[7] = 0, of_mistake
    assert suspected(proba, y, weight) == code


def test_one_class_that_is_taken_for_another_is_a_mistake_and_no_exchange():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=600)
    seen = np.where((y == 2) & (rng.random(600) < 0.9), 1, y)
    proba = softmax(rng.normal(size=(600, 4)) + 3 * np.eye(4)[seen], axis=1)
    assert "swapped_columns" not in codes(bias().fit(proba, y))


def test_two_classes_that_are_taken_for_others_are_no_exchange_of_three():
    """The columns would be right in a circle but for the last class, which is right as it is."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=600, p=[0.4, 0.4, 0.2])
    logits = rng.normal(size=(600, 3)) + np.array([[0, 5, 0], [0, 0, 6], [0, 0, 3]])[y]
    assert "swapped_columns" not in codes(bias().fit(softmax(logits, axis=1), y))
    circle = rng.normal(size=(600, 3)) + np.array([[0, 5, 0], [0, 0, 5], [5, 0, 0]])[y]
    assert one(bias().fit(softmax(circle, axis=1), y), "swapped_columns").value == 3


@pytest.mark.parametrize(("n", "exchanged"), [(9, False), (12, True)])
def test_a_few_rows_of_two_classes_may_all_be_taken_for_each_other(n, exchanged):
    proba, y = in_order([1, 0, 2, 3])
    few = [np.flatnonzero(y == j)[:n] for j in (0, 1)]
    rows = np.sort(np.concatenate([*few, np.flatnonzero(y > 1)]))
    assert ("swapped_columns" in codes(bias().fit(proba[rows], y[rows]))) == exchanged
