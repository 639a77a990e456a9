"""Why rows changed."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer, ambiguity
from altnorm.estimator.explanation import Explanation
from tests.problems import planted
from tests.report_pages import NAMES, adjusted, labelled, rare


@pytest.mark.parametrize("purpose", [None, "accuracy", "balanced_accuracy", "f1_macro", "person"])
def test_one_entry_for_each_changed_row(purpose):
    rows, proba = rare(seed=1), rare(seed=2).proba
    alternating = AlternatingNormalizer(2.0, threshold=0.5).fit(rows.proba, rows.labels)
    model = alternating if purpose is None else adjusted(purpose)
    explanation, plain = model.explain(proba), NAMES[proba.argmax(axis=1)]
    after, decided = model.transform(proba), model.predict(proba)
    changed = np.flatnonzero(plain != decided)
    assert len(explanation) == changed.size > 3
    np.testing.assert_array_equal(explanation.row, changed)
    np.testing.assert_array_equal(explanation.ambiguity, ambiguity(proba)[changed])
    np.testing.assert_array_equal(explanation.before, plain[changed])
    np.testing.assert_array_equal(explanation.after, decided[changed])
    np.testing.assert_array_equal(explanation.proba_before, proba[changed])
    np.testing.assert_array_equal(explanation.proba_after, after[changed])
    np.testing.assert_allclose(explanation.factors * proba[changed], after[changed])
    assert explanation.label is None
    assert str(explanation).splitlines() == [str(explanation[i]) for i in range(len(explanation))]
    assert [str(entry) for entry in explanation[1:3]] == str(explanation).splitlines()[1:3]
    assert len(explanation[:0]) == 0
    for entry in explanation:
        assert entry.leads == (entry.after == NAMES[after[entry.row].argmax()])
        if entry.after is not None:
            sides = [NAMES.tolist().index(name) for name in (entry.before, entry.after)]
            assert [entry.proba_before, entry.given_to_after] == proba[entry.row, sides].tolist()
            assert [entry.left_to_before, entry.proba_after] == after[entry.row, sides].tolist()


def test_a_row_that_is_left_to_a_person():
    adjuster, proba = adjusted("person"), rare(seed=2).proba
    entry = next(entry for entry in adjuster.explain(proba) if entry.after is None)
    assert np.isnan([entry.proba_after, entry.given_to_after]).all()
    assert np.isfinite([entry.proba_before, entry.left_to_before]).all()
    assert str(entry).endswith(f"to {entry.left_to_before:.2f}; the row is left to a person.")


def explain(before, after, decided, doubt, classes):
    before, after = np.array(before), np.array(after)
    sides = before.argmax(axis=1), np.array(decided)
    return Explanation.from_decisions((before, after), sides, np.array(doubt), np.array(classes))


def test_in_a_sentence():
    before = [[0.9, 0.1], [0.6, 0.4], [0.52, 0.48]]
    after = [[0.9, 0.1], [0.3, 0.7], [0.59, 0.41]]
    explanation = explain(before, after, [0, 1, 1], [0.47, 0.971, 0.999], ["cat", "dog"])
    assert str(explanation) == (
        "Row 1 (ambiguity 0.97): cat goes from 0.60 to 0.30 and dog from 0.40 to 0.70, so dog "
        "leads.\n"
        "Row 2 (ambiguity 1.00): cat goes from 0.52 to 0.59 and dog from 0.48 to 0.41; dog is not "
        "the most probable, but the decision for the goal."
    )


def test_classes_that_stay_at_zero_have_factor_one():
    explanation = explain([[0.6, 0.4, 0.0]], [[0.3, 0.7, 0.0]], [1], [0.9], np.arange(3))
    np.testing.assert_allclose(explanation.factors, [[0.5, 1.75, 1.0]])


def test_thresholds_of_labels_decide():
    adjuster, proba = adjusted("labels"), labelled(seed=2).proba
    explanation, decided = adjuster.explain(proba), adjuster.predict(proba)
    row, column = np.nonzero((proba > 0.5) != decided)
    np.testing.assert_array_equal(explanation.row, row)
    np.testing.assert_array_equal(explanation.label, adjuster.classes_[column])
    np.testing.assert_array_equal(explanation.before, proba[row, column] > 0.5)
    np.testing.assert_array_equal(explanation.after, decided[row, column])
    assert len(explanation) > 3
    assert {f"{explanation.label[0]}: yes", f"{explanation.label[0]}: no"} == {
        explanation[0].before,
        explanation[0].after,
    }


def test_nothing_changed():
    proba, y = planted(200)
    explanation = AlternatingNormalizer(2.0, threshold=0.5).fit(proba, y).explain(np.eye(4))
    assert len(explanation) == 0
    assert str(explanation) == ""
