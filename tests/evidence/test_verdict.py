"""What the verdict compares, counts and says: by hand, with weights, for several labels."""

import json
from dataclasses import replace

import numpy as np
import pytest

from altnorm.evidence.paired import paired_test
from altnorm.evidence.verdict import Verdict, compare_predictions
from tests.problems import problem


def test_accuracy_by_hand():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    old = np.array([1, 1, 1, 1, 2, 1, 1, 0, 2, 0])
    new = np.array([0, 0, 0, 0, 1, 1, 0, 1, 2, 0])
    verdict = compare_predictions(y, np.eye(3)[old], np.eye(3)[new])
    counts = verdict.n_rows, verdict.n_changed, verdict.n_fixed, verdict.n_broken
    assert counts == (10, 7, 5, 1)
    assert (verdict.before, verdict.after) == (0.3, 0.7)
    assert verdict.gain == pytest.approx(0.4)
    test = paired_test(np.repeat([1, -1, 0], [5, 1, 4]) / 10, np.ones(10))
    assert verdict.p_value == pytest.approx(test.p_value)
    assert (verdict.ci_low, verdict.ci_high) == pytest.approx((test.ci_low, test.ci_high))
    assert not verdict.adopted
    assert verdict == compare_predictions(y, old, new)
    # From wrong to wrong changes no score but is counted; one row is no evidence.
    verdict = compare_predictions(*np.array([[0, 0, 0], [1, 1, 1], [2, 2, 1]]))
    assert (verdict.n_changed, verdict.n_fixed, verdict.n_broken) == (2, 0, 0)
    assert (verdict.gain, verdict.p_value, verdict.adopted) == (0, 1, False)
    verdict = compare_predictions(np.array([0]), np.array([[0.4, 0.6]]), np.array([[0.6, 0.4]]))
    assert (verdict.gain, verdict.p_value, verdict.adopted) == (1, 1, False)


def test_a_row_left_to_a_person_is_neither_fixed_nor_broken():
    y = np.array([0, 0, 1, 1, 1, 0])
    old = np.array([0, 1, 1, 2, 2, 2])  # 2: left to a person
    new = np.array([2, 2, 1, 2, 1, 1])
    verdict = compare_predictions(y, old, new, scoring="accuracy", person=2)
    counts = verdict.n_changed, verdict.n_fixed, verdict.n_broken, verdict.n_left
    assert counts == (4, 1, 0, 2)
    assert "4 rows changed: 1 fixed, 0 broken, 1 still not right, 2 left to a person" in str(
        verdict
    )
    # Without rows that are left, 2 is a class like any other.
    verdict = compare_predictions(y, old, new, scoring="accuracy")
    assert (verdict.n_broken, verdict.n_left) == (1, 0)


def test_figure_shows_the_gain_and_its_interval():
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    y, before, after = problem()
    for scoring, sign in (("accuracy", 100), ("neg_log_loss", -1)):
        axes.clear()
        verdict = compare_predictions(y, before, after, scoring=scoring)
        assert verdict.plot(axes) is axes
        _, interval, point = axes.lines
        ends = [sign * verdict.ci_low, sign * verdict.ci_high]
        assert sorted(interval.get_xdata()) == pytest.approx(sorted(ends))
        assert point.get_xdata() == pytest.approx([sign * verdict.gain])
        assert str(verdict).startswith(f"{axes.get_title(loc='left')} (")
    assert "lower is better" in axes.get_xlabel()
    axes.clear()
    replace(verdict, reason="too_few_labels").plot(axes)
    assert axes.get_title(loc="left").startswith("Not tried: ")


def test_multilabel_rows_by_hand():
    y = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0]])
    old = np.array([[0, 1, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]])
    new = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 0], [0, 0, 1]])
    for values in ((old, new), (old * 0.9, new * 0.9)):
        verdict = compare_predictions(y, *values)
        assert verdict.scoring == "f1_micro"
        assert (verdict.n_changed, verdict.n_fixed, verdict.n_broken) == (4, 2, 2)
        assert verdict.before == pytest.approx(2 * 3 / (5 + 5))
        assert verdict.after == pytest.approx(2 * 4 / (7 + 5))


def test_groups_are_the_units_of_the_evidence():
    y, before, after = problem(1, n=150)
    copies = [np.repeat(v, 4, axis=0) for v in (y, before, after)]
    groups = np.repeat(np.random.default_rng(0).permutation(150), 4)
    for scoring in ("accuracy", "f1_macro", "roc_auc_ovr"):
        alone = compare_predictions(y, before, after, scoring=scoring, groups=np.arange(150))
        grouped = compare_predictions(*copies, scoring=scoring, groups=groups)
        naive = compare_predictions(*copies, scoring=scoring)
        assert grouped.gain == pytest.approx(alone.gain)
        if scoring == "roc_auc_ovr":  # which is known by blocks
            assert grouped.std_error == pytest.approx(alone.std_error, rel=0.5)
        else:
            assert grouped.std_error == pytest.approx(alone.std_error, rel=0.1)
            assert naive.std_error < 0.7 * alone.std_error


def test_a_score_that_can_only_be_called_is_called_seldom():
    y, before, after = problem(1, n=200)
    calls = []

    def scorer(estimator, X, y):
        calls.append(1)
        return (estimator.predict(X) == y).mean()

    compare_predictions(y, before, after, scoring=scorer, groups=np.arange(200) // 2)
    assert len(calls) <= 50


def test_verdict_as_a_dictionary_survives_json_and_its_repr_is_short():
    verdict = compare_predictions(*problem(), scoring="f1_macro")
    record = json.loads(json.dumps(verdict.to_dict()))
    assert Verdict(**record | {"cautions": ()}) == verdict
    unknown = replace(verdict, ci_low=-np.inf, p_value=np.nan)
    record = json.loads(json.dumps(unknown.to_dict(), allow_nan=False))
    assert (record["ci_low"], record["p_value"]) == (None, None)
    start = f"Verdict(adopted={verdict.adopted}, scoring='f1_macro', gain={verdict.gain:.4g}, p_"
    assert repr(verdict).startswith(start)
    assert len(repr(verdict)) < 100
