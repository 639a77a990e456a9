"""Methods side by side: fitted on validation data, compared with doing nothing on test data."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, f1_score

from altnorm import AlternatingNormalizer, compare
from altnorm._base.errors import InputError
from altnorm.peers import BiasCorrectedTemperature, Identity, LabelThresholds, TemperatureScaling
from tests.problems import planted, planted_labels


class Recorder(BaseEstimator):
    """Remembers what it is given, and shifts probability to the last class."""

    given: list = []  # noqa: RUF012  clones must share it

    def fit(self, proba, y):
        self.given.append((proba, y))
        return self

    def transform(self, proba):
        self.given.append((proba,))
        shifted = proba * np.linspace(1, 3, proba.shape[1])
        return shifted / shifted.sum(axis=1, keepdims=True)


@pytest.fixture
def data():
    return *planted(500), *planted(400, seed=1)


def test_a_row_says_what_the_predictions_say(data):
    val, val_y, test, test_y = data
    methods = {"CAN": AlternatingNormalizer(), "BCTS": BiasCorrectedTemperature()}
    result = compare(*data, methods=methods)
    assert result.base == pytest.approx(accuracy_score(test_y, test.argmax(axis=1)))
    assert [row.method for row in result] == list(methods)
    for row in result:
        pred = clone(methods[row.method]).fit(val, val_y).predict(test)
        before, after = test.argmax(axis=1) == test_y, pred == test_y
        assert row.score == pytest.approx(accuracy_score(test_y, pred))
        assert row.gain == pytest.approx(after.mean() - before.mean())
        assert row.n_fixed == (after & ~before).sum()
        assert row.n_broken == (before & ~after).sum()
        exact = binomtest(row.n_fixed, row.n_fixed + row.n_broken).pvalue
        assert row.p_value == pytest.approx(exact)
        assert row.ci_low < row.gain < row.ci_high


def test_fitted_on_validation_data_alone(data):
    val, val_y, test, _ = data
    Recorder.given.clear()
    compare(*data, methods={"recorder": Recorder()})
    (fit_proba, fit_y), (seen,) = Recorder.given
    np.testing.assert_array_equal(fit_proba, val)
    np.testing.assert_array_equal(fit_y, val_y)
    np.testing.assert_array_equal(seen, test)


def test_what_is_given_stays_unfitted(data):
    method = TemperatureScaling()
    compare(*data, methods={"temperature": method})
    assert not hasattr(method, "temperature_")


def test_the_best_is_printed_first(data):
    methods = {"do nothing": Identity(), "BCTS": BiasCorrectedTemperature()}
    table = str(compare(*data, methods=methods))
    assert table.index("BCTS") < table.index("do nothing")


def test_names_instead_of_codes(data):
    names = np.array(["ant", "bee", "cat", "dog"])
    val, val_y, test, test_y = data
    methods = {"BCTS": BiasCorrectedTemperature()}
    assert compare(val, names[val_y], test, names[test_y], methods=methods) == compare(
        *data, methods=methods
    )


def test_several_labels():
    data = *planted_labels(300), *planted_labels(200, seed=1)
    methods = {"one threshold": LabelThresholds()}
    result = compare(*data, methods=methods)
    assert result.scoring == "f1_micro"
    assert result.base == pytest.approx(f1_score(data[3], data[2] > 0.5, average="micro"))
    for name in ("accuracy", "subset_accuracy"):
        whole = compare(*data, methods=methods, scoring=name)
        assert whole.scoring == name
        assert whole.base == pytest.approx(accuracy_score(data[3], data[2] > 0.5))


def test_no_methods(data):
    with pytest.raises(InputError, match="`methods` must name at least one estimator"):
        compare(*data, methods={})
