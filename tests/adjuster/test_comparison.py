"""Methods side by side: fitted on validation data, compared with doing nothing on test data."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score, log_loss

from altnorm import Adjuster, AlternatingNormalizer, InputError, compare
from altnorm.adjuster.comparison import Comparison, MethodResult
from altnorm.evidence.verdict import compare_predictions
from altnorm.peers import BiasCorrectedTemperature, Identity, LabelThresholds, TemperatureScaling
from tests.problems import planted, planted_labels


@pytest.fixture
def data():
    return *planted(500), *planted(400, seed=1)


def test_a_row_says_what_the_predictions_say(data):
    val, val_y, test, test_y = data
    methods = {"CAN": AlternatingNormalizer(), "BCTS": BiasCorrectedTemperature()}
    result = compare(*data, methods=methods)
    names = np.array(["ant", "bee", "cat", "dog"])
    assert compare(val, names[val_y], test, names[test_y], methods=methods) == result
    assert result.base == pytest.approx(accuracy_score(test_y, test.argmax(axis=1)))
    assert [row.method for row in result] == list(methods)
    for row in result:
        pred = clone(methods[row.method]).fit(val, val_y).predict(test)
        before, after = test.argmax(axis=1) == test_y, pred == test_y
        assert row.score == pytest.approx(accuracy_score(test_y, pred))
        assert row.gain == pytest.approx(after.mean() - before.mean())
        assert row.n_fixed == (after & ~before).sum()
        assert row.n_broken == (before & ~after).sum()
        expected = compare_predictions(test_y, test, pred)
        assert row.p_value == pytest.approx(expected.p_value, rel=1e-6)
        assert (row.ci_low, row.ci_high) == pytest.approx((expected.ci_low, expected.ci_high))


def test_probabilities_are_measured_beside_decisions(data):
    val, val_y, test, test_y = data
    bcts = BiasCorrectedTemperature()
    (row,) = result = compare(*data, methods={"BCTS": bcts})
    proba = bcts.fit(val, val_y).transform(test)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == test_y
    among = [right[confidence >= level].mean() for level in confidence]
    assert row.log_loss == pytest.approx(log_loss(test_y, proba))
    assert row.area == pytest.approx(np.mean(among))
    header, line = result.cells()
    assert header[-2:] == ("log loss", "area")
    assert line[-2:] == (f"{row.log_loss:.3f}", f"{row.area:.3f}")


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1_macro", "neg_log_loss"])
def test_methods_are_told_the_purpose(data, scoring):
    val, val_y, test, test_y = data
    methods = {"bias": Adjuster(("bias",)), "temperature": TemperatureScaling()}
    result = compare(*data, methods=methods, scoring=scoring)
    fitted = Adjuster(("bias",), scoring=scoring).fit(val, val_y)
    assert result.scoring == scoring
    assert result[0].score == pytest.approx(fitted.score(test, test_y))
    if scoring != "neg_log_loss":  # a temperature changes no decision
        assert (result[1].gain, result[1].n_fixed, result[1].p_value) == (0, 0, 1)


def test_a_method_with_a_purpose_keeps_it(data):
    val, val_y, test, test_y = data
    careful = Adjuster(("bias",), costs={(0, 1): 5})
    balanced = Adjuster(("bias",), scoring="balanced_accuracy")
    result = compare(*data, methods={"a": careful, "b": balanced}, scoring="f1_macro")
    for row, method in zip(result, (careful, balanced), strict=True):
        decided = clone(method).fit(val, val_y).predict(test)
        assert row.score == pytest.approx(f1_score(test_y, decided, average="macro"))


def test_the_methods_of_the_default(data):
    result = compare(*(part[:80] for part in data))
    assert result[0].method == "do nothing"
    assert {"temperature scaling", "BCTS", "altnorm"} <= {row.method for row in result}
    assert len(result) == len(result.to_dicts()) == len(result.cells()) - 1
    several = compare(*(part[:100] for part in (*planted_labels(100), *planted_labels(100, 6, 1))))
    assert {"label thresholds", "altnorm"} <= {row.method for row in several}


def test_the_method_that_helps_most_is_named(data):
    result = compare(*data, methods={"do nothing": Identity(), "BCTS": BiasCorrectedTemperature()})
    assert "helps on these rows: BCTS, accuracy" in result.alternative()
    assert str(result).index("BCTS") < str(result).index("do nothing")  # the best is printed first
    assert ">BCTS</td>" in result._repr_html_()
    assert compare(*data, methods={"do nothing": Identity()}).alternative() == ""
    with pytest.raises(InputError, match="`methods` must name at least one estimator"):
        compare(*data, methods={})


def test_several_labels():
    data = *planted_labels(300), *planted_labels(200, seed=1)
    methods = {"one threshold": LabelThresholds()}
    result = compare(*data, methods=methods)
    assert result.scoring == "f1_micro"
    assert result[0].area is None
    assert result.cells()[0][-1] == "log loss"
    assert result.base == pytest.approx(f1_score(data[3], data[2] > 0.5, average="micro"))
    for name in ("accuracy", "subset_accuracy"):
        exact = compare(*data, methods=methods, scoring=name)
        assert exact.scoring == name
        assert exact.base == pytest.approx(accuracy_score(data[3], data[2] > 0.5))


def test_lines_of_a_table_are_rounded_alike():
    tiny = MethodResult("tiny", 0.501, 0.001, -0.001, 0.003, 0.5, 1, 0, 1.0, None)
    large = replace(tiny, score=0.6, gain=0.1)
    assert Comparison("accuracy", 0.5, (tiny,)).figures(tiny).after == "50.10%"
    assert Comparison("accuracy", 0.5, (tiny, large)).figures(tiny).after == "50.1%"
