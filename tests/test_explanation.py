"""Why rows changed."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV, ambiguity
from altnorm.method.explanation import Explanation


def draw(n=80, m=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    return softmax(1.5 * (rng.normal(size=(n, m)) + np.eye(m)[y] + [1.5, 0, 0]), axis=1), y


def argmax_or_threshold(proba):
    return ((proba > 0.5) | (proba == proba.max(axis=1, keepdims=True))).astype(int)


@pytest.fixture
def fitted():
    proba, y = draw()
    names = np.array(["ant", "bee", "cat"])
    return AlternatingNormalizer(2.0, threshold=0.5).fit(proba, names[y])


def test_one_entry_for_each_changed_row(fitted):
    proba, _ = draw(seed=1)
    adjusted = fitted.transform(proba)
    found = fitted.explain(proba)
    changed = np.flatnonzero(proba.argmax(axis=1) != adjusted.argmax(axis=1))
    assert len(found) == changed.size > 3
    np.testing.assert_array_equal(found.row, changed)
    np.testing.assert_array_equal(found.ambiguity, ambiguity(proba)[changed])
    assert (found.ambiguity > 0.5).all()
    np.testing.assert_array_equal(found.before, fitted.classes_[proba[changed].argmax(axis=1)])
    np.testing.assert_array_equal(found.after, fitted.predict(proba)[changed])
    np.testing.assert_array_equal(found.proba_before, proba[changed])
    np.testing.assert_array_equal(found.proba_after, adjusted[changed])
    np.testing.assert_allclose(found.factors * proba[changed], adjusted[changed])
    assert found.label is None


def test_the_factor_of_the_new_class_is_the_larger(fitted):
    entries = list(fitted.explain(draw(seed=1)[0]))
    assert len(entries) > 3
    for entry in entries:
        assert entry.factor_after > entry.factor_before
        assert entry.before != entry.after


def argmax(proba):
    return proba.argmax(axis=1)


def test_in_a_sentence():
    before = np.array([[0.9, 0.1], [0.6, 0.4], [0.52, 0.48]])
    after = np.array([[0.9, 0.1], [0.3, 0.7], [0.39, 0.61]])
    doubt, names = np.array([0.47, 0.971, 0.999]), np.array(["cat", "dog"])
    found = Explanation.from_predictions(before, after, doubt, names, argmax)
    assert str(found) == (
        "Row 1 (ambiguity 0.97): cat goes from 0.60 to 0.30 and dog from 0.40 to 0.70, so dog "
        "leads.\n"
        "Row 2 (ambiguity 1.00): cat goes from 0.52 to 0.39 and dog from 0.48 to 0.61, so dog "
        "leads."
    )


def test_nothing_changed(fitted):
    sure = np.eye(3)
    found = fitted.explain(sure)
    assert len(found) == 0
    assert list(found) == []
    assert str(found) == ""


def test_classes_that_stay_at_zero_have_factor_one():
    before, after = np.array([[0.6, 0.4, 0.0]]), np.array([[0.3, 0.7, 0.0]])
    found = Explanation.from_predictions(before, after, np.array([0.9]), np.arange(3), argmax)
    np.testing.assert_allclose(found.factors, [[0.5, 1.75, 1.0]])


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
def test_several_labels(mode):
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(100, 4)) - 1
    y = (rng.random(z.shape) < expit(z + 1.5)).astype(int)
    proba = expit(z)
    fitted = AlternatingNormalizer(multilabel=mode, threshold=0.3).fit(proba, y)
    adjusted = fitted.transform(proba)
    found = fitted.explain(proba)
    row, column = np.nonzero((proba > 0.5) != (adjusted > 0.5))
    assert len(found) == row.size > 3
    np.testing.assert_array_equal(found.row, row)
    np.testing.assert_array_equal(found.label, column)
    np.testing.assert_array_equal(found.before, proba[row, column] > 0.5)
    np.testing.assert_array_equal(found.after, adjusted[row, column] > 0.5)
    np.testing.assert_allclose(found.proba_after[:, 1], adjusted[row, column])
    assert f"{found.label[0]}: " in str(found[0])
    assert "yes" in str(found[0])
    assert "no" in str(found[0])


def test_the_tuned_normalizer_explains_what_it_does():
    proba, y = draw(600)
    tuned = AlternatingNormalizerCV(
        alphas=(0.5, 1.0, 2.0), depths=(1,), references=("all",), random_state=0
    ).fit(proba, y)
    assert tuned.verdict_.adopted
    found = tuned.explain(proba)
    np.testing.assert_array_equal(
        found.row, np.flatnonzero(proba.argmax(axis=1) != tuned.transform(proba).argmax(axis=1))
    )
    np.testing.assert_array_equal(found.ambiguity, ambiguity(proba)[found.row])
    assert len(found) > 0


def test_labels_that_another_label_overtakes_are_explained():
    """With the rule "argmax, and all above 0.5" a label changes when it gains or loses the lead."""
    before, after = np.array([[0.4, 0.3], [0.7, 0.6]]), np.array([[0.2, 0.3], [0.7, 0.4]])
    found = Explanation.from_predictions(
        before, after, np.ones((2, 2)), np.array(["x", "y"]), argmax_or_threshold
    )
    assert found.row.tolist() == [0, 0, 1]
    assert found.label.tolist() == ["x", "y", "y"]
    assert found.before.tolist() == [1, 0, 1]
    assert found.after.tolist() == [0, 1, 0]
    assert found[0].proba_before == pytest.approx(0.4)
    assert found[1].proba_after == pytest.approx(0.3)


def test_no_adjustment_has_nothing_to_explain():
    proba, _ = draw(200)
    y = np.random.default_rng(0).permutation(np.arange(200) % 3)
    tuned = AlternatingNormalizerCV(
        alphas=(1.0,), depths=(1,), significance=1e-6, random_state=0
    ).fit(proba, y)
    assert not tuned.verdict_.adopted
    assert len(tuned.explain(proba)) == 0
