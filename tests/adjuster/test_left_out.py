"""Labels that can be read off what leaving out a row took from its class are not learnt from."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from altnorm import Adjuster
from altnorm.adjuster.choice import Evidence
from altnorm.adjuster.left_out import _give_back, find_left_out
from tests.problems import planted
from tests.validation import read
from tests.verdicts import codes

CURVED = {
    "naive Bayes": GaussianNB(),
    "squares": make_pipeline(PolynomialFeatures(2, include_bias=False), LogisticRegression()),
}


def of_one_feature(name, cv, n=200, seed=0):
    """Three classes that one feature hardly tells: their log-odds lie on a curve."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    x = rng.normal(size=(n, 1)) + np.array([0.0, 0.3, -0.2])[y, None]
    return cross_val_predict(CURVED[name], x, y, cv=cv, method="predict_proba"), y


@pytest.mark.parametrize("name", CURVED)
def test_labels_that_bent_lines_read_off_the_row_left_out(name):
    proba, y = of_one_feature(name, LeaveOneOut())
    fitted = Adjuster().fit(proba, y)
    assert fitted.verdict_.reason == "suspect_input"
    assert codes(fitted) == {"told_backwards"}
    assert "where the true class is a little more probable" in fitted.verdict_.cautions[0].text
    assert fitted.family_ is None
    insisted = Adjuster(insist=True).fit(proba, y)
    assert insisted.verdict_.after > insisted.verdict_.before + 0.2


@pytest.mark.parametrize("name", CURVED)
def test_few_folds_give_nothing_away(name):
    assert Adjuster().fit(*of_one_feature(name, 5)).verdict_.reason != "suspect_input"


@pytest.mark.parametrize("goal", [{}, {"scoring": "balanced_accuracy"}, {"costs": {(0, 1): 5}}])
def test_real_gains_grow_where_the_true_class_is_told(goal):
    proba, y = planted(400)
    flat = proba**0.01
    for rows in (proba, flat / flat.sum(axis=1, keepdims=True)):  # of large and of tiny differences
        assert Adjuster(**goal).fit(rows, y).verdict_.adopted


@pytest.mark.parametrize(("n_kept", "told"), [(18, (True, -0.21)), (22, None)])
def test_a_gain_of_which_less_than_a_third_is_kept_is_refused(n_kept, told):
    """Of 60 rows that a correction sets right, where the true class is a little more probable."""
    y, wrong = np.arange(200) % 2, np.arange(200) < 60
    data = read(np.where(np.eye(2)[y] == wrong[:, None], 0.4, 0.6), y)
    evidence = Evidence(data, y, 0.01, clusters=[])
    right = np.where(np.eye(2)[y] == 1, 0.9, 0.1)
    kept = np.where(np.eye(2)[y] == (wrong & (np.arange(200) >= n_kept))[:, None], 0.2, 0.8)
    fitted = SimpleNamespace(stage=lambda _: lambda rows, _: right if rows is data.proba else kept)
    parts = {"mixture": SimpleNamespace(fit=lambda: (None, fitted)), "accepted": True}
    parts |= {"decision": lambda: evidence.untouched, "scored": (evidence.before, y)}
    caution = find_left_out(SimpleNamespace(evidence=evidence, **parts))
    assert (caution and (caution.serious, round(caution.value, 9))) == told


def test_rows_with_zeros_are_no_reason_to_warn():
    proba, y = planted(400)
    proba[proba < 0.01] = 0
    assert Adjuster().fit(proba / proba.sum(axis=1, keepdims=True), y).verdict_.adopted


def test_a_class_gets_back_more_the_fewer_rows_it_has():
    labels = np.repeat([0, 1], [2, 8])
    before = np.tile([0.5, 0.5], (10, 1))
    back = _give_back(before, labels)
    assert back.sum(axis=1) == pytest.approx(1)
    assert back[0, 0] / back[0, 1] == pytest.approx(np.exp(1))
    assert back[-1, 1] / back[-1, 0] == pytest.approx(np.exp(1 / 4))
