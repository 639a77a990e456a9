"""Cautions: each is raised by its cause, with its number, and not without."""

import numpy as np
import pytest
from scipy.special import softmax

from altnorm import Adjuster
from tests.problems import planted


def codes(fitted):
    return {caution.code for caution in fitted.verdict_.cautions}


def test_no_caution_without_a_cause():
    assert codes(Adjuster(("bias",)).fit(*planted(800))) == set()


def test_classes_that_the_labels_never_show():
    proba, y = planted(800)
    some = y < 2
    fitted = Adjuster(("alternating", "bias")).fit(proba[some], y[some])
    assert "unseen_classes" in codes(fitted)
    (caution,) = (c for c in fitted.verdict_.cautions if c.code == "unseen_classes")
    assert caution.value == 2
    assert "never show 2 of 4 classes" in str(caution)


def test_columns_in_the_wrong_order():
    proba, y = planted(600)
    assert "below_majority" in codes(Adjuster(("bias",)).fit(proba[:, ::-1], y))


def test_copies_of_rows():
    proba, y = planted(100)
    assert "duplicates" in codes(Adjuster(("bias",)).fit(np.tile(proba, (5, 1)), np.tile(y, 5)))


def test_a_gain_at_the_expense_of_rare_classes():
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.1).astype(int)
    z = 1.2 * rng.normal(size=3000) + 1.5 * y
    p = 1 / (1 + np.exp(-(z + 0.2)))
    fitted = Adjuster().fit(np.stack([1 - p, p], axis=1), y)
    assert fitted.verdict_.adopted
    assert "balanced_accuracy_falls" in codes(fitted)


def test_too_few_rows_for_a_gain_of_this_size():
    proba, y = planted(400)
    verdict = Adjuster(("bias",), significance=1e-9).fit(proba, y).verdict_
    assert verdict.reason == "not_significant"
    (caution,) = (c for c in verdict.cautions if c.code == "too_few_rows")
    assert caution.value >= 400
    assert "there are 400" in str(caution)


def in_pairs(n, seed=0):
    """Rows in pairs that follow each other and nearly agree, sorted by class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.sort(rng.integers(4, size=n // 2)), 2)
    z = np.repeat(rng.normal(size=(n // 2, 4)), 2, axis=0) + 0.1 * rng.normal(size=(n, 4))
    return softmax(2 * z + 2 * np.eye(4)[y], axis=1), y


def test_rows_that_follow_each_other_and_are_alike():
    proba, y = in_pairs(600)
    fitted = Adjuster(("bias",)).fit(proba, y)
    (caution,) = (c for c in fitted.verdict_.cautions if c.code == "neighbours_alike")
    # Every second pair of neighbours belongs together.
    assert caution.value == pytest.approx(0.5, abs=0.1)
    assert "groups" in str(caution)


def test_groups_that_are_passed_raise_no_caution():
    proba, y = in_pairs(600)
    fitted = Adjuster(("bias",)).fit(proba, y, groups=np.arange(600) // 2)
    assert "neighbours_alike" not in codes(fitted)


def test_a_file_sorted_by_class_is_no_cause():
    proba, y = planted(800)
    order = np.argsort(y, kind="stable")
    assert codes(Adjuster(("bias",)).fit(proba[order], y[order])) == set()


def one_class_given_up(n=4000, seed=0):
    """Class 2 is rare and the classifier does not know: accuracy wants it named less often."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.45, 0.45, 0.1])
    z = 1.5 * np.eye(3)[y] + rng.normal(size=(n, 3))
    return softmax(z, axis=1), y


def test_a_class_that_becomes_the_worst():
    proba, y = one_class_given_up()
    names = np.array(["ant", "bee", "cat"])
    fitted = Adjuster(("bias",)).fit(proba, names[y])
    assert fitted.verdict_.adopted
    (caution,) = (c for c in fitted.verdict_.cautions if c.code == "worst_class_falls")
    fresh, z = one_class_given_up(20_000, seed=1)
    cats = z == 2
    before = (fresh[cats].argmax(axis=1) == 2).mean()
    after = (fitted.predict(fresh[cats]) == "cat").mean()
    assert caution.value == pytest.approx(after - before, abs=0.05)
    assert str(caution).startswith("cat becomes")


def test_a_class_that_was_named_too_often_may_lose_some_rows():
    proba, y = planted(800)
    fitted = Adjuster(("bias",)).fit(proba, y)
    before, after = (
        [(decided[y == c] == c).mean() for c in range(4)]
        for decided in (proba.argmax(axis=1), fitted.predict(proba))
    )
    assert min(np.subtract(after, before)) < 0 < min(after) - min(before)
    assert "worst_class_falls" not in codes(fitted)
