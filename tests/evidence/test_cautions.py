"""Cautions: each is raised by its cause, with its number."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier

from altnorm import Adjuster, load
from altnorm.evidence.cautions import fading_gain, hurt_classes
from altnorm.evidence.suspicion import Labelled
from altnorm.io.predictions import Predictions
from altnorm.report.evaluation import evaluate
from tests.problems import calibrated, planted
from tests.verdicts import NAMES, bias, codes, one


def test_no_caution_without_a_cause():
    """That a file is sorted by class is none."""
    proba, y = planted(600)
    for rows in (slice(None), np.argsort(y, kind="stable")):
        assert codes(bias().fit(proba[rows], y[rows])) == set()


# What the labels and rows are like.


def of_two_classes():
    proba, y = planted(600)
    return proba[y < 2], y[y < 2]


def below_majority():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.1).astype(int)
    p = rng.uniform(0.3, 0.72, 400) + 0.1 * y
    return np.stack([1 - p, p], axis=1), y


def copied():
    proba, y = planted(100)
    return np.tile(proba, (5, 1)), np.tile(y, 5)


def in_pairs(n=600, seed=0):
    """Rows in pairs that follow each other and nearly agree, sorted by class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.sort(rng.integers(4, size=n // 2)), 2)
    z = np.repeat(rng.normal(size=(n // 2, 4)), 2, axis=0) + 0.1 * rng.normal(size=(n, 4))
    return softmax(2 * z + 2 * np.eye(4)[y], axis=1), y


@pytest.mark.parametrize(
    ("code", "rows", "value", "message"),
    [
        ("unseen_classes", of_two_classes(), 2, "never show 2 of 4 classes"),
        ("below_majority", below_majority(), pytest.approx(0.515), "would be right in 89.5%"),
        ("duplicates", copied(), 400, "equal rows may be different cases"),
        # Every second pair of neighbours belongs together.
        ("neighbours_alike", in_pairs(), pytest.approx(0.5, abs=0.1), "pass groups that say which"),
    ],
)
def test_what_the_labels_and_rows_are_like(code, rows, value, message):
    caution = one(bias().fit(*rows), code)
    assert caution.value == value
    assert message in str(caution)


def test_an_f_score_of_the_frequent_class_names_it():
    p, y = below_majority()
    names = np.array(["fraud", "ok"])
    caution = one(bias(scoring="f1").fit(p[:, ::-1], names[1 - y]), "frequent_positive")
    assert str(caution).startswith("The F-score is that of class ok, the second of the two and ")
    assert caution.value == pytest.approx(0.895, abs=0.01)
    for fitted in (
        bias(scoring="f1").fit(p, names[1 - y], classes=names[::-1]),
        bias(scoring="f1_macro").fit(p[:, ::-1], names[1 - y]),
        bias(scoring="f1").fit(p[:, ::-1], 1 - y),
    ):
        assert "frequent_positive" not in codes(fitted)


def test_groups_say_which_rows_belong_together():
    assert "duplicates" not in codes(bias().fit(*copied(), groups=np.tile(np.arange(100), 5)))
    assert "neighbours_alike" not in codes(bias().fit(*in_pairs(), groups=np.arange(600) // 2))


def test_sure_rows_of_a_class_are_no_copies():
    y = np.arange(400) % 4
    assert "duplicates" not in codes(bias(insist=True).fit(np.eye(4)[y], y))


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


def test_a_class_that_is_given_up():
    proba, y = rare_class()
    fitted = bias().fit(proba, NAMES[y])
    assert fitted.verdict_.adopted
    caution = one(fitted, "other_purpose")
    assert caution.serious
    fresh, truth = rare_class(20_000, seed=1)
    before, after = (
        balanced_accuracy_score(truth, proba.argmax(axis=1))
        for proba in (fresh, fitted.predict_proba(fresh))
    )
    assert caution.value == pytest.approx(after - before, abs=0.06)
    balanced = bias(scoring="balanced_accuracy").fit(proba, NAMES[y])
    promised = float(str(caution).split("a balanced accuracy of ")[1].split("%")[0]) / 100
    assert promised == pytest.approx(balanced.score(fresh, NAMES[truth]), abs=0.05)
    assert str(caution).startswith("Class cat is ")
    assert "other_purpose" not in codes(balanced)
    assert "; but class cat is " in str(fitted.verdict_)


def words_of_another_goal(y, before, after, aimed):
    rows = Labelled(np.eye(3)[y], y, np.ones(100), NAMES[:3])
    return str(hurt_classes(rows, before, after, aimed))


def test_another_goal_without_a_gain_is_told_to_keep_decisions():
    y = np.repeat([0, 1, 2], [80, 10, 10])
    nothing, half = np.zeros(100, dtype=int), np.where(np.arange(100) % 2, y, 0)
    start = "Classes bee, cat are never predicted any more and balanced accuracy"
    for before, aimed in ((y, half), (half, y)):
        text = words_of_another_goal(y, before, nothing, aimed)
        assert text.startswith(start)
        assert "a balanced accuracy of 100.0% instead of 33.3%" in text
        assert text.endswith("at an accuracy of 100.0%.")


def test_no_other_goal_is_advised_where_it_is_worse():
    y = np.repeat([0, 1, 2], [40, 40, 20])
    some_of_each, without_cat = np.where(np.arange(100) % 4, (y + 1) % 3, y), np.where(y == 2, 0, y)
    text = words_of_another_goal(y, some_of_each, without_cat, some_of_each)
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
    assert fitted.verdict_.gates[-1].name == "likeness"
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
    assert "likeness" not in codes(bias().fit(proba, y, groups=cases))


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


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_a_gain_that_rests_on_pairs_of_near_copies_is_refused(seed):
    """They leave no gap between neighbours. Seed 1: of 22 points 1.7 are left."""
    rng = np.random.default_rng(seed)
    y = np.repeat(rng.integers(10, size=300), 2)
    z = 1.5 * rng.normal(size=(300, 10)) + 1.5 * np.eye(10)[y[::2]]
    proba = softmax(np.repeat(z, 2, axis=0) + 0.3 * rng.normal(size=(600, 10)), axis=1)
    shuffled = rng.permutation(600)
    fitted = Adjuster().fit(proba[shuffled], y[shuffled])
    assert fitted.verdict_.gates.route  # the evidence itself is fooled
    assert "Most of the gain is gone" in str(one(fitted, "likeness"))
    assert fitted.verdict_.reason == "near_copies"


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
    rng, n_adopted = np.random.default_rng(0), 0
    for _ in range(12):
        logits = 1.5 * rng.normal(size=(1000, 4))
        y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        logits[:500, 0] -= 2
        fitted = bias(input="logits").fit(logits, y)
        n_adopted += fitted.verdict_.adopted
        assert not fitted.verdict_.adopted or one(fitted, "fading").serious
    assert n_adopted


def drifting(seed, at_end):
    """Rows of ten classes: a bias of 2 against four of them that is `at_end` by the last row."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(1000, 10))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    logits[:, :4] -= np.linspace(2, at_end, 1000)[:, None]
    return softmax(logits, axis=1), y


def test_a_gain_that_shrinks_little_by_little_is_told():
    """In the second half as a whole there is still some."""
    fading, steady = (
        [bias().fit(*drifting(seed, at_end)) for seed in range(12)] for at_end in (0, 2)
    )
    adopted = [fitted for fitted in fading if fitted.verdict_.adopted]
    assert len(adopted) >= 3
    assert all("at its end there is none" in one(fitted, "fading").text for fitted in adopted)
    assert all(one(fitted, "fading").serious for fitted in adopted)
    assert all(fitted.verdict_.adopted for fitted in steady)
    assert not any("fading" in codes(fitted) for fitted in steady)


def shrinking(n=1000, *, to, noise=1.0, seed=0):
    """What rows add to a gain that shrinks from 1 at the first row."""
    return np.linspace(1, to, n) + noise * np.random.default_rng(seed).normal(size=n)


def told(rows, weight=None, blocks=None):
    weight = np.ones(rows.size) if weight is None else weight
    return fading_gain(rows, weight, np.arange(rows.size) if blocks is None else blocks)


def test_a_gain_must_be_gone_at_the_end_and_shrink_clearly():
    assert told(shrinking(to=-0.3)).value > 10  # standard errors
    assert told(shrinking(to=0.5)) is None
    assert told(shrinking(40, to=-0.3, noise=10.0)) is None


def test_weights_that_fall_along_the_file_are_no_fading():
    weight = np.geomspace(1, 1e-3, 1000)
    steady = weight * shrinking(to=1.0)
    assert told(steady)  # as if rows weighed the same
    assert told(steady, weight) is None
    assert told(weight * shrinking(to=-0.3), weight)


def test_rows_without_weight_are_no_end_of_the_file():
    weight = np.repeat([1.0, 0.0], 500)
    assert told(weight * shrinking(to=0.3), weight) is None
    assert told(weight * shrinking(to=-1.5), weight)


def test_rows_that_share_evenly_are_one_observation():
    """As with scores that can only be called: each block is told by its sum alone."""
    blocks = np.repeat(np.arange(20), 15)
    n_told = [0, 0]
    for seed in range(200):
        rows = np.random.default_rng(seed).normal(0.5, 1, 20)[blocks]  # no trend
        n_told[0] += told(rows) is not None
        n_told[1] += told(rows, blocks=blocks) is not None
    assert n_told[1] <= min(n_told[0] / 2, 10)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_show_no_fading(n):
    assert told(np.linspace(1, -1, n)) is None
    assert told(np.eye(n)[0], np.eye(n)[0]) is None  # all the weight is that of one


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
