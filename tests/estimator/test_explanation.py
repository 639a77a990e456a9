"""Why rows changed."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV, ambiguity
from altnorm.estimator.explanation import Explanation
from tests.problems import planted
from tests.report_pages import NAMES, adjusted, labelled, rare


@pytest.mark.parametrize("purpose", [None, "accuracy", "balanced_accuracy", "f1_macro", "person"])
def test_one_entry_for_each_changed_row(purpose):
    rows, proba = rare(seed=1), rare(seed=2).proba
    alternating = AlternatingNormalizer(2.0, threshold=0.5).fit(rows.proba, rows.labels)
    model = alternating if purpose is None else adjusted(purpose)
    found, plain = model.explain(proba), NAMES[proba.argmax(axis=1)]
    after, decided = model.transform(proba), model.predict(proba)
    changed = np.flatnonzero(plain != decided)
    assert len(found) == changed.size > 3
    np.testing.assert_array_equal(found.row, changed)
    np.testing.assert_array_equal(found.ambiguity, ambiguity(proba)[changed])
    np.testing.assert_array_equal(found.before, plain[changed])
    np.testing.assert_array_equal(found.after, decided[changed])
    np.testing.assert_array_equal(found.proba_before, proba[changed])
    np.testing.assert_array_equal(found.proba_after, after[changed])
    np.testing.assert_allclose(found.factors * proba[changed], after[changed])
    assert found.label is None
    assert str(found).splitlines() == [str(found[i]) for i in range(len(found))]
    for one in found:
        assert one.leads == (one.after == NAMES[after[one.row].argmax()])
        if one.after is not None:
            sides = [NAMES.tolist().index(name) for name in (one.before, one.after)]
            assert [one.proba_before, one.given_to_after] == proba[one.row, sides].tolist()
            assert [one.left_to_before, one.proba_after] == after[one.row, sides].tolist()


def test_a_row_that_is_left_to_a_person():
    adjuster, proba = adjusted("person"), rare(seed=2).proba
    one = next(one for one in adjuster.explain(proba) if one.after is None)
    assert np.isnan([one.proba_after, one.given_to_after]).all()
    assert np.isfinite([one.proba_before, one.left_to_before]).all()
    assert str(one).endswith(f"to {one.left_to_before:.2f}; the row is left to a person.")


def explain(before, after, decided, doubt, classes):
    before, after = np.array(before), np.array(after)
    sides = before.argmax(axis=1), np.array(decided)
    return Explanation.from_decisions((before, after), sides, np.array(doubt), np.array(classes))


def test_in_a_sentence():
    before = [[0.9, 0.1], [0.6, 0.4], [0.52, 0.48]]
    after = [[0.9, 0.1], [0.3, 0.7], [0.59, 0.41]]
    found = explain(before, after, [0, 1, 1], [0.47, 0.971, 0.999], ["cat", "dog"])
    assert str(found) == (
        "Row 1 (ambiguity 0.97): cat goes from 0.60 to 0.30 and dog from 0.40 to 0.70, so dog "
        "leads.\n"
        "Row 2 (ambiguity 1.00): cat goes from 0.52 to 0.59 and dog from 0.48 to 0.41; dog is not "
        "the most probable, but the decision for the goal."
    )


def test_classes_that_stay_at_zero_have_factor_one():
    found = explain([[0.6, 0.4, 0.0]], [[0.3, 0.7, 0.0]], [1], [0.9], np.arange(3))
    np.testing.assert_allclose(found.factors, [[0.5, 1.75, 1.0]])


def test_thresholds_of_labels_decide():
    adjuster, proba = adjusted("labels"), labelled(seed=2).proba
    found, decided = adjuster.explain(proba), adjuster.predict(proba)
    row, column = np.nonzero((proba > 0.5) != decided)
    np.testing.assert_array_equal(found.row, row)
    np.testing.assert_array_equal(found.label, adjuster.classes_[column])
    np.testing.assert_array_equal(found.before, proba[row, column] > 0.5)
    np.testing.assert_array_equal(found.after, decided[row, column])
    assert len(found) > 3
    assert {f"{found.label[0]}: yes", f"{found.label[0]}: no"} == {found[0].before, found[0].after}


def test_nothing_changed():
    proba, y = planted(200)
    found = AlternatingNormalizer(2.0, threshold=0.5).fit(proba, y).explain(np.eye(4))
    assert len(found) == 0
    assert str(found) == ""
    y = np.random.default_rng(0).permutation(np.arange(200) % 4)
    tuned = AlternatingNormalizerCV((1.0,), (1,), significance=1e-6).fit(proba, y)
    assert not tuned.verdict_.adopted
    assert len(tuned.explain(proba)) == 0
